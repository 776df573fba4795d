"""``tailwise reproduce``: ours beside the published figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tailwise.cli import output


def reproduce(
    dataset: Annotated[str, typer.Option(help="A data set's name, or a folder that is called like it.")] = "eurlex-4k",
    train: Annotated[
        Path | None, typer.Option(help="The data set's training file, where it cannot be fetched by name.")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="The data set's test file.")] = None,
    methods: Annotated[
        str | None, typer.Option(help="Methods separated by commas; all that the papers report by default.")
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="A few quick methods: about two minutes in all.")] = False,
    to: Annotated[Path, typer.Option("--output", "-o", help="Folder for table.md, table.csv and table.html.")] = Path(
        "results/reproduce"
    ),
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Train the methods of the papers and print ours, the published figure and the difference, with time and memory.

    Examples:

    tailwise reproduce --demo

    tailwise reproduce --dataset eurlex-4k --methods dismec,pw-dismec,parabel -o eurlex-table

    tailwise reproduce --dataset bibtex --train bibtex-train.arff --test bibtex-test.arff --methods leml,cplst,sleec
    """
    output.set_up(quiet, jobs)
    from tailwise.data import load_dataset
    from tailwise.errors import InvalidInput
    from tailwise.experiments import reproduce as work
    from tailwise.experiments.methods import select

    chosen = select([name for name in (methods or "").split(",") if name.strip()], demo=demo)
    if test is not None and train is None:
        raise InvalidInput(f"--test {test} stands alone; name the training file too, by --train")
    note = ""
    if train is not None:
        data = load_dataset(train, test=test)
        data.name = dataset
    elif demo and dataset == "eurlex-4k":
        data, note = work.demo_dataset()
    else:
        data = load_dataset(dataset)
    if note:
        output.warn(note)
    title = f"{data.name}: ours beside the published figures"
    output.say(
        f"{data.name}: {data.n_train:,} + {data.n_test:,} rows, {data.n_features:,} features, {data.n_labels:,} labels"
    )

    def keep(rows: list[Any]) -> None:
        last = rows[-1]
        p1, psp1 = last.values["p@1"], last.values["psp@1"]
        output.say(f"{last.method}: trained in {last.train_seconds:.1f} s, P@1 {p1:.1f}, PSP@1 {psp1:.1f}")
        work.write_tables(to, title, rows)

    rows = work.reproduce(data, chosen, on_row=keep)
    if as_json:
        output.emit_json({"dataset": data.name, "note": note, "rows": [row._asdict() for row in rows]})
    else:
        precision, ranking = work.tables("", rows)
        output.emit_table(precision)
        output.emit("")
        output.emit_table(ranking)
    compiling = sum(row.compile_seconds for row in rows)
    output.say(f"compiling took {compiling:.1f} s before that, on the first use only; it is in no figure of the table")
    output.say(f"wrote {', '.join(str(to / name) for name in ('table.md', 'table.csv', 'table.html'))}")
