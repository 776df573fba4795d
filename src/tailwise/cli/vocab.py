"""``tailwise vocab``: what is in a vocabulary, in other formats, and what a new version changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailwise.cli import output

if TYPE_CHECKING:
    from tailwise.vocabulary import Vocabulary

_SHOWN = 10

_HELP = """Describe, convert and compare vocabularies of labels.

Example:

tailwise vocab convert thesaurus.rdf thesaurus.csv
"""
app = typer.Typer(help=_HELP, no_args_is_help=True)
File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="SKOS (.ttl, .rdf, .nt, .jsonld), CSV uri,label_xx,…,notation, TSV uri⇥label[⇥notation], or JSON from id "
        "to name; or a model folder that keeps one.",
    ),
]
Language = Annotated[
    str | None, typer.Option("--language", help="Of names that are shown or written, and of names in TSV and JSON.")
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="turtle, ntriples, xml, jsonld, csv, tsv or json, where FILE does not tell."),
]


@app.command()
def info(
    file: File,
    language: Language = None,
    format: Format = None,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Describe a vocabulary: concepts, names by language, synonyms, hierarchy, schemes, collections.

    Example:

    tailwise vocab info thesaurus.ttl
    """
    output.set_up(quiet, jobs)
    import numpy as np

    vocab = _open(file, format, language)
    terms = vocab.terms
    by_language = {
        name or "no language": {
            "names": int((terms.preferred & (terms.language == place)).sum()),
            "synonyms": int((~terms.preferred & (terms.language == place)).sum()),
        }
        for place, name in enumerate(vocab.languages)
    }
    children = np.bincount(vocab.broader[:, 1], minlength=len(vocab))
    facts = {
        "concepts": len(vocab),
        "deprecated": int(vocab.deprecated.sum()),
        "with a notation": sum(map(bool, vocab.notations)),
        "steps of the hierarchy": len(vocab.broader),
        "concepts with narrower ones": int((children > 0).sum()),
    }
    groups = {
        kind: {name: int((found.members[:, 1] == place).sum()) for place, name in enumerate(found.names)}
        for kind, found in (("schemes", vocab.schemes), ("collections", vocab.collections))
    }
    if as_json:
        output.emit_json(facts | {"languages": by_language} | groups)
        return
    output.emit_facts(facts)
    for name, counts in by_language.items():
        output.emit_facts({name: f"{counts['names']:,} names, {counts['synonyms']:,} synonyms"})
    for kind, sizes in groups.items():
        output.emit_facts({kind: _some([f"{name} ({size:,})" for name, size in sizes.items()]) or "none"})


@app.command()
def convert(
    file: File,
    to: Annotated[Path, typer.Argument(metavar="TO", help="The file to write: .ttl, .csv, .tsv or .json.")],
    language: Language = None,
    format: Format = None,
    to_format: Annotated[
        str | None, typer.Option("--to", help="turtle, csv, tsv or json, where TO does not tell.")
    ] = None,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Write a vocabulary in another format, with word of what that cannot hold.

    Example:

    tailwise vocab convert thesaurus.rdf thesaurus.csv
    """
    output.set_up(quiet, jobs)
    vocab = _open(file, format, language)
    chosen = language if language and any(vocab.languages) else None
    lost = vocab.write(to, format=to_format, language=chosen)
    if lost:
        output.warn(f"{to} has no place for {', '.join(lost)}")
    if as_json:
        output.emit_json({"written": str(to), "concepts": len(vocab), "lost": lost})
    else:
        output.emit(f"{to}")


@app.command()
def diff(
    old: File,
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The later version.")],
    language: Language = None,
    n: Annotated[int, typer.Option("-n", min=0, help="How many of each kind are shown.")] = _SHOWN,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Tell what a new version changes: concepts added, removed, renamed, deprecated, moved in the hierarchy.

    Exit status 0, whether anything changed or not.

    Example:

    tailwise vocab diff my-model thesaurus-2026.ttl
    """
    output.set_up(quiet, jobs)
    before, after = _open(old, None, language), _open(new, None, language)
    found = before.changes_to(after)
    if as_json:
        output.emit_json(found)
        return
    names = _named(before) | _named(after)
    for kind, count in found.counts().items():
        output.emit_facts({kind: count})
        for one in [] if kind == "kept" else getattr(found, kind)[:n]:
            line = f"{names[one]} ({one})" if isinstance(one, str) else str(one)
            output.emit(output.visible(f"  {line}"))
        if kind != "kept" and 0 < n < count:
            output.emit(f"  and {count - n:,} more; -n shows more, --json all")


def _open(path: Path, format: str | None, language: str | None) -> Vocabulary:
    """The vocabulary in a file, or the one that a model keeps."""
    from tailwise.errors import InvalidInput
    from tailwise.vocabulary import Vocabulary

    if not path.is_dir():
        return Vocabulary.read(path, format=format, language=language)
    from tailwise.cli.inputs import open_tagger

    kept = open_tagger(path).vocabulary_
    if kept is None:
        raise InvalidInput(f"{path} keeps no vocabulary; train it with --vocab FILE")
    return kept


def _named(vocab: Vocabulary) -> dict[str, str]:
    return dict(zip(vocab.ids, vocab.preferred_names(), strict=True))


def _some(items: list[str]) -> str:
    more = f" and {len(items) - _SHOWN:,} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more
