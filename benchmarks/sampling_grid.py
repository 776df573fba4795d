"""Do samplers and weightings favour head or tail labels as the theory says, on Delicious and EURLex-4K?

The losses over every label, and samplers × weightings of the softmax and of the contrastive loss: Recall@{1, 10, 50} on
head, torso, tail and all labels (by the 66 % and 33 % quantiles of training frequency), each test row with t labels
counting as t examples; P@k and PSP@k on the rows as they are. Beside it the verdict of the theory (``implicit_margin``)
and of the data: relative to the same loss over every label, has the tail gained on the head in Recall@10? Figures are
means over seeds. Label vectors start in random directions.

``python -m benchmarks sampling_grid [eurlex-4k|delicious] [seeds]`` prints the grid. The plots go to
benchmarks/results, with ``--docs`` to the documentation. More questions, each by its word:

- ``choose``: learning rates, and where label vectors start, on a fifth of the training rows, held out;
- ``draws``: what fewer negatives cost (Figure 6 of the paper);
- ``variance``: the spread of the loss between draws, by sampler, for trained networks (Theorem 3, Proposition 5).

Every training is kept in benchmarks/results/sampling_grid.runs.jsonl as it is done, and read from there: a run that is
stopped goes on where it was. Remove the file when the code has changed.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.harness import RESULTS, ROOT, Matrices, matrices, measure, save_results

QUESTION = "Do samplers and weightings favour head or tail labels as the theory says?"
SHARED = ROOT.parent / "shared" / "data"
KEPT = RESULTS / "sampling_grid.runs.jsonl"
NEGATIVES = {"eurlex-4k": 256, "delicious": 64}
FEWER = {"eurlex-4k": (16, 64, 256, 1024), "delicious": (4, 16, 64, 256)}
KS = (1, 10, 50)
SLICES = ("head", "torso", "tail", "all")
WEIGHTINGS = ("constant", "importance", "relative", "tail")
FULL = ("softmax", "contrastive", "adaptive", "equalised", "logit_adjusted")
TRAINING = {"dim": 128, "epochs": 10, "early_stopping": False, "start": "random"}
RATES = {"softmax": 0.02, "contrastive": 0.01}
COMPARED_RATES = {"softmax": (0.01, 0.02, 0.05), "contrastive": (0.002, 0.005, 0.01, 0.02)}
METRICS = tuple(f"{metric}@{k}" for metric in ("p", "psp") for k in (1, 3, 5))


def main(arguments: list[str]) -> None:
    """Answer the question that the arguments name on the named data sets (default: both)."""
    names = [a for a in arguments if a in NEGATIVES] or list(NEGATIVES)
    seeds = next((int(a) for a in arguments if a.isdigit()), 2)
    folder = ROOT / "docs" / "images" if "--docs" in arguments else RESULTS
    loaded = {name: data for name in names if (data := load(name)) is not None}
    for name in set(names) - set(loaded):
        print(f"  {name} is not at hand in {SHARED}; skipped")
    word = next((a for a in arguments if a in WORDS), "grid")
    results = {name: WORDS[word](name, data, seeds) for name, data in loaded.items()}
    save_results("sampling_grid" if word == "grid" else f"sampling_grid_{word}", results)
    if word == "grid" and results:
        plot(results, folder / "sampling-grid.svg", [title for title in settings() if "contrastive" not in title])
        plot(results, folder / "sampling-contrastive.svg", [title for title in settings() if "contrastive" in title])
    elif word == "draws" and results:
        plot_draws(results, folder / "sampling-draws.svg")


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


def settings() -> dict[str, dict[str, Any]]:
    """Every contender by name."""
    found: dict[str, dict[str, Any]] = {f"all labels, {loss}": {"sampler": None, "loss": loss} for loss in FULL}
    for loss, samplers in (
        ("softmax", ("uniform", "within_batch", "model")),
        ("contrastive", ("uniform", "within_batch")),
    ):
        for sampler in samplers:
            for weighting in WEIGHTINGS:
                title = f"{sampler}, {weighting}" + ", contrastive" * (loss == "contrastive")
                found[title] = {"sampler": sampler, "weighting": weighting, "loss": loss}
    return found


def run(name: str, data: Matrices, seed: int, params: dict[str, Any], *, part: str = "test") -> dict[str, Any]:
    """Train one contender and score it, or read what it gave before."""
    full = {"n_negatives": NEGATIVES[name], **TRAINING, "learning_rate": rate_of(params), **params}
    return kept_run({"data": name, "part": part, "seed": seed, **full}, lambda: train(data, seed, full))


def rate_of(params: dict[str, Any]) -> float:
    """The learning rate of a contender's loss."""
    return RATES["contrastive" if params["loss"] == "contrastive" else "softmax"]


def kept_run(key: dict[str, Any], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the run with this key gave before; computed and kept where it is new."""
    kept = [json.loads(line) for line in KEPT.read_text().splitlines()] if KEPT.exists() else []
    for record in kept:
        if record["key"] == key:
            return record["figures"]
    figures = compute()
    with KEPT.open("a") as file:
        file.write(json.dumps({"key": key, "figures": figures}) + "\n")
    shown = ", ".join(f"{k} {figures[k]:.1f}" for k in ("R@10 head", "R@10 tail", "P@1", "PSP@5", "CPU-s"))
    print(f"  {', '.join(str(value) for value in key.values())}: {shown}", flush=True)
    return figures


def train(data: Matrices, seed: int, params: dict[str, Any]) -> dict[str, Any]:
    """The figures of one training."""
    from tailwise import JainPropensity, SampledSoftmax, evaluate

    model = SampledSoftmax(random_state=seed, **params)
    with measure() as m:
        model.fit(data.X_train, data.Y_train)
    top = model.predict_topk(data.X_test, max(KS))
    values = evaluate(data.Y_test, top, METRICS, propensity=JainPropensity().fit(data.Y_train), confidence=None)
    return {
        "theory": model.margin_.get("favours", "-"),
        **recalls(data.Y_test, top.labels, model.label_counts_),
        **{key.upper(): float(values[key].value) for key in METRICS},
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


def run_grid(name: str, data: Matrices, seeds: int) -> list[dict[str, Any]]:
    """One dict of figures a contender, means over seeds; ``"spread"`` is the deviation of tail and head Recall@10."""
    runs: dict[str, list[dict[str, Any]]] = {title: [] for title in settings()}
    for seed in range(seeds):
        for title, params in settings().items():
            runs[title].append(run(name, data, seed, params))
    rows = [mean_of(title, found) for title, found in runs.items()]
    bases = {loss: next(row for row in rows if row["contender"] == f"all labels, {loss}") for loss in RATES}
    for figures in rows:
        base = bases["contrastive" if "contrastive" in figures["contender"] else "softmax"]
        figures["tail gain"] = figures["R@10 tail"] - base["R@10 tail"]
        figures["head gain"] = figures["R@10 head"] - base["R@10 head"]
        figures["measured"] = verdict(figures["head gain"], figures["tail gain"], figures["spread"])
    print_grid(name, rows)
    return rows


def mean_of(title: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The means over seeds, and the larger deviation of head and tail Recall@10."""
    numbers = [key for key in runs[0] if key != "theory"]
    spread = max(statistics.stdev(one[f"R@10 {s}"] for one in runs) for s in ("head", "tail")) if len(runs) > 1 else 0.0
    means = {key: statistics.mean(one[key] for one in runs) for key in numbers}
    return {"contender": title, "theory": runs[0]["theory"], **means, "spread": spread}


def verdict(head: float, tail: float, spread: float) -> str:
    """Who gained on the other, by more than the spread between seeds (and at least a point)."""
    difference = tail - head
    return "-" if abs(difference) <= max(1.0, 2 * spread) else "tail" if difference > 0 else "head"


def print_grid(name: str, rows: list[dict[str, Any]]) -> None:
    """The table, with theory's verdict beside the measured one."""
    table = Table(title=f"{name}: Recall@1 / 10 / 50 by slice")
    plain = [metric.upper() for metric in METRICS]
    for column in ("contender", *SLICES, *plain, "theory", "measured", "spread", "CPU-s"):
        table.add_column(column, justify="left" if column == "contender" else "right")
    for figures in rows:
        cells = [" / ".join(f"{figures[f'R@{k} {s}']:.1f}" for k in KS) for s in SLICES]
        cells += [f"{figures[key]:.1f}" for key in plain] + [figures["theory"], figures["measured"]]
        table.add_row(figures["contender"], *cells, f"{figures['spread']:.1f}", f"{figures['CPU-s']:.0f}")
    Console(width=240).print(table)


def choose(name: str, data: Matrices, seeds: int) -> list[dict[str, Any]]:
    """Learning rates and starts compared on rows cut from the training set, never on the test set."""
    order = np.random.default_rng(0).permutation(data.X_train.shape[0])
    cut, rest = order[: order.size // 5], order[order.size // 5 :]
    inner = Matrices(data.X_train[rest], data.Y_train[rest], data.X_train[cut], data.Y_train[cut])
    by_start = ("uniform, constant", "uniform, importance", "within_batch, tail", "all labels, softmax")
    chosen = [
        (f"all labels, {loss}", {"learning_rate": rate}) for loss, rates in COMPARED_RATES.items() for rate in rates
    ]
    chosen += [(title, {"start": start}) for title in by_start for start in ("rows", "random")]
    rows = []
    for title, change in chosen:
        figures = run(name, inner, 0, settings()[title] | change, part="held out")
        rows.append({"contender": title, **change, **figures})
        shown = ", ".join(f"{key} {figures[key]:.1f}" for key in ("R@10 all", "R@10 tail", "P@1", "PSP@1", "PSP@5"))
        print(f"  {name}, {title}, {', '.join(f'{k} {v}' for k, v in change.items())}: {shown}", flush=True)
    return rows


def fewer_draws(name: str, data: Matrices, seeds: int) -> list[dict[str, Any]]:
    """Recall by the number of negatives, for the two samplers of the paper's Figure 6."""
    rows = []
    table = Table(title=f"{name}: Recall@10 by the number of negatives")
    for column in ("contender", "m", *SLICES, "P@1", "PSP@5"):
        table.add_column(column, justify="left" if column == "contender" else "right")
    for title, params in settings().items():
        if params["loss"] != "softmax" or params["sampler"] not in ("uniform", "within_batch"):
            continue
        for m in FEWER[name]:
            changed = params | ({} if m == NEGATIVES[name] else {"n_negatives": m})
            rows.append({"m": m, **mean_of(title, [run(name, data, seed, changed) for seed in range(seeds)])})
            cells = [f"{rows[-1][key]:.1f}" for key in (*(f"R@10 {s}" for s in SLICES), "P@1", "PSP@5")]
            table.add_row(title, str(m), *cells)
    Console(width=160).print(table)
    return rows


def variance(name: str, data: Matrices, seeds: int) -> list[dict[str, Any]]:
    """The spread of a loss between draws, relative to its mean, for networks trained on every label.

    For ρ = 1, on 200 test rows with one of their labels each; the softmax's by Theorem 3, the contrastive's by Lemma 1.
    """
    from tailwise import SampledSoftmax
    from tailwise.losses import contrastive, decoupled_moments, label_prior, least_variance, softmax_moments

    rows = []
    for loss in RATES:
        params = {**TRAINING, "learning_rate": RATES[loss], "sampler": None, "loss": loss}
        model = SampledSoftmax(random_state=0, **params).fit(data.X_train, data.Y_train)
        known = np.flatnonzero(model.label_counts_)
        prior = label_prior(model.label_counts_[known])
        rng = np.random.default_rng(0)
        tested = rng.permutation(np.flatnonzero(np.diff(data.Y_test.indptr)))
        vectors, labels = model.encode(data.X_test), model.label_vectors_[known]
        if loss == "contrastive":
            labels = labels / np.linalg.norm(labels, axis=1, keepdims=True)
        relative: dict[str, list[float]] = {}
        for row in tested[:200]:
            mine = np.intersect1d(data.Y_test.indices[data.Y_test.indptr[row] : data.Y_test.indptr[row + 1]], known)
            if not mine.size:
                continue
            y = int(np.searchsorted(known, rng.choice(mine)))
            f = (labels @ vectors[row]).astype(np.float64)
            rho = np.ones(known.size)
            rho[y] = 0
            parts = contrastive.negative(f) if loss == "contrastive" else np.exp(f - f.max())
            model_q = np.exp(f - f.max())
            samplers = {
                "uniform": np.full(known.size, 1 / known.size),
                "within batch": prior,
                "model": model_q / model_q.sum(),
                "least variance": least_variance(rho, parts),
            }
            for sampler, q in samplers.items():
                if loss == "contrastive":
                    found = decoupled_moments(contrastive.positive(f[y]), parts, rho, q, NEGATIVES[name])
                else:
                    found = softmax_moments(f, f[y], rho, q, NEGATIVES[name])
                relative.setdefault(sampler, []).append(float(np.sqrt(found.variance) / found.mean))
        for sampler, values in relative.items():
            rows.append(
                {"loss": loss, "q": sampler, "median": float(np.median(values)), "mean": float(np.mean(values))}
            )
            print(
                f"  {name}, {loss}, q {sampler}, m = {NEGATIVES[name]}: deviation of the loss between draws "
                f"{100 * rows[-1]['median']:.1f} % of its mean (median over rows; mean {100 * rows[-1]['mean']:.1f} %)"
            )
    return rows


WORDS: dict[str, Callable[[str, Matrices, int], Any]] = {
    "grid": run_grid,
    "choose": choose,
    "draws": fewer_draws,
    "variance": variance,
}


def plot(results: dict[str, list[dict[str, Any]]], path: Path, titles: list[str]) -> None:
    """Recall by slice as dots: a line a contender with the side that theory says it takes, a panel a k and data set."""
    from tailwise.experiments.plotting import dots, make_figure

    figure, panels = make_figure(len(results), len(KS), width=3.6, height=0.7 + 0.24 * len(titles))
    sides = {"-": "", "tail": " → tail", "head": " → head"}
    for (name, rows), line in zip(results.items(), panels, strict=True):
        shown = [figures for figures in rows if figures["contender"] in titles]
        for k, panel in zip(KS, line, strict=True):
            names = [figures["contender"] + sides[figures["theory"]] for figures in shown]
            dots(panel, names, {s: [figures[f"R@{k} {s}"] for figures in shown] for s in SLICES})
            panel.set(title=f"{name}, Recall@{k}", xlabel="percent")
            if panel is not line[0]:
                panel.set_yticklabels([])
    save_plot(figure, panels[0][0], path)


def plot_draws(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Recall@10 by the number of negatives: a panel a slice and data set, a line a contender."""
    from tailwise.experiments.plotting import line, make_figure

    figure, panels = make_figure(len(results), len(SLICES), width=3.0, height=2.8)
    for (name, rows), across in zip(results.items(), panels, strict=True):
        for s, panel in zip(SLICES, across, strict=True):
            for i, title in enumerate(dict.fromkeys(figures["contender"] for figures in rows)):
                mine = [figures for figures in rows if figures["contender"] == title]
                line(panel, i, [f["m"] for f in mine], [f[f"R@10 {s}"] for f in mine], label=title)
            panel.set(title=f"{name}, {s}", xlabel="m, negatives drawn", xscale="log")
        across[0].set_ylabel("Recall@10, %")
    save_plot(figure, panels[0][0], path)


def save_plot(figure: Any, first: Any, path: Path) -> None:
    """Write the figure as SVG, with the first panel's legend below."""
    from matplotlib import rc_context

    figure.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    path.parent.mkdir(parents=True, exist_ok=True)
    with rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, metadata={"Date": None, "Creator": None}, transparent=True)
    print(f"  written: {path.relative_to(ROOT)}")
