"""What do GLaS, its regulariser and input dropout bring on EURLex-4K, and at what cost?

Three tables: the model at the published size beside the published figures; regularisers × input dropout over several
seeds; and the gap between training and test rows with and without regularisation. ``logit_adjustment`` was chosen on
2,000 rows cut from the training set, at d = 256; ``python -m benchmarks glas choose`` compares it, and the number of
epochs, on such a cut.

The paper's appendix computes PSP with propensities "for the full test label matrix"; the usual evaluation takes
training counts. Both are given.
"""

from __future__ import annotations

import statistics
from itertools import product
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.harness import Matrices, matrices, measure, save_results

QUESTION = "What do GLaS, its regulariser and input dropout bring on EURLex-4K?"
PUBLISHED = {"P@1": 77.5, "P@3": 65.01, "P@5": 54.37, "PSP@1": 49.77, "PSP@3": 51.05, "PSP@5": 53.82}
CHOSEN = {"logit_adjustment": 0.3, "epochs": 10, "early_stopping": False}
REGULARIZERS = ("glas", "spreadout", "laplacian", "gravity", None)
KEEP = (1.0, 0.8, 0.6)
NAMES = [f"{metric}@{k}" for metric in ("p", "psp") for k in (1, 3, 5)]


def main(arguments: list[str]) -> None:
    """``choose`` | ``headline`` | ``ablation [seeds] [dim]`` | ``gap``; without arguments the last three."""
    parts = {"choose": choose, "headline": headline, "ablation": ablation, "gap": gap}
    if arguments:
        results = {arguments[0]: parts[arguments[0]](*map(int, arguments[1:]))}
    else:
        results = {name: parts[name]() for name in ("headline", "ablation", "gap")}
    save_results(f"glas_{arguments[0]}" if arguments else "glas", results)


def fit_and_score(data: Matrices, **params: Any) -> dict[str, Any]:
    """Figures of one run: metrics on test and training rows (percent), CPU-seconds and wall time of training."""
    from tailwise import GLaS, JainPropensity, evaluate

    settings: dict[str, Any] = {"random_state": 0, **CHOSEN, **params}
    with measure() as m:
        model = GLaS(**settings).fit(data.X_train, data.Y_train)
    top = model.predict_topk(data.X_test, 5)
    usual = evaluate(data.Y_test, top, NAMES, propensity=JainPropensity().fit(data.Y_train), confidence=None)
    theirs = evaluate(data.Y_test, top, NAMES[3:], propensity=JainPropensity().fit(data.Y_test), confidence=None)
    trained = evaluate(data.Y_train, model.predict_topk(data.X_train, 1), ["p@1"], confidence=None)
    return {
        **{name.upper(): usual[name].value for name in NAMES},
        **{f"{name.upper()} (test counts)": theirs[name].value for name in NAMES[3:]},
        "train P@1": trained["p@1"].value,
        "epochs": model.best_epoch_,
        "CPU-s": m.cpu,
        "s": m.wall,
        "peak MB": m.peak_mb,
    }


def headline(dim: int = 1024) -> list[dict[str, Any]]:
    """The model at the published size beside the published figures."""
    data = matrices("eurlex-4k")
    figures = fit_and_score(data, dim=dim)
    table = Table(title=f"GLaS, d = {dim}, regularizer glas, λ = 10, input dropout 0.8, EURLex-4K")
    for column in ("", *PUBLISHED, "CPU-s", "s"):
        table.add_column(column, justify="right")
    table.add_row("published", *(f"{v:.1f}" for v in PUBLISHED.values()), "–", "–")
    table.add_row("ours", *(f"{figures[n]:.1f}" for n in PUBLISHED), f"{figures['CPU-s']:.0f}", f"{figures['s']:.0f}")
    paper = [f"{figures[n]:.1f}" if n[1] == "@" else f"{figures[n + ' (test counts)']:.1f}" for n in PUBLISHED]
    table.add_row("ours, propensities from test counts", *paper, "", "")
    show(table)
    return [figures]


def ablation(seeds: int = 3, dim: int = 256) -> list[dict[str, Any]]:
    """Regularisers × input dropout: mean over seeds, and the standard deviation."""
    data = matrices("eurlex-4k")
    runs = []
    for regularizer, keep, seed in product(REGULARIZERS, KEEP, range(seeds)):
        figures = fit_and_score(data, dim=dim, regularizer=regularizer, input_dropout=keep, random_state=seed)
        runs.append({"regularizer": regularizer, "input_dropout": keep, "seed": seed, **figures})
    table = Table(title=f"test P@1 / PSP@5, mean ± deviation over {seeds} seeds, d = {dim}, EURLex-4K")
    table.add_column("regularizer")
    for keep in KEEP:
        table.add_column(f"input dropout {keep:g}", justify="right")
    for regularizer in REGULARIZERS:
        cells = []
        for keep in KEEP:
            cell = [run for run in runs if (run["regularizer"], run["input_dropout"]) == (regularizer, keep)]
            cells.append(" / ".join(spread([run[name] for run in cell]) for name in ("P@1", "PSP@5")))
        table.add_row(str(regularizer), *cells)
    show(table)
    return runs


def gap(seeds: int = 2, dim: int = 256) -> list[dict[str, Any]]:
    """Training and test P@1, with and without regularisation (the paper's Table 2, on EURLex-4K)."""
    data = matrices("eurlex-4k")
    settings = {
        "GLaS and input dropout": {},
        "GLaS alone": {"input_dropout": 1.0},
        "input dropout alone": {"regularizer": None},
        "neither": {"regularizer": None, "input_dropout": 1.0},
    }
    table = Table(title=f"generalisation gap in P@1, d = {dim}, {seeds} seeds, EURLex-4K")
    for column in ("", "train", "test", "gap"):
        table.add_column(column, justify="right")
    runs = []
    for name, changes in settings.items():
        mine = [
            {"setting": name, "seed": seed, **fit_and_score(data, dim=dim, random_state=seed, **changes)}
            for seed in range(seeds)
        ]
        runs += mine
        pairs = [(run["train P@1"], run["P@1"]) for run in mine]
        columns = [[a for a, _ in pairs], [b for _, b in pairs], [a - b for a, b in pairs]]
        table.add_row(name, *(spread(column) for column in columns))
    show(table)
    return runs


def choose(dim: int = 256) -> list[dict[str, Any]]:
    """Settings compared on rows cut from the training set, never on the test set."""
    data = matrices("eurlex-4k")
    order = np.random.default_rng(0).permutation(data.X_train.shape[0])
    cut, rest = order[:2000], order[2000:]
    inner = Matrices(data.X_train[rest], data.Y_train[rest], data.X_train[cut], data.Y_train[cut])
    runs = []
    table = Table(title=f"2,000 rows cut from the training set, d = {dim}")
    for column in ("logit_adjustment", "epochs", *PUBLISHED):
        table.add_column(column, justify="right")
    for tau, epochs in product((0.0, 0.3, 0.6), (6, 10)):
        figures = fit_and_score(inner, dim=dim, logit_adjustment=tau, epochs=epochs)
        runs.append({"logit_adjustment": tau, **figures})
        table.add_row(f"{tau:g}", str(epochs), *(f"{figures[name]:.1f}" for name in PUBLISHED))
    show(table)
    return runs


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {deviation:.1f}"


def show(table: Table) -> None:
    """Print, wide enough for a log file."""
    Console(width=160).print(table)
