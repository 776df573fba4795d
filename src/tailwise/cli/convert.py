"""``tailwise convert``: between data formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailwise.cli import inputs, options, output

_TO = {"format": "to"}  # what the library calls a format is the one written, here


@options.reads_data
def convert(
    data: options.Data,
    to: Annotated[Path, typer.Argument(metavar="TO", help="The file or folder to write; its suffix tells the format.")],
    to_format: Annotated[
        str | None,
        typer.Option("--to", help="xmc, libsvm, rows, jsonl, csv, tsv or parquet, where TO does not tell it."),
    ] = None,
    reading: options.Reading = options.UNTOLD,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe", help="Put ' before CSV and TSV cells that a spreadsheet would compute (= + - @)."
        ),
    ] = False,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Write DATA in another format: texts as JSON Lines, CSV, TSV or Parquet, rows as xmc, libsvm or mapped arrays.

    Texts become rows of TF-IDF where TO is a format of rows. DATA with test rows is written as a folder. A folder
    x.rows is for rows that are more than memory holds: it is written as they are read, and mapped by `tailwise train`.

    Examples:

    tailwise convert records.csv records.jsonl --text-columns title,body --label-column tags --label-separator '|'

    tailwise convert bibtex-train.arff.xz bibtex.svm

    tailwise convert amazon-3m.txt amazon-3m.rows
    """
    output.set_up(quiet, jobs)
    from tailwise.atomic import told_when_unwritable
    from tailwise.data.saving import stream, write_converted
    from tailwise.errors import spelled

    with told_when_unwritable(to), spelled(lambda name, value: options.as_option(_TO.get(name, name), value)):
        if stream(data, to, to_format, reading.options()):
            written = [to]
        else:
            found = inputs.load(data, reading, unit_rows=False)
            written = write_converted(found, to, to_format, spreadsheet_safe=spreadsheet_safe)
    if as_json:
        output.emit_json({"written": [str(path) for path in written]})
    else:
        output.emit("\n".join(map(str, written)))
