"""What do GLaS, its regulariser and input dropout bring on EURLex-4K, and at what cost?

Three tables: the model at the published size, with our defaults and as published, beside the published figures; the
other methods of the paper's Tables 3, 4 and 6 under both conventions of propensities; and regularisers and input
dropout changed one at a time over several seeds from our defaults (``tailwise experiment glas`` has the paper's Table
1 in full, from its own setting), with the gap between training and test rows.
Settings were chosen on a fifth of the training rows, at d = 256; ``python -m benchmarks glas choose`` compares them on
such a cut.

The paper's appendix computes PSP with propensities "for the full test label matrix"; the usual evaluation takes
training counts. Both are given: ``PSP`` and ``PSP, test counts``.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.harness import Matrices, matrices, measure, save_results

QUESTION = "What do GLaS, its regulariser and input dropout bring on EURLex-4K?"
CHOSEN = {"early_stopping": False}
TILTS = (0.3, 0.5)
TRIED = ((0.3, 0.02), (0.3, 0.05), (0.3, 0.1), (0.1, 0.05), (0.5, 0.05))
"""Margins and learning rates that were tried for the setting as published."""
COMPARED = ("SLEEC", "LEML", "PfastreXML", "FastXML", "Parabel", "DiSMEC", "PD-Sparse", "PPD-Sparse")
"""The other methods of the paper's EURLex-4K rows; XML-CNN reads raw texts, which EURLex-4K's files do not have."""
ABLATION: dict[str, dict[str, Any]] = {
    "GLaS, 0.8 of the features kept": {"input_keep_probability": 0.8},
    "spread-out": {"regularizer": "spreadout", "input_keep_probability": 0.8},
    "Laplacian": {"regularizer": "laplacian", "input_keep_probability": 0.8},
    "gravity": {"regularizer": "gravity", "input_keep_probability": 0.8},
    "no regulariser": {"regularizer": None, "input_keep_probability": 0.8},
    "0.6 of the features kept": {"input_keep_probability": 0.6},
    "every feature kept": {"input_keep_probability": 1.0},
    "neither": {"regularizer": None, "input_keep_probability": 1.0},
}
SHOWN = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5", "train P@1", "gap")
USUAL = [f"{metric}@{k}" for metric in ("p", "ndcg", "psp") for k in (1, 3, 5)]
TEST_COUNTS = [f"PSP@{k}, test counts" for k in (1, 3, 5)]
COLUMNS = [*(name.upper() for name in USUAL if name != "ndcg@1"), *TEST_COUNTS]
CHOICE = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def main(arguments: list[str]) -> None:
    """``choose`` | ``unstated [dim]`` | ``compare`` | ``headline [dim]`` | ``ablation [seeds] [dim]``.

    Without arguments the last two.
    """
    parts: dict[str, Callable[..., Any]] = {
        "choose": choose,
        "unstated": unstated,
        "compare": compare,
        "headline": headline,
        "ablation": ablation,
    }
    if arguments:
        results = {arguments[0]: parts[arguments[0]](*map(int, arguments[1:]))}
    else:
        results = {name: parts[name]() for name in ("headline", "ablation")}
    save_results(f"glas_{arguments[0]}" if arguments else "glas", results)


def fit_and_score(data: Matrices, **params: Any) -> dict[str, Any]:
    """Figures of one run of ours: metrics on test and training rows (percent), CPU-seconds and time of training."""
    from tailwise import GLaS

    return score(data, GLaS(**{"random_state": 0, **CHOSEN, **params}))


def score(data: Matrices, model: Any) -> dict[str, Any]:
    """Train a model; its figures with both conventions of propensities, and what training cost."""
    from tailwise import JainPropensity, evaluate

    with measure() as m:
        model.fit(data.X_train, data.Y_train)
    top = model.predict_topk(data.X_test, 5)
    usual = evaluate(data.Y_test, top, USUAL, propensity=JainPropensity().fit(data.Y_train), confidence=None)
    scored = [name for name in USUAL if name.startswith("psp")]
    theirs = evaluate(data.Y_test, top, scored, propensity=JainPropensity().fit(data.Y_test), confidence=None)
    trained = evaluate(data.Y_train, model.predict_topk(data.X_train, 1), ["p@1"], confidence=None)
    return {
        **{name.upper(): usual[name].value for name in USUAL},
        **{shown: theirs[name].value for shown, name in zip(TEST_COUNTS, scored, strict=True)},
        "train P@1": trained["p@1"].value,
        "epochs": getattr(model, "best_epoch_", None),
        "CPU-s": m.cpu,
        "s": m.wall,
        "peak MB": m.peak_mb,
    }


def published_figures(method: str) -> dict[str, float]:
    """What was published for a method on EURLex-4K, by column; GLaS's own PSP is of test counts."""
    from tailwise.experiments.published import published

    found = {name: published("EURLex-4K", method, name) for name in USUAL}
    figures = {name.upper(): value for name, value in found.items() if value is not None}
    if method == "GLaS":
        return {f"{name}, test counts" if name.startswith("PSP") else name: v for name, v in figures.items()}
    return figures


def side_by_side(title: str, models: dict[str, tuple[str, Any]]) -> list[dict[str, Any]]:
    """A table of models, each under the figures published for its method; ``models`` has (method, model) by name."""
    data = matrices("eurlex-4k")
    table = Table(title=title)
    for column in ("", *COLUMNS, "CPU-s"):
        table.add_column(column.replace(", test counts", " (test)"), justify="right" if column else "left")
    runs, shown = [], set()
    for name, (method, model) in models.items():
        if method not in shown:
            theirs = published_figures(method)
            table.add_row(f"{method}, published", *(f"{theirs[c]:.1f}" if c in theirs else "" for c in COLUMNS), "")
            shown.add(method)
        figures = score(data, model)
        runs.append({"model": name, **figures})
        table.add_row(name, *(f"{figures[column]:.1f}" for column in COLUMNS), f"{figures['CPU-s']:.0f}")
        print(f"  {name}: " + ", ".join(f"{column} {figures[column]:.1f}" for column in COLUMNS), flush=True)
    show(table)
    return runs


def headline(dim: int = 1024) -> list[dict[str, Any]]:
    """The model at the published size: as published, with its other loss and batches, and our defaults."""
    from tailwise import GLaS

    ours = {
        f"GLaS, logit_adjustment {tau:g}": GLaS(dim, logit_adjustment=tau, random_state=0, **CHOSEN) for tau in TILTS
    }
    published: dict[str, dict[str, Any]] = {
        "": {},
        ", mined negatives": {"loss": "negative_mining"},
        ", mined negatives, B = 1024": {"loss": "negative_mining", "batch_size": 1024},
    }
    models = {
        f"GLaS (as published{name})": GLaS.as_published(dim=dim, random_state=0, **changes)
        for name, changes in published.items()
    } | ours
    return side_by_side(f"GLaS, d = {dim}, EURLex-4K", {name: ("GLaS", model) for name, model in models.items()})


def compare() -> list[dict[str, Any]]:
    """The paper's Tables 3, 4 and 6: its other methods, ours beside published, with both conventions."""
    from tailwise.experiments.methods import select

    methods = {method.name: (method.name, method.make()) for method in select(COMPARED)}
    return side_by_side("EURLex-4K, the other methods", methods)


def unstated(dim: int = 128) -> list[dict[str, Any]]:
    """What the paper leaves open (margin, learning rate) compared on a fifth of the training rows."""
    from tailwise import GLaS

    data = inner_split()
    runs = []
    table = Table(title=f"as published, a fifth of the training rows, d = {dim}")
    for column in ("margin", "learning_rate", *CHOICE, "train P@1", "epochs", "CPU-s"):
        table.add_column(column, justify="right")
    for margin, rate in TRIED:
        model = GLaS.as_published(dim=dim, margin=margin, learning_rate=rate, random_state=0)
        figures = score(data, model)
        runs.append({"margin": margin, "learning_rate": rate, **figures})
        shown = [f"{figures[name]:.1f}" for name in (*CHOICE, "train P@1")]
        table.add_row(f"{margin:g}", f"{rate:g}", *shown, f"{figures['epochs']}", f"{figures['CPU-s']:.0f}")
        print(f"  margin {margin:g}, learning_rate {rate:g}: {', '.join(shown)}, {figures['epochs']}", flush=True)
    show(table)
    return runs


def ablation(seeds: int = 3, dim: int = 128) -> list[dict[str, Any]]:
    """One change at a time: mean and deviation over seeds on test rows, and the gap to training rows in P@1."""
    data = matrices("eurlex-4k")
    runs = []
    table = Table(title=f"d = {dim}, mean ± deviation over {seeds} seeds, EURLex-4K")
    for column in ("", *SHOWN):
        table.add_column(column, justify="right" if column else "left")
    for name, changes in ABLATION.items():
        settings = {"dim": dim, "logit_adjustment": TILTS[1], **changes}
        mine = [fit_and_score(data, random_state=seed, **settings) for seed in range(seeds)]
        for seed, run in enumerate(mine):
            runs.append({"setting": name, "seed": seed, **run, "gap": run["train P@1"] - run["P@1"]})
        cells = [spread([run[key] for run in runs[-seeds:]]) for key in SHOWN]
        print(f"  {name}: " + ", ".join(f"{key} {cell}" for key, cell in zip(SHOWN, cells, strict=True)), flush=True)
        table.add_row(name, *cells)
    show(table)
    return runs


def choose(dim: int = 256) -> list[dict[str, Any]]:
    """Settings compared on a fifth of the training rows, never on the test set."""
    inner = inner_split()
    runs = []
    table = Table(title=f"a fifth of the training rows, d = {dim}")
    for column in ("logit_adjustment", "input_keep_probability", *CHOICE):
        table.add_column(column, justify="right")
    for tau, keep in product((0.3, 0.4, 0.5, 0.6), (0.8, 1.0)):
        figures = fit_and_score(inner, dim=dim, logit_adjustment=tau, input_keep_probability=keep)
        runs.append({"logit_adjustment": tau, "input_keep_probability": keep, **figures})
        table.add_row(f"{tau:g}", f"{keep:g}", *(f"{figures[name]:.1f}" for name in CHOICE))
    show(table)
    return runs


def inner_split() -> Matrices:
    """Four fifths of the training rows to learn from, and one fifth to judge by."""
    data = matrices("eurlex-4k")
    order = np.random.default_rng(0).permutation(data.X_train.shape[0])
    cut, rest = order[: order.size // 5], order[order.size // 5 :]
    return Matrices(data.X_train[rest], data.Y_train[rest], data.X_train[cut], data.Y_train[cut])


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {deviation:.1f}"


def show(table: Table) -> None:
    """Print, wide enough for a log file."""
    Console(width=190).print(table)
