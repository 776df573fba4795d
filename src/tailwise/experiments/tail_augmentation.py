"""Experiment ``augmentation``: what do copies of the tail's rows change, how many, of which labels and of what kind?

After figures 1, 2, 4 and 5 and table 6 of *Improving Tail Label Prediction for Extreme Multi-label Learning*: Bonsai
alone and in :class:`~tailwise.TailAugmented` with each part on its own rows, for several numbers of copies ``n_aug``,
for several shares τ of head labels, and with copies made by dropout, by swaps, by both or by nothing; beside it one
with all rows for both parts, the library's default. Every variant is judged on the same test rows; nothing is chosen by
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tailwise
from tailwise.base import XMCModel
from tailwise.data import Dataset
from tailwise.experiments.running import Record, Summary
from tailwise.experiments.weight_norms import METRICS, RELATIONS, Means, judge, load, mean_bins

KINDS = {
    "unchanged": {"keep_probability": 1.0, "swap": 0.0},
    "dropout": {"swap": 0.0},
    "swap": {"keep_probability": 1.0},
    "both": {},
}
"""How copies are made, as parameters of :class:`~tailwise.TailAugmented`; unchanged ones only give the rows weight."""


def choose(size: str, options: Record) -> Record:
    """Variants and repeats of each size."""
    usual = {
        "dataset": "eurlex-4k",
        "trees": 1,
        "repeats": 3,
        "n_aug": [0, 1, 4, 8],
        "tau": [0.1, 0.3, 0.5, 1.0],
        "kinds": list(KINDS),
        "bins": 30,
    }
    by_size: dict[str, Record] = {
        "quick": {"dataset": "synthetic", "repeats": 2, "n_aug": [0, 4], "tau": [0.1, 0.5, 1.0], "bins": 10},
        "default": {},
        "full": {"trees": 3, "repeats": 5, "tau": [0.1, 0.2, 0.3, 0.4, 0.5, 1.0]},
    }
    return {**usual, **by_size[size], **({"dataset": options["data"]} if "data" in options else {})}


USUAL = {"rows": "own", "n_aug": 4, "tau": 0.1, "kind": "both"}
PLAIN = {"rows": "", "n_aug": 0, "tau": 0.0, "kind": "plain"}


def cells(settings: Record) -> list[Record]:
    """Every variant × repeat; the usual one belongs to three sweeps and is computed once."""
    variants: list[Record] = [PLAIN, USUAL, {**USUAL, "rows": "all"}]
    variants += [{**USUAL, "n_aug": n} for n in settings["n_aug"]]
    variants += [{**USUAL, "tau": tau} for tau in settings["tau"]]
    variants += [{**USUAL, "kind": kind} for kind in settings["kinds"]]
    distinct = {tuple(v.values()): v for v in variants}
    return [{**v, "repeat": repeat} for repeat in range(settings["repeats"]) for v in distinct.values()]


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, Dataset]:
    """The data."""
    return settings, load(settings["dataset"], settings["seed"], n_jobs)


def compute(shared: tuple[Record, Dataset], cell: Record, n_jobs: int | None) -> Record:
    """Fit a variant; its metrics, norms and rates."""
    settings, data = shared
    seed = {"random_state": cell["repeat"], "n_jobs": n_jobs}
    model: XMCModel = tailwise.Bonsai(n_trees=settings["trees"], **seed)
    if cell["kind"] != "plain":
        chosen = {name: cell[name] for name in ("rows", "n_aug", "tau")}
        model = tailwise.TailAugmented(model, **chosen, **KINDS[cell["kind"]], **seed)
    return judge(model.fit(data.X_train, data.Y_train), data, settings["bins"])


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """A row a variant, the three sweeps in words, and the plots."""
    groups: dict[tuple, list[Record]] = {}
    for r in results:
        groups.setdefault(tuple(r[name] for name in USUAL), []).append(r)
    means = {key: Means.of(own, (*METRICS, *RELATIONS)) for key, own in groups.items()}
    rows = [
        {**dict(zip(USUAL, key, strict=True)), "repeats": found.n, **found.record()} for key, found in means.items()
    ]

    def of(**changed: Any) -> Means:
        return means[tuple({**USUAL, **changed}.values())]

    plain = means[tuple(PLAIN.values())]
    findings = [f"Bonsai alone: {_shown(plain)}", f"all rows for both parts, n_aug = 4: {_shown(of(rows='all'))}"]
    findings += [f"own rows, n_aug = {n}: {_shown(of(n_aug=n))}" for n in settings["n_aug"]]
    findings += [f"τ = {tau}: {_shown(of(tau=tau))}" for tau in settings["tau"]]
    findings += [f"{kind}: {_shown(of(kind=kind))}" for kind in settings["kinds"]]
    bins = {"plain": mean_bins(groups[tuple(PLAIN.values())])}
    bins |= {f"n_aug = {n}": mean_bins(groups[tuple({**USUAL, "n_aug": n}.values())]) for n in settings["n_aug"]}
    for name, found in bins.items():
        third = max(1, len(found["norm"]) // 3)
        findings.append(
            f"{name}: mean norm {found['norm'][:third].mean():.2f} in the most frequent third of the labels, "
            f"{found['norm'][third:-third].mean():.2f} in the middle, {found['norm'][-third:].mean():.2f} in the rarest"
        )
    return Summary(rows, findings, {"norms": _plot_norms(bins), "sweeps": _plot_sweeps(settings, plain, of)})


def _shown(means: Means) -> str:
    return (
        f"P@1/3/5 {means.listed('p@1', 'p@3', 'p@5')}; PSP@1/3/5 {means.listed('psp@1', 'psp@3', 'psp@5')}; "
        f"PSnDCG@3/5 {means.listed('psndcg@3', 'psndcg@5')}; rank correlation of norm and frequency "
        f"{means.shown('norm, frequency', 2)}, of norm and rate {means.shown('norm, rate', 2)}"
    )


def _plot_norms(bins: dict[str, dict[str, np.ndarray]]) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    figure, (axes,) = make_figure(1, 2)
    for i, (name, found) in enumerate(bins.items()):
        line(axes[0], i, found["frequency"], found["norm"], label=name)
        line(axes[1], i, found["frequency"], found["rate"], label=name)
    axes[1].plot(found["frequency"], found["true_rate"], color="black", linewidth=1, linestyle="--", label="true rate")
    axes[0].set(xscale="log", xlabel="training rows of a label", ylabel="norm of its weights")
    axes[1].set(
        xscale="log", yscale="log", xlabel="training rows of a label", ylabel="test rows with it in the top five, %"
    )
    axes[1].legend(frameon=False, fontsize=8, loc="upper left")
    return figure


def _plot_sweeps(settings: Record, plain: Means, of: Callable[..., Means]) -> Any:
    from tailwise.experiments.plotting import COLOURS, line, make_figure

    figure, (axes,) = make_figure(1, 2)
    shown = ("p@5", "psp@1", "psp@3", "psp@5")
    for axis, name in zip(axes, ("n_aug", "tau"), strict=True):
        places = np.arange(len(settings[name]))
        for i, metric in enumerate(shown):
            found = [of(**{name: value}) for value in settings[name]]
            line(axis, i, places, [m.mean[metric] for m in found], [m.sd[metric] for m in found], label=metric.upper())
            axis.axhline(plain.mean[metric], color=COLOURS[i], linewidth=1, linestyle=":")
        axis.set_xticks(places, [str(value) for value in settings[name]])
    axes[0].set(xlabel="copies of each tail row, n_aug", ylabel="% (dotted: Bonsai alone)")
    axes[1].set(xlabel="share of the labels that are head, τ")
    axes[0].legend(frameon=False, fontsize=8, ncols=2, loc=(0.03, 0.2))
    return figure
