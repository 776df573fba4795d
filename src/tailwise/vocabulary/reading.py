"""Which format a vocabulary is in, and what each can hold.

===========  ==============  ============================================================================
format       suffix          holds
===========  ==============  ============================================================================
turtle       .ttl            everything: names, synonyms, notation, hierarchy, deprecated, groups
ntriples     .nt             the same; read only
xml          .rdf .owl .xml  the same; read only
jsonld       .jsonld         the same; read only
csv          .csv            a name a language, notation, deprecated (without names)
tsv          .tsv .txt       a name in one language, notation, deprecated (without a name)
json         .json           a name in one language
===========  ==============  ============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tailwise.atomic import write_whole
from tailwise.data.files import check_file, plain_suffix, read_bytes
from tailwise.data.locate import read_names
from tailwise.errors import InvalidInput
from tailwise.validation import check_choice
from tailwise.vocabulary import skos, tables
from tailwise.vocabulary.vocabulary import Vocabulary

SUFFIXES = {
    ".ttl": "turtle",
    ".nt": "ntriples",
    ".rdf": "xml",
    ".owl": "xml",
    ".xml": "xml",
    ".jsonld": "jsonld",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "tsv",
    ".json": "json",
}
"""The format that each suffix tells."""
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
WRITTEN = ("turtle", "csv", "tsv", "json")


def read_vocabulary(path: str | Path, *, format: str | None = None, language: str | None = None) -> Vocabulary:
    """The vocabulary in a file that may be packed (.gz, .xz); a malformed one is refused with file and line."""
    path = check_file(path)
    kind = _kind(path, format, FORMATS)
    if kind == "csv":
        return tables.read_csv(path)
    if kind in skos.FORMATS:
        return skos.read_skos(path, kind)
    return (tables.read_tsv if kind == "tsv" else tables.read_json)(path, language)


def names_by_id(path: str | Path) -> bool:
    """Whether a file of names is a vocabulary; names a line, a JSON list or Mulan's xml are in the order of columns."""
    path = check_file(path)
    kind = SUFFIXES.get(plain_suffix(path))
    if kind == "json":
        return isinstance(read_names(path), dict)
    if plain_suffix(path) == ".xml":
        return b"22-rdf-syntax-ns#" in read_bytes(path, 1 << 16)
    return plain_suffix(path) not in ("", ".txt")


def write_vocabulary(
    vocabulary: Vocabulary, path: str | Path, *, format: str | None = None, language: str | None = None
) -> list[str]:
    """Write a vocabulary whole or not at all; returns, in words, what the format has no place for."""
    kind = _kind(Path(path), format, WRITTEN)
    lines: dict[str, Callable[[], Iterator[str]]] = {
        "turtle": lambda: skos.turtle(vocabulary),
        "csv": lambda: tables.as_csv(vocabulary),
        "tsv": lambda: tables.as_tsv(vocabulary, language),
        "json": lambda: tables.as_json(vocabulary, language),
    }
    write_whole(path, lines[kind]())
    return lost(vocabulary, kind)


def lost(vocabulary: Vocabulary, format: str) -> list[str]:
    """What ``format`` cannot hold of this vocabulary, in words."""
    if format == "turtle":
        return []
    terms, gone = vocabulary.terms, vocabulary.deprecated
    counts = {
        "synonyms": int((~terms.preferred).sum()),
        "steps of the hierarchy": len(vocabulary.broader),
        "memberships in schemes and collections": len(vocabulary.schemes.members) + len(vocabulary.collections.members),
        "languages but one": len(vocabulary.languages) - 1 if format in ("tsv", "json") else 0,
        "names of deprecated concepts": 0 if format == "json" else int(gone[terms.concept[terms.preferred]].sum()),
        "notations": sum(map(bool, vocabulary.notations)) if format == "json" else 0,
        "marks of deprecation": int(gone.sum()) if format == "json" else 0,
    }
    return [f"{count:,} {what}" for what, count in counts.items() if count > 0]


def _kind(path: Path, format: str | None, known: tuple[str, ...]) -> str:
    if format is not None:
        return check_choice("format", format, known)
    kind = SUFFIXES.get(plain_suffix(path))
    if kind not in known:
        suffixes = ", ".join(suffix for suffix, name in SUFFIXES.items() if name in known)
        raise InvalidInput(f"{path} does not end in one of {suffixes}; name it so, or pass format={known[0]!r}")
    return kind
