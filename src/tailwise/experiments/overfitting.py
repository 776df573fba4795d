"""Experiment ``overfitting``: training and test accuracy by epoch, with and without what regularises.

After figure 1 and table 2 of *Breaking the Glass Ceiling for Embedding-Based Classifiers for Large Output Spaces*. The
paper's network is trained by each of the two losses that it names: as in its algorithm 1 (neither), with input dropout
alone, with the GLaS regulariser alone and with both (algorithm 2). After every epoch P@1 is measured on training rows
and on test rows.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.data import Dataset
from tailwise.embedding import GLaS
from tailwise.embedding.index import ExactIndex
from tailwise.experiments.embeddings import LOSSES, facts, load_rows, mean_and_deviation, with_dataset
from tailwise.experiments.running import Record, Summary
from tailwise.rows import UNIT_LENGTH
from tailwise.validation import check_features, check_labels

NEITHER: Record = {"regularizer": None, "input_keep_probability": 1.0}
REGULARISED: dict[str, Record] = {
    "neither": NEITHER,
    "dropout": {**NEITHER, "input_keep_probability": 0.8},
    "regulariser": {**NEITHER, "regularizer": "glas"},
    "both": {"regularizer": "glas", "input_keep_probability": 0.8},
}
"""The settings that are compared, as changes of the base."""


class WatchedGLaS(GLaS):
    """GLaS that measures P@1 on the rows of ``watched`` after each epoch of a training without early stopping."""

    watched: dict[str, tuple[sparse.csr_array, sparse.csr_array]]
    seen: dict[str, list[float]]

    def watching(self, **watched: tuple[Any, Any]) -> WatchedGLaS:
        """This model, watching rows and labels by name."""
        self.watched = {name: (UNIT_LENGTH(check_features(X)), check_labels(Y)) for name, (X, Y) in watched.items()}
        self.seen = {name: [] for name in watched}
        return self

    def _after_epoch(self, run: Any) -> None:
        tower, vectors = run.result()
        index = ExactIndex(n_jobs=self.n_jobs).build(vectors, np.flatnonzero(self.label_counts_ > 0))
        for name, (X, Y) in self.watched.items():
            best = index.search(tower.encode(X, n_jobs=self.n_jobs), 1).labels[:, 0]
            self.seen[name].append(100 * float(np.mean(Y[np.arange(best.size), best])))


def choose(size: str, options: Record) -> Record:
    """Dimension, epochs and repeats of each size."""
    usual = {
        "dataset": "eurlex-4k",
        "watched_rows": 4_000,
        "losses": ["margin", "negative_mining"],
        "repeats": 2,
        "base": {"dim": 128, "epochs": 12, "batch_size": 1024},
    }
    by_size: dict[str, Record] = {
        "quick": {"dataset": "synthetic", "repeats": 1, "base": {"dim": 16, "epochs": 4, "batch_size": 64}},
        "default": {},
        "full": {"repeats": 5, "base": {"dim": 1024, "epochs": 20, "batch_size": 1024}},
    }
    return with_dataset({**usual, **by_size[size]}, options)


def cells(settings: Record) -> list[Record]:
    """Each loss in each setting with each seed."""
    return [
        {"loss": loss, "setting": name, "repeat": repeat}
        for repeat in range(settings["repeats"])
        for loss in settings["losses"]
        for name in REGULARISED
    ]


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, Dataset, np.ndarray]:
    """The data, and the training rows that are watched."""
    data = load_rows(settings, n_jobs)
    labelled = np.flatnonzero(np.diff(check_labels(data.Y_train).indptr) > 0)
    some = np.random.default_rng(settings["seed"]).permutation(labelled)[: settings["watched_rows"]]
    return settings, data, np.sort(some)


def compute(shared: tuple[Record, Dataset, np.ndarray], cell: Record, n_jobs: int | None) -> Record:
    """One training: P@1 after each epoch on training rows and on test rows, in percent."""
    settings, data, some = shared
    model = WatchedGLaS.as_published(
        **{**settings["base"], "loss": cell["loss"], **REGULARISED[cell["setting"]]},
        early_stopping=False,
        random_state=settings["seed"] + cell["repeat"],
        n_jobs=n_jobs,
    ).watching(train=(data.X_train[some], data.Y_train[some]), test=(data.X_test, data.Y_test))
    model.fit(data.X_train, data.Y_train)
    return {
        **{name: [round(value, 3) for value in values] for name, values in model.seen.items()},
        "training_loss": [entry["loss"] for entry in model.history_],
    }


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """Mean and deviation over seeds after every epoch, the generalisation gap at the end, and the plot."""
    rows = []
    for loss, name in product(settings["losses"], REGULARISED):
        mine = [r for r in results if (r["loss"], r["setting"]) == (loss, name)]
        for epoch in range(settings["base"]["epochs"]):
            row: Record = {"loss": loss, "setting": name, "epoch": epoch + 1, "repeats": len(mine)}
            at = {part: [r[part][epoch] for r in mine] for part in ("train", "test")}
            at["gap"] = [train - test for train, test in zip(at["train"], at["test"], strict=True)]
            for part, values in at.items():
                row[part], row[f"{part}_sd"] = mean_and_deviation(values)
            rows.append(row)
    return Summary(rows, _findings(settings, rows, prepared()[1]), {"overfitting": _plot(settings, rows)})


def _findings(settings: Record, rows: list[Record], data: Dataset) -> list[str]:
    said = [facts(settings, data)]
    for loss in settings["losses"]:
        mine = [row for row in rows if row["loss"] == loss]
        last = {row["setting"]: row for row in mine if row["epoch"] == settings["base"]["epochs"]}
        for name, row in last.items():
            best = max((r for r in mine if r["setting"] == name), key=lambda r: r["test"])
            said.append(
                f"{LOSSES[loss]}, {name}: training {row['train']:.1f} ± {row['train_sd']:.1f}, "
                f"test {row['test']:.1f} ± {row['test_sd']:.1f}, "
                f"gap {row['gap']:.1f} ± {row['gap_sd']:.1f} after {row['epoch']} epochs; "
                f"best on test rows after {best['epoch']}: {best['test']:.1f}."
            )
        for name in list(REGULARISED)[1:]:
            wider, better = (last[name][part] - last["neither"][part] for part in ("gap", "test"))
            said.append(f"{LOSSES[loss]}, {name} against neither: gap {wider:+.1f}, test {better:+.1f} points.")
    return said


def _plot(settings: Record, rows: list[Record]) -> Any:
    from tailwise.experiments.plotting import COLOURS, line, make_figure

    figure, axes = make_figure(1, len(settings["losses"]), width=4.6)
    for axis, loss in zip(axes[0], settings["losses"], strict=True):
        for i, name in enumerate(REGULARISED):
            mine = [row for row in rows if (row["loss"], row["setting"]) == (loss, name)]
            for part, style in (("train", "-"), ("test", "--")):
                curve = ([row[key] for row in mine] for key in ("epoch", part, f"{part}_sd"))
                line(axis, i, *curve, label=f"{name}, {part}", linestyle=style, color=COLOURS[i])
        axis.set_title(LOSSES[loss])
        axis.set_xlabel("epoch")
    axes[0, 0].set_ylabel("P@1, %")
    axes[0, -1].legend(frameon=False, fontsize=7)
    return figure
