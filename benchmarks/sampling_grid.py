"""Do samplers and weightings favour head or tail labels as the theory says, on Delicious and EURLex-4K?

Two samplers × four weightings, and the losses over every label: Recall@{1, 10, 50} on head, torso, tail and all labels
(by the 66 % and 33 % quantiles of training frequency), each test row with t labels counting as t examples; P@k and
PSP@k on the rows as they are. Beside it the verdict of the theory (``implicit_margin``) and of the data: relative to
the softmax over every label, has the tail gained on the head in Recall@10? Figures are means over seeds.

``python -m benchmarks sampling_grid [eurlex-4k|delicious] [seeds]``. The plot goes to benchmarks/results, with
``--docs`` to the documentation. ``python -m benchmarks sampling_grid choose`` compares learning rates on a fifth of the
training rows of both.
"""

from __future__ import annotations

import statistics
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.harness import RESULTS, ROOT, Matrices, matrices, measure, save_results

QUESTION = "Do samplers and weightings favour head or tail labels as the theory says?"
SHARED = ROOT.parent / "shared" / "data"
NEGATIVES = {"eurlex-4k": 256, "delicious": 64}
KS = (1, 10, 50)
SLICES = ("head", "torso", "tail", "all")
WEIGHTINGS = ("constant", "importance", "relative", "tail")
MARKS = {"head": "o", "torso": "D", "tail": "s", "all": "|"}
FULL = ("softmax", "contrastive", "adaptive", "equalised", "logit_adjusted")
TRAINING = {"dim": 128, "epochs": 10, "early_stopping": False}
RATES = (0.005, 0.01, 0.02, 0.05)


def main(arguments: list[str]) -> None:
    """Run the grid on the named data sets (default: both) with so many seeds (default 2)."""
    if "choose" in arguments:
        save_results("sampling_grid_choose", choose())
        return
    names = [a for a in arguments if a in NEGATIVES] or list(NEGATIVES)
    seeds = next((int(a) for a in arguments if a.isdigit()), 2)
    results = {}
    for name in names:
        data = load(name)
        if data is None:
            print(f"  {name} is not at hand in {SHARED}; skipped")
            continue
        results[name] = run_grid(name, data, seeds)
        print_grid(name, results[name])
    if results:
        plot(results, ROOT / "docs" / "images" if "--docs" in arguments else RESULTS)
    save_results("sampling_grid", results)


def load(name: str) -> Matrices | None:
    """The data set with unit rows, or None where its files are absent."""
    if name != "delicious":
        return matrices(name)
    if not (SHARED / "delicious-train.arff.xz").exists():
        return None
    from tailwise import load_dataset

    found = load_dataset(
        SHARED / "delicious-train.arff.xz",
        test=SHARED / "delicious-test.arff.xz",
        label_names=SHARED / "delicious.xml.xz",
    )
    return Matrices(found.X_train, found.Y_train, found.X_test, found.Y_test)


def choose() -> dict[str, list[dict[str, Any]]]:
    """Learning rates compared on rows cut from the training set, never on the test set."""
    compared = {name: settings()[name] for name in ("all labels, softmax", "uniform, importance", "within_batch, tail")}
    results: dict[str, list[dict[str, Any]]] = {}
    for name in NEGATIVES:
        data = load(name)
        if data is None:
            continue
        order = np.random.default_rng(0).permutation(data.X_train.shape[0])
        cut, rest = order[: order.size // 5], order[order.size // 5 :]
        inner = Matrices(data.X_train[rest], data.Y_train[rest], data.X_train[cut], data.Y_train[cut])
        results[name] = []
        for (title, params), rate in product(compared.items(), RATES):
            figures = run(inner, NEGATIVES[name], 0, params | {"learning_rate": rate})
            results[name].append({"contender": title, "learning_rate": rate, **figures})
            shown = ", ".join(f"{key} {figures[key]:.1f}" for key in ("R@10 all", "R@10 tail", "P@1", "PSP@5", "CPU-s"))
            print(f"  {name}, {title}, learning rate {rate:g}: {shown}", flush=True)
    return results


def settings() -> dict[str, dict[str, Any]]:
    """Every contender by name; the softmax over every label comes first, the others are compared with it."""
    full = {f"all labels, {loss}": {"sampler": None, "loss": loss} for loss in FULL}
    sampled = {
        f"{sampler}, {weighting}": {"sampler": sampler, "weighting": weighting}
        for sampler in ("uniform", "within_batch")
        for weighting in WEIGHTINGS
    }
    return full | sampled


def run_grid(name: str, data: Matrices, seeds: int) -> list[dict[str, Any]]:
    """One dict of figures a contender, means over seeds; ``"spread"`` is the deviation of tail and head Recall@10."""
    rows = []
    for title, params in settings().items():
        runs = [run(data, NEGATIVES[name], seed, params) for seed in range(seeds)]
        figures: dict[str, Any] = {"contender": title, "theory": runs[0].pop("theory", "-")}
        for one in runs[1:]:
            one.pop("theory", None)
        figures |= {key: statistics.mean(one[key] for one in runs) for key in runs[0]}
        if seeds > 1:
            figures["spread"] = max(statistics.stdev(one[f"R@10 {s}"] for one in runs) for s in ("head", "tail"))
        rows.append(figures)
        print(f"  {title}: " + ", ".join(f"{s} {figures[f'R@10 {s}']:.1f}" for s in SLICES), flush=True)
    base = rows[0]
    for figures in rows:
        figures["tail gain"] = figures["R@10 tail"] - base["R@10 tail"]
        figures["head gain"] = figures["R@10 head"] - base["R@10 head"]
        figures["measured"] = verdict(figures["head gain"], figures["tail gain"], figures.get("spread", 0.0))
    return rows


def verdict(head: float, tail: float, spread: float) -> str:
    """Who gained on the other, by more than the spread between seeds (and at least a point)."""
    difference = tail - head
    return "-" if abs(difference) <= max(1.0, 2 * spread) else "tail" if difference > 0 else "head"


def run(data: Matrices, n_negatives: int, seed: int, params: dict[str, Any]) -> dict[str, Any]:
    """Train one contender and score it."""
    from tailwise import JainPropensity, SampledSoftmax, evaluate

    model = SampledSoftmax(n_negatives=n_negatives, random_state=seed, **TRAINING, **params)
    with measure() as m:
        model.fit(data.X_train, data.Y_train)
    top = model.predict_topk(data.X_test, max(KS))
    names = [f"{metric}@{k}" for metric in ("p", "psp") for k in (1, 3, 5)]
    values = evaluate(data.Y_test, top, names, propensity=JainPropensity().fit(data.Y_train), confidence=None)
    return {
        "theory": model.margin_.get("favours", "-"),
        **recalls(data.Y_test, top.labels, model.label_counts_),
        **{key.upper(): float(values[key].value) for key in names},
        "CPU-s": m.cpu,
    }


def recalls(Y: Any, top: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    """Recall@k by slice, in percent: the share of (row, label) examples whose label is among the row's k best."""
    from tailwise.metrics import label_slices

    masks = label_slices(counts, "quantiles") | {"all": np.ones(counts.size, bool)}
    examples = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr)), Y.indices
    found = top[examples[0]] == examples[1][:, None]
    return {
        f"R@{k} {name}": 100 * float(found[masks[name][examples[1]], :k].any(axis=1).mean())
        for k in KS
        for name in SLICES
    }


def print_grid(name: str, rows: list[dict[str, Any]]) -> None:
    """The table, with theory's verdict beside the measured one."""
    table = Table(title=f"{name}: Recall@1 / 10 / 50 by slice")
    for column in ("contender", *SLICES, "P@1", "P@5", "PSP@1", "PSP@5", "theory", "measured", "CPU-s"):
        table.add_column(column, justify="left" if column == "contender" else "right")
    for figures in rows:
        cells = [" / ".join(f"{figures[f'R@{k} {s}']:.1f}" for k in KS) for s in SLICES]
        plain = [f"{figures[key]:.1f}" for key in ("P@1", "P@5", "PSP@1", "PSP@5")]
        table.add_row(
            figures["contender"], *cells, *plain, figures["theory"], figures["measured"], f"{figures['CPU-s']:.0f}"
        )
    Console(width=200).print(table)


def plot(results: dict[str, list[dict[str, Any]]], folder: Path) -> None:
    """Recall by slice as dots: a line a contender with the side that theory says it takes, a panel a k and data set."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "tailwise"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        len(results), len(KS), figsize=(10, 4 * len(results)), squeeze=False, sharey="row", layout="constrained"
    )
    for (name, rows), line in zip(results.items(), panels, strict=True):
        places = np.arange(len(rows))
        for k, panel in zip(KS, line, strict=True):
            for s, mark in MARKS.items():
                panel.plot([figures[f"R@{k} {s}"] for figures in rows], places, mark, label=s, markersize=6)
            panel.set(title=f"{name}, Recall@{k}", xlabel="percent", yticks=places)
            panel.grid(axis="y", alpha=0.3)
        sides = {"-": "", "tail": " → tail", "head": " → head"}
        line[0].set_yticklabels([figures["contender"] + sides[figures["theory"]] for figures in rows])
        line[0].invert_yaxis()
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=len(MARKS))
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "sampling-grid.svg", metadata={"Date": None}, transparent=True)
    pyplot.close(figure)
    print(f"  written: {(folder / 'sampling-grid.svg').relative_to(ROOT)}")
