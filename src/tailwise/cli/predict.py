"""``tailwise predict``: labels for every row of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailwise.cli import how_many, inputs, options, output, running

_NOT_WRITTEN = (".xlsx", ".xls", ".ods", ".docx", ".json")
_BY_SUFFIX = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".npz": "npz"}


@options.reads_data
def predict(
    model: options.ModelPath,
    data: options.Data,
    to: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File to write (.csv, .tsv, .jsonl, .parquet, .npz); standard output by default."
        ),
    ] = None,
    k: how_many.K = None,
    assign: how_many.Assign = None,
    missing: how_many.Missing = False,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id-column", metavar="COLUMN", help="A column of DATA that names its rows; copied to the output."
        ),
    ] = None,
    include: options.Include = None,
    exclude: options.Exclude = None,
    reading: options.Reading = options.UNTOLD,
    workdir: running.WorkDir = None,
    engine: running.Engine = running.THREADS,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Predict labels for every row of DATA: one line a row, tab-separated `id score` pairs, or JSON Lines with --json.

    A file has the format of its suffix: .csv and .tsv have a header and a line for each label of each row, numbered
    from 0 in the order of DATA; .npz is a sparse matrix of scores. With --id-column each row's own id comes along.

    Examples:

    tailwise predict my-model new.jsonl --text-columns title,abstract -k 3 > labels.tsv

    tailwise predict my-model new.csv --text-columns body -o labels.csv --id-column isbn

    tailwise predict my-model new.csv --assign "precision>=0.8" -o sure.csv
    """
    output.set_up(quiet, jobs)
    from tailwise.cli.predictions import as_json_lines, as_lines, suggested, write_predictions
    from tailwise.data.files import plain_suffix
    from tailwise.errors import InvalidInput

    suffix = "" if to is None else plain_suffix(to)
    kind = _BY_SUFFIX.get(suffix, "jsonl" if as_json else "lines")
    if suffix in _NOT_WRITTEN:
        written = ", ".join(_BY_SUFFIX)
        raise InvalidInput(
            f"--output {to}: {suffix} is not written; name one of {written}, of which spreadsheets open .csv"
        )
    if as_json and kind != "jsonl":
        raise InvalidInput(f"--json writes JSON Lines, but --output {to} is {kind}; leave --json out, or name a .jsonl")
    rules = options.label_rules(include, exclude)
    tagger = inputs.open_tagger(model)
    suggest = how_many.suggester(tagger, k, assign, missing, rules=rules, language=reading.language)
    rows, row_ids = inputs.read_unlabelled(data, reading, id_column)
    with running.run_in(workdir, engine):
        blocks = suggested(suggest, rows)
        if to is None:
            for line in as_json_lines(blocks, row_ids) if as_json else as_lines(blocks, row_ids):
                output.emit(line.removesuffix("\n"))
            return
        write_predictions(to, kind, blocks, tagger.label_ids_, row_ids)
    output.say(f"wrote {to}")
