"""``tailwise labels``: which labels a model knows, and which of them it finds."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tailwise.cli import inputs, options, output
from tailwise.cli.evaluate import say_caveats

if TYPE_CHECKING:
    from tailwise.judging import Trial
    from tailwise.text import Tagger

_KNOWN = ("name", "id", "training_rows", "rarity")
_JUDGED = (*_KNOWN, "test_rows", "suggested", "correct", "precision", "recall", "f1", "confused_with")
_SHOWN = 10
_CONFUSED = 3
_WIDEST = 60

Facts = list[dict[str, Any]]


@options.reads_data
def labels(
    model: options.ModelPath,
    data: Annotated[
        str | None, typer.Argument(metavar="DATA", help="Labelled rows, such as test.csv, that show what is found.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--filter", metavar="TEXT", help="Only labels whose name or id has this text.")
    ] = None,
    rare: Annotated[bool, typer.Option("--rare", help="Only labels of fewer than 20 training rows.")] = False,
    sort: Annotated[
        str | None, typer.Option("--sort", metavar="COLUMN", help=f"One of {', '.join(_JUDGED[:-1])}; largest first.")
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Smallest first.")] = False,
    n: Annotated[
        int | None, typer.Option("-n", min=1, help=f"How many labels; {_SHOWN} on the screen, all in files and JSON.")
    ] = None,
    to: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="A .csv file to write.")] = None,
    k: options.K = 5,
    reading: options.Reading = options.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """List a model's labels with training rows and rarity; with DATA also precision, recall and what they lose to.

    Without --sort the labels of DATA come best first, and the worst after them. "Confused with" are the labels that
    were suggested wrongly where this one was missed.

    Examples:

    tailwise labels my-model --filter fish

    tailwise labels my-model test.jsonl --text-columns title,abstract --rare

    tailwise labels my-model test.csv -o labels.csv
    """
    output.set_up(quiet, jobs)
    from tailwise.errors import InvalidInput

    columns = _KNOWN if data is None else _JUDGED
    if sort is not None and sort not in columns[: len(columns) - (data is not None)]:
        hint = "; it needs DATA" if sort in _JUDGED else ""
        raise InvalidInput(f"--sort {sort} is none of {', '.join(columns[:10])}{hint}")
    tagger = inputs.open_tagger(model)
    facts = _known(tagger) if data is None else _judged(model.resolve().name, tagger, data, reading, k)
    facts = [fact for fact in facts if _is_wanted(fact, text, rare)]
    if not facts:
        output.warn(f"none of the {len(tagger.label_ids_):,} labels is left; --filter and --rare leave labels out")
    order = sort or ("training_rows" if data is None else "f1")
    facts = _sorted(facts, order, reverse)
    if to is not None:
        _write(to, columns, facts[:n])
        output.say(f"wrote {to}: {len(facts[:n]):,} labels")
    elif as_json:
        output.emit_json(facts[:n])
    elif data is None or sort is not None:
        _show("", facts[: n or _SHOWN], len(facts), columns)
    else:
        # A label without test rows says nothing either way.
        tested = [fact for fact in facts if fact["test_rows"]]
        worst = sorted(tested, key=lambda fact: (fact["f1"], -fact["test_rows"]))
        _show("found best", tested[: n or _SHOWN], len(tested), columns)
        output.emit("")
        _show("found worst", worst[: n or _SHOWN], len(tested), columns)


def _known(tagger: Tagger) -> Facts:
    from tailwise.text.suggestions import RARITIES

    counts = tagger.model_.label_counts_.tolist()
    rarities = [RARITIES[place] for place in tagger.rarity_]
    together = zip(tagger.label_names_, tagger.label_ids_, counts, rarities, strict=True)
    return [dict(zip(_KNOWN, fact, strict=True)) for fact in together]


def _judged(name: str, tagger: Tagger, data: str, reading: options.Reading, k: int) -> Facts:
    from tailwise.judging import judge
    from tailwise.metrics import label_table
    from tailwise.metrics.confusions import confusions
    from tailwise.text.suggestions import RARITIES

    trial: Trial = judge({name: tagger}, inputs.read_rows(data, reading, part="test"), k)
    say_caveats(trial)
    topk = trial.models[0].topk
    table = label_table(trial.Y, topk, k).to_dict()
    together = zip(
        trial.label_names,
        trial.label_ids,
        trial.counts.tolist(),
        (RARITIES[place] for place in trial.slices),
        *(table[column] for column in ("true", "predicted", "correct", "precision", "recall", "f1")),
        (
            [{"name": trial.label_names[one.label], "rows": one.rows} for one in found]
            for found in confusions(trial.Y, topk, k, most=_CONFUSED)
        ),
        strict=True,
    )
    return [dict(zip(_JUDGED, fact, strict=True)) for fact in together]


def _is_wanted(fact: dict[str, Any], text: str | None, rare: bool) -> bool:
    has_text = text is None or any(text.casefold() in fact[column].casefold() for column in ("name", "id"))
    return has_text and (not rare or fact["rarity"] == "tail")


def _sorted(facts: Facts, column: str, reverse: bool) -> Facts:
    """By a column, largest first and texts from a to z, unless reversed; what has no value comes last."""
    known = [fact for fact in facts if fact[column] == fact[column]]
    is_text = bool(known) and isinstance(known[0][column], str)
    known.sort(key=lambda fact: (fact[column], fact.get("test_rows", 0)), reverse=reverse == is_text)
    return known + [fact for fact in facts if fact[column] != fact[column]]


def _show(title: str, facts: Facts, total: int, columns: Iterable[str]) -> None:
    from tailwise.display import Table

    rows = [[_cell(fact[column]) for column in columns] for fact in facts]
    more = [f"{len(facts):,} of {total:,} labels; -n shows more, -o FILE.csv has all"] if len(facts) < total else []
    output.emit_table(Table(title, [column.replace("_", " ") for column in columns], rows, more, left=2))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.1f}" if value == value else "–"
    text = _listed(value) if isinstance(value, list) else f"{value:,}" if isinstance(value, int) else str(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _listed(confused: list[dict[str, Any]]) -> str:
    return "; ".join(f"{one['name']} ({one['rows']})" for one in confused)


def _write(path: Path, columns: tuple[str, ...], facts: Facts) -> None:
    import csv
    import io

    from tailwise.atomic import write_whole
    from tailwise.data.files import plain_suffix
    from tailwise.errors import InvalidInput

    if plain_suffix(path) != ".csv":
        raise InvalidInput(f"--output {path} is no .csv; name one, or take --json for JSON")
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for fact in facts:
        values = (_listed(v) if isinstance(v, list) else "" if v != v else v for v in fact.values())
        writer.writerow([f"{value:.4g}" if isinstance(value, float) else value for value in values])
    write_whole(path, out.getvalue())
