"""Running an experiment cell by cell, so that it can be stopped at any time and taken up again.

An experiment is a list of independent cells (one training, one draw of missing labels). Each cell's result is a small
file, written whole when the cell is done; a second run of the same experiment into the same folder computes only what
is missing. Nothing in the folder depends on the clock, on the number of threads or on how often the run was stopped.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tailwise.atomic import writing
from tailwise.display import plain
from tailwise.errors import InvalidInput, import_extra
from tailwise.parallel import map_blocks
from tailwise.validation import check_choice, check_number

SIZES = ("quick", "default", "full")
"""How much to compute: seconds for a look, minutes, or the whole data."""

Record = dict[str, Any]
"""Names and plain values: numbers, strings, lists."""


class Summary(NamedTuple):
    """What the cells say together."""

    rows: list[Record]
    """The table: one record a row, all with the same names."""
    findings: list[str]
    """Sentences with the figures that answer the experiment's questions."""
    figures: dict[str, Any]
    """matplotlib figures by file name, without suffix."""


class Outcome(NamedTuple):
    """What :func:`run_experiment` leaves behind."""

    folder: Path
    rows: list[Record]
    findings: list[str]
    computed: int
    """Cells computed by this run; the others were there already."""


@dataclass(frozen=True)
class Experiment:
    """One experiment: its question, its cells, how to compute one and how to read them all.

    ``choose(size, options)`` gives the settings; ``cells(settings)`` the cells, each a record that names it;
    ``prepare(settings, n_jobs)`` what all cells share (called once, and only if a cell is missing);
    ``compute(shared, cell, n_jobs)`` a cell's result; ``summarise(settings, results, prepared)`` the rest, where
    ``prepared()`` gives what the cells shared.
    """

    name: str
    question: str
    choose: Callable[[str, Record], Record]
    cells: Callable[[Record], list[Record]]
    prepare: Callable[[Record, int | None], Any]
    compute: Callable[[Any, Record, int | None], Record]
    summarise: Callable[[Record, list[Record], Callable[[], Any]], Summary]
    options: tuple[str, ...] = ()
    """Names of the options that ``choose`` understands."""
    cells_at_once: bool = False
    """Run cells on threads, one thread a cell, instead of one after the other on all threads."""


def run_experiment(
    experiment: Experiment,
    folder: str | Path,
    *,
    size: str = "default",
    seed: int = 0,
    n_jobs: int | None = None,
    **options: Any,
) -> Outcome:
    """Compute the missing cells and write ``results.json``, ``results.csv`` and the plots into ``folder``.

    The same experiment, size, seed and options give the same files, byte for byte, for every ``n_jobs``.
    """
    # Asked for now, not when the cells are computed and the plots are to be drawn.
    import_extra("matplotlib", "report", f"the experiment {experiment.name}")
    check_choice("size", size, SIZES)
    check_number("seed", seed, integer=True, low=0)
    given = {name: value for name, value in options.items() if value is not None}
    if unknown := set(given) - set(experiment.options):
        takes = ", ".join(experiment.options) or "none"
        raise InvalidInput(f"{experiment.name} has no option {unknown.pop()!r}; it takes: {takes}")
    settings = {"size": size, "seed": seed, **experiment.choose(size, given)}
    folder = Path(folder)
    _claim(folder, {"experiment": experiment.name, **settings})

    cells = experiment.cells(settings)
    files = {_cell_name(cell): cell for cell in cells}
    if len(files) != len(cells):
        raise InvalidInput(f"{experiment.name} has two cells of the same name")
    missing = [cell for name, cell in files.items() if _read_cell(folder, name) is None]
    prepare = cache(lambda: experiment.prepare(settings, n_jobs))

    def compute(cell: Record) -> None:
        result = experiment.compute(prepare(), cell, 1 if experiment.cells_at_once else n_jobs)
        _write_json(_cell_path(folder, _cell_name(cell)), cell | result)

    if missing:
        prepare()
    map_blocks(
        compute, missing, n_jobs=n_jobs if experiment.cells_at_once else 1, description=f"Experiment {experiment.name}"
    )
    results = [record for name in files if (record := _read_cell(folder, name)) is not None]
    summary = experiment.summarise(settings, results, prepare)
    _write_summary(
        folder, {"experiment": experiment.name, "question": experiment.question, **settings}, summary, results
    )
    return Outcome(folder, summary.rows, summary.findings, len(missing))


def _claim(folder: Path, settings: Record) -> None:
    """Refuse a folder that holds another experiment, or this one with other settings."""
    path = folder / "settings.json"
    settings = json.loads(json.dumps(settings))
    if path.exists():
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            before = {}
        if before != settings:
            differ = [name for name in {**before, **settings} if before.get(name) != settings.get(name)]
            raise InvalidInput(
                f"{folder} holds a run with {differ[0]}={before.get(differ[0])!r}, but this one has "
                f"{differ[0]}={settings.get(differ[0])!r}; choose another folder, or remove that one"
            )
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} exists and holds no experiment; choose another folder")
    else:
        _write_json(path, settings)


def _cell_name(cell: Mapping[str, Any]) -> str:
    return re.sub(r"[^\w.=+,-]", "_", ",".join(f"{name}={value}" for name, value in cell.items()))


def _cell_path(folder: Path, name: str) -> Path:
    return folder / "cells" / f"{name}.json"


def _read_cell(folder: Path, name: str) -> Record | None:
    try:
        return json.loads(_cell_path(folder, name).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _write_summary(folder: Path, facts: Record, summary: Summary, results: Sequence[Record]) -> None:
    _write_json(
        folder / "results.json", {**facts, "findings": summary.findings, "table": summary.rows, "cells": results}
    )
    text = io.StringIO()
    if summary.rows:
        table = csv.DictWriter(text, list(summary.rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(summary.rows)
    with writing(folder / "results.csv") as file:
        file.write(text.getvalue().encode())
    from tailwise.experiments.plotting import save

    for name, figure in summary.figures.items():
        save(figure, folder / name)


def _write_json(path: Path, value: Any) -> None:
    with writing(path) as file:
        file.write((json.dumps(plain(value), indent=1, ensure_ascii=False) + "\n").encode())
