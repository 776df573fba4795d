"""Experiment ``glas``: each part of GLaS's setting changed alone.

After table 1 of *Breaking the Glass Ceiling for Embedding-Based Classifiers for Large Output Spaces*, from the paper's
base setting (``GLaS.as_published``), at a smaller dimension by default, with each of the two losses that the paper
names; and beyond that table, one at a time, what the defaults of :class:`~tailwise.embedding.GLaS` do otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import sqrt
from typing import Any

from tailwise.data import Dataset
from tailwise.embedding import GLaS
from tailwise.experiments.embeddings import (
    ACCURACY,
    LOSSES,
    METRICS,
    facts,
    judged,
    load_rows,
    mean_and_deviation,
    with_dataset,
)
from tailwise.experiments.running import Record, Summary

TITLES = {
    "regularizer": "regulariser",
    "reg_weight": "λ",
    "input_keep_probability": "features kept",
    "batch_size": "B",
    "dim": "d",
    "activation": "activation",
    "weight_normalization": "weight normalisation",
    "start": "label vectors start",
    "min_batches": "batches an epoch, at least",
}
"""The parameters that are varied, and what the table calls them; the last three are not in the paper's table."""
MEASURES = (*METRICS, "train", "gap", "best_epoch")


def choose(size: str, options: Record) -> Record:
    """Base, values and seeds of each size. A value of the base stands for itself in every line of the table."""
    usual = {
        "dataset": "eurlex-4k",
        "losses": ["margin", "negative_mining"],
        "repeats": 2,
        "base": {"dim": 64},
        "varied": {
            "regularizer": [None, "glas", "spreadout", "gravity"],
            "reg_weight": [1.0, 10.0, 100.0, 1000.0],
            "input_keep_probability": [1.0, 0.8, 0.6],
            "batch_size": [1024, 2048, 4096],
            "dim": [32, 64, 128],
            "activation": ["linear", "relu"],
            "weight_normalization": [False, True],
            "start": ["random", "rows"],
            "min_batches": [1, 16],
        },
    }
    by_size: dict[str, Record] = {
        "quick": {
            "dataset": "synthetic",
            "losses": ["negative_mining"],
            "repeats": 2,
            "base": {"dim": 16, "epochs": 3, "batch_size": 128},
            "varied": {"regularizer": [None, "glas"], "dim": [8, 16], "activation": ["linear", "relu"]},
        },
        "default": {},
        "full": {"repeats": 5, "base": {"dim": 1024}},
    }
    chosen: Record = {**usual, **by_size[size]}
    if size == "full":
        chosen["varied"] = {**chosen["varied"], "dim": [256, 512, 1024]}
    return with_dataset(chosen, options)


def cells(settings: Record) -> list[Record]:
    """The base, and every value that differs from it, with each seed."""
    base = _base(settings)
    changes = [(name, value) for name, values in settings["varied"].items() for value in values if value != base[name]]
    return [
        {"loss": loss, "changed": name, "to": str(value), "repeat": repeat}
        for repeat in range(settings["repeats"])
        for loss in settings["losses"]
        for name, value in [("nothing", ""), *changes]
    ]


def _base(settings: Record) -> Record:
    return GLaS.as_published(**settings["base"]).get_params(deep=False)


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, Dataset]:
    """The data."""
    return settings, load_rows(settings, n_jobs)


def compute(shared: tuple[Record, Dataset], cell: Record, n_jobs: int | None) -> Record:
    """One training and its figures."""
    settings, data = shared
    values = {str(value): value for value in settings["varied"].get(cell["changed"], ())}
    change = {cell["changed"]: values[cell["to"]]} if values else {}
    drawn = {"random_state": settings["seed"] + cell["repeat"], "n_jobs": n_jobs}
    model = GLaS.as_published(**{**settings["base"], "loss": cell["loss"], **change, **drawn})
    model.fit(data.X_train, data.Y_train)
    return {**judged(model, data), "best_epoch": model.best_epoch_}


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """A line a value: mean and deviation over seeds; the base stands wherever its value is varied."""
    base, rows = _base(settings), []
    for loss, (name, values) in product(settings["losses"], settings["varied"].items()):
        for value in values:
            is_base = value == base[name]
            key = (loss, "nothing", "") if is_base else (loss, name, str(value))
            mine = [r for r in results if (r["loss"], r["changed"], r["to"]) == key]
            row: Record = {"loss": loss, "varied": name, "value": str(value), "base": is_base, "repeats": len(mine)}
            for measure in MEASURES:
                row[measure], row[f"{measure}_sd"] = mean_and_deviation([r[measure] for r in mine])
            rows.append(row)
    return Summary(rows, _findings(settings, rows, prepared()[1]), {"glas": _plot(settings, rows)})


def _findings(settings: Record, rows: list[Record], data: Dataset) -> list[str]:
    said = [facts(settings, data)]
    for loss, name in product(settings["losses"], settings["varied"]):
        mine = [row for row in rows if (row["loss"], row["varied"]) == (loss, name)]
        own = next(row for row in mine if row["base"])
        best = max(mine, key=lambda row: row[ACCURACY])
        parts = ", ".join(f"{row['value']} {row[ACCURACY]:.1f} ± {row[f'{ACCURACY}_sd']:.1f}" for row in mine)
        if best is own:
            verdict = "the paper's value is the best"
        else:
            error = sqrt((best[f"{ACCURACY}_sd"] ** 2 + own[f"{ACCURACY}_sd"] ** 2) / own["repeats"])
            verdict = f"best {best['value']}, by {best[ACCURACY] - own[ACCURACY]:.1f} ± {error:.1f} over {own['value']}"
        said.append(f"{LOSSES[loss]}, {TITLES[name]}: {parts}; {verdict}.")
    return said


def _plot(settings: Record, rows: list[Record]) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    names = list(settings["varied"])
    columns = min(5, len(names))
    figure, axes = make_figure(-(-len(names) // columns), columns, width=2.6, height=2.4)
    for axis, name in zip(axes.flat, names, strict=False):
        for i, loss in enumerate(settings["losses"]):
            mine = [row for row in rows if (row["loss"], row["varied"]) == (loss, name)]
            values, spread = [row[ACCURACY] for row in mine], [row[f"{ACCURACY}_sd"] for row in mine]
            line(axis, i, range(len(mine)), values, spread, label=LOSSES[loss], linestyle="none")
            axis.set_xticks(range(len(mine)), [row["value"] for row in mine], rotation=30, fontsize=8)
        axis.set_title(TITLES[name], fontsize=9)
    for axis in axes.flat[len(names) :]:
        axis.set_visible(False)
    axes[0, 0].set_ylabel("P@1 on test rows, %", fontsize=8)
    axes[0, 0].legend(frameon=False, fontsize=7)
    return figure
