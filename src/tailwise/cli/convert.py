"""``tailwise convert``: between data formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailwise.cli import inputs, output


def convert(
    data: inputs.Data,
    to: Annotated[Path, typer.Argument(metavar="TO", help="The file or folder to write; its suffix tells the format.")],
    to_format: Annotated[
        str | None, typer.Option("--to", help="xmc, libsvm, jsonl, csv, tsv or parquet, where TO does not tell it.")
    ] = None,
    text_columns: inputs.TextColumns = None,
    label_column: inputs.LabelColumn = None,
    label_separator: inputs.LabelSeparator = None,
    label_names: inputs.LabelNames = None,
    format: inputs.Format = None,
    duplicates: inputs.Duplicates = None,
    label_base: inputs.LabelBase = None,
    feature_base: inputs.FeatureBase = None,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            "--spreadsheet-safe", help="Put ' before CSV and TSV cells that a spreadsheet would compute (= + - @)."
        ),
    ] = False,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Write DATA in another format: texts as JSON Lines, CSV, TSV or Parquet, rows as xmc or libsvm.

    Texts become rows of TF-IDF where TO is a format of rows. DATA with test rows is written as a folder.

    Examples:

    tailwise convert records.csv records.jsonl --text-columns title,body --label-column tags --label-separator '|'

    tailwise convert bibtex-train.arff.xz bibtex.svm
    """
    output.set_quiet(quiet)
    from tailwise.atomic import told_when_unwritable
    from tailwise.data.saving import convert as convert_data

    reading = inputs.Reading(
        text_columns, label_column, label_separator, format, duplicates, label_names, label_base, feature_base
    )
    with told_when_unwritable(to):
        written = convert_data(data, to, to_format, spreadsheet_safe=spreadsheet_safe, **reading.options())
    if as_json:
        output.emit_json({"written": [str(path) for path in written]})
    else:
        output.emit("\n".join(map(str, written)))
