"""``tailwise split``: a data file as training and test files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailwise.cli import inputs, options, output


@options.reads_data
def split(
    data: options.Data,
    folder: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where train and test are written.")],
    test: Annotated[float, typer.Option("--test", min=0, max=1, help="The share of rows that are tested on.")] = 0.2,
    by_column: Annotated[
        str | None, typer.Option("--by-column", metavar="COLUMN", help="Rows of one value stay on one side.")
    ] = None,
    by_time: Annotated[
        str | None, typer.Option("--by-time", metavar="COLUMN", help="The latest rows are test: numbers or ISO dates.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The random seed.")] = 0,
    reading: options.Reading = options.UNTOLD,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Divide DATA into training and test files, with rare labels on both sides as far as they go.

    Every label of 2 rows or more is trained on, those of 5 or more are tested on too. All columns are kept.

    Examples:

    tailwise split records.csv -o parts --test 0.2

    tailwise split records.xlsx -o parts --by-time published
    """
    output.set_up(quiet, jobs)
    from tailwise.atomic import told_when_unwritable
    from tailwise.data import TextDataset, split_file

    with inputs.opened(data) as path, told_when_unwritable(folder):
        options = reading.options()
        done = split_file(
            path, folder, test_fraction=test, by_column=by_column, by_time=by_time, random_state=seed, **options
        )
    if isinstance(done.data, TextDataset):
        inputs.say_found(done.data)
    train, tested = (done.data.Y_train[rows] for rows in done.split)
    sides = [set(part.indices.tolist()) for part in (train, tested)]
    output.say(
        f"{train.shape[0]:,} training and {tested.shape[0]:,} test rows; of {done.data.n_labels:,} labels "
        f"{len(sides[0] & sides[1]):,} are on both sides, {len(sides[1] - sides[0]):,} only in the test rows"
    )
    if as_json:
        rows = {"train rows": train.shape[0], "test rows": tested.shape[0]}
        output.emit_json({"written": [str(path) for path in done.written], **rows})
    else:
        output.emit("\n".join(map(str, done.written)))
