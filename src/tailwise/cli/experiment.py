"""``tailwise experiment``: the experiments of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailwise.cli import output


def experiment(
    name: Annotated[str | None, typer.Argument(help="Which one; without a name: list them.")] = None,
    to: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder for results.json, results.csv and the plots.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Little data, in seconds: to see that it works.")] = False,
    full: Annotated[bool, typer.Option("--full", help="All the data and more repeats: up to hours.")] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
    data: Annotated[
        str | None,
        typer.Option(
            help="A data set's name; for losses, images and powerlaw the folder with the files, for hierarchy "
            "WordNet's, for dense a file of texts."
        ),
    ] = None,
    jobs: output.Jobs = None,
    as_json: output.Json = False,
    quiet: output.Quiet = False,
) -> None:
    """Run one of the papers' experiments and say what it showed.

    A stopped run goes on where it was when it is started again with the same folder.

    Examples:

    tailwise experiment losses

    tailwise experiment dropping --quick -o look
    """
    output.set_up(quiet, jobs)
    from tailwise.errors import InvalidInput
    from tailwise.experiments.catalogue import QUESTIONS, load_experiment
    from tailwise.experiments.running import run_experiment

    if name is None:
        if as_json:
            output.emit_json(QUESTIONS)
        else:
            from tailwise.display import Table

            output.emit_table(Table("", ["experiment", "question"], list(QUESTIONS.items()), left=2))
        return
    if quick and full:
        raise InvalidInput("--quick and --full exclude each other; give one or none")
    chosen = load_experiment(name)
    size = "quick" if quick else "full" if full else "default"
    folder = to or Path("results") / (name if size == "default" else f"{name}-{size}")
    done = run_experiment(chosen, folder, size=size, seed=seed, n_jobs=jobs, data=data)
    if as_json:
        output.emit_json({"experiment": name, "folder": str(folder), "findings": done.findings, "table": done.rows})
    else:
        output.emit("\n".join(done.findings))
    output.say(f"computed {done.computed} cells; wrote results.json, results.csv and plots to {folder}")
