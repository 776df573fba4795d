"""``tailwise predict``: labels for every row of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tailwise.cli import inputs, output
from tailwise.display import visible

_ROWS_AT_ONCE = 2000


@inputs.reads_data
def predict(
    model: inputs.ModelPath,
    data: inputs.Data,
    to: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output by default.")
    ] = None,
    k: inputs.K = 5,
    reading: inputs.Reading = inputs.UNTOLD,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Predict labels for every row of DATA: one line a row, tab-separated `id score` pairs, or JSON Lines with --json.

    Examples:

    tailwise predict my-model new.jsonl --text-columns title,abstract -k 3 > labels.tsv

    tailwise predict my-model new.csv --text-columns body --json -o labels.jsonl
    """
    output.set_quiet(quiet)
    tagger = inputs.open_tagger(model)
    rows = inputs.read_unlabelled(data, reading)
    lines = _lines(tagger, rows, k, as_json)
    if to is None:
        for block in lines:
            output.emit("\n".join(block))
        return
    from tailwise.atomic import write_whole

    write_whole(to, (f"{line}\n" for block in lines for line in block))
    output.say(f"wrote {to}")


def _lines(tagger: Any, rows: Any, k: int, as_json: bool) -> Any:
    """Blocks of lines, so that a file of any length is predicted in bounded memory beside its rows."""
    from tailwise.display import plain
    from tailwise.parallel import progress, row_blocks

    n = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    with progress("Predicting", n) as advance:
        for first, last in row_blocks(n, _ROWS_AT_ONCE):
            found = tagger.suggest(rows[first:last], k)
            advance(last - first)
            if as_json:
                yield [
                    json.dumps({"row": row, "labels": [plain(s) for s in labels]}, ensure_ascii=False)
                    for row, labels in enumerate(found, start=first)
                ]
            else:
                yield ["\t".join(f"{visible(s.id)} {s.score:.4g}" for s in labels) for labels in found]
