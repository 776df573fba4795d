"""What do GLaS, its regulariser and input dropout bring on EURLex-4K, and at what cost?

Two tables: the model at the published size beside the published figures; and regularisers and input dropout changed one
at a time over several seeds, as in the paper's Table 1, with the gap between training and test rows, as in its Table 2.
Settings were chosen on a fifth of the training rows, at d = 256; ``python -m benchmarks glas choose`` compares them on
such a cut.

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
CHOSEN = {"early_stopping": False}
TILTS = (0.3, 0.5)
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
NAMES = [f"{metric}@{k}" for metric in ("p", "psp") for k in (1, 3, 5)]


def main(arguments: list[str]) -> None:
    """``choose`` | ``headline [dim]`` | ``ablation [seeds] [dim]``; without arguments the last two."""
    parts = {"choose": choose, "headline": headline, "ablation": ablation}
    if arguments:
        results = {arguments[0]: parts[arguments[0]](*map(int, arguments[1:]))}
    else:
        results = {name: parts[name]() for name in ("headline", "ablation")}
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
    """The model at the published size beside the published figures, as it comes and with rare labels favoured more."""
    data = matrices("eurlex-4k")
    table = Table(title=f"GLaS, d = {dim}, EURLex-4K")
    for column in ("", *PUBLISHED, "CPU-s", "s"):
        table.add_column(column, justify="right")
    table.add_row("published", *(f"{v:.1f}" for v in PUBLISHED.values()), "–", "–")
    runs = []
    for tau in TILTS:
        figures = fit_and_score(data, dim=dim, logit_adjustment=tau)
        runs.append({"logit_adjustment": tau, **figures})
        usual = [f"{figures[name]:.1f}" for name in PUBLISHED]
        theirs = ["" if n.startswith("P@") else f"{figures[n + ' (test counts)']:.1f}" for n in PUBLISHED]
        table.add_row(f"logit_adjustment {tau:g}", *usual, f"{figures['CPU-s']:.0f}", f"{figures['s']:.0f}")
        table.add_row("propensities from test counts", *theirs, "", "")
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
    data = matrices("eurlex-4k")
    order = np.random.default_rng(0).permutation(data.X_train.shape[0])
    cut, rest = order[: order.size // 5], order[order.size // 5 :]
    inner = Matrices(data.X_train[rest], data.Y_train[rest], data.X_train[cut], data.Y_train[cut])
    runs = []
    table = Table(title=f"a fifth of the training rows, d = {dim}")
    for column in ("logit_adjustment", "input_keep_probability", *PUBLISHED):
        table.add_column(column, justify="right")
    for tau, keep in product((0.3, 0.4, 0.5, 0.6), (0.8, 1.0)):
        figures = fit_and_score(inner, dim=dim, logit_adjustment=tau, input_keep_probability=keep)
        runs.append({"logit_adjustment": tau, "input_keep_probability": keep, **figures})
        table.add_row(f"{tau:g}", f"{keep:g}", *(f"{figures[name]:.1f}" for name in PUBLISHED))
    show(table)
    return runs


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {deviation:.1f}"


def show(table: Table) -> None:
    """Print, wide enough for a log file."""
    Console(width=160).print(table)
