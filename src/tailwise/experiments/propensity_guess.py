"""Experiment ``guess``: does the ranking of models by PSP@5 survive a wrong guess of (A, B)?

The propensity's A and B are rarely estimated: (0.55, 1.5) is the mean of two fits on other data. Here models are
trained once with the usual propensities and then judged by PSP@5 under every (A, B) of a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

import tailwise
from tailwise.data import Dataset, load_dataset, make_longtail
from tailwise.errors import import_extra
from tailwise.experiments.running import Record, Summary
from tailwise.experiments.sensitivity import Sensitivity, propensity_sensitivity

K = 5
MODELS: dict[str, Callable[[Record], Any]] = {
    "Popularity": lambda s: tailwise.Popularity(),
    "Centroid": lambda s: tailwise.Centroid(),
    "FastXML": lambda s: tailwise.FastXML(n_trees=s["trees"], random_state=s["seed"]),
    "PfastXML": lambda s: tailwise.PfastXML(n_trees=s["trees"], random_state=s["seed"]),
    "PfastreXML": lambda s: tailwise.PfastreXML(n_trees=s["trees"], random_state=s["seed"]),
    "DiSMEC": lambda s: tailwise.DiSMEC(C_decay=0.0),
    "PWDiSMEC": lambda s: tailwise.PWDiSMEC(weighting="tail", C_decay=0.0),
    "Parabel": lambda s: tailwise.Parabel(random_state=s["seed"]),
}
"""Models by name."""


def choose(size: str, options: Record) -> Record:
    """Data set, models and trees of each size."""
    usual = {"dataset": "eurlex-4k", "models": list(MODELS), "trees": 10}
    by_size: dict[str, Record] = {
        "quick": {"dataset": "synthetic", "models": list(MODELS)[:4], "trees": 2},
        "default": {},
        "full": {"trees": 50},
    }
    return {**usual, **by_size[size], **({"dataset": options["data"]} if "data" in options else {})}


def cells(settings: Record) -> list[Record]:
    """One cell a model."""
    return [{"model": name} for name in settings["models"]]


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, Dataset]:
    """The data."""
    if settings["dataset"] == "synthetic":
        return settings, make_longtail(2_000, 800, 150, random_state=settings["seed"], n_jobs=n_jobs)
    return settings, load_dataset(settings["dataset"])


def compute(shared: tuple[Record, Dataset], cell: Record, n_jobs: int | None) -> Record:
    """Train and predict; the predictions are the result."""
    settings, data = shared
    model = MODELS[cell["model"]](settings)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=n_jobs)
    return {"labels": model.fit(data.X_train, data.Y_train).predict_topk(data.X_test, K).labels.tolist()}


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """PSP@5 of every model for every (A, B), who wins where, and how far the guess may be wrong."""
    data = prepared()[1]
    predictions = {r["model"]: np.array(r["labels"], np.int32) for r in results}
    found = propensity_sensitivity(data.Y_test, predictions, data.label_counts, data.n_train, k=K)
    rows = [
        {
            "a": float(a),
            "b": float(b),
            "winner": found.models[found.winners[i, j]],
            "sure": bool(found.sure[i, j]),
            **{name: round(float(found.values[m, i, j]), 3) for m, name in enumerate(found.models)},
        }
        for i, a in enumerate(found.a)
        for j, b in enumerate(found.b)
    ]
    return Summary(rows, _findings(found, predictions, data), {"guess": _plot(found)})


def _findings(found: Sensitivity, predictions: dict[str, np.ndarray], data: Dataset) -> list[str]:
    said = [f"{data.name or 'synthetic data'}: {found}."]
    i, j = _at_reference(found)
    ranked = sorted(zip(found.models, found.values[:, i, j], strict=True), key=lambda item: -item[1])
    at = ", ".join(f"{name} {value:.2f}" for name, value in ranked)
    said.append(f"PSP@{K} at A = {found.a[i]:g}, B = {found.b[j]:g}: {at}.")
    for name, values in zip(found.models, found.values, strict=True):
        said.append(f"{name}: PSP@{K} from {values.min():.2f} to {values.max():.2f} over the grid.")
    shares = {name: float((found.winners == m).mean()) for m, name in enumerate(found.models)}
    won = "; ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items() if share)
    said.append(
        f"Share of the grid won: {won}; the best leads by more than 1.96 standard errors on "
        f"{100 * found.sure.mean():.0f} %."
    )
    return said + _turns(found, predictions, data)


def _turns(found: Sensitivity, predictions: dict[str, np.ndarray], data: Dataset) -> list[str]:
    """The pairs of models whose order depends on (A, B)."""
    said, pairs = [], list(combinations(found.models, 2))
    for pair in pairs:
        first, second = (found.values[found.models.index(name)] for name in pair)
        if (first > second).any() and (first < second).any():
            two = {name: predictions[name] for name in pair}
            alone = propensity_sensitivity(data.Y_test, two, data.label_counts, data.n_train, k=K, b=found.b, a=found.a)
            said.append(f"{' and '.join(pair)}: {alone}.")
    return [*said, f"The other {len(pairs) - len(said)} of {len(pairs)} pairs keep their order on the whole grid."]


def _at_reference(found: Sensitivity) -> tuple[int, int]:
    a, b = found.reference
    return int(np.abs(found.a - a).argmin()), int(np.abs(found.b - b).argmin())


def _plot(found: Sensitivity) -> Any:
    from tailwise.experiments.plotting import COLOURS, line, make_figure

    figure, axes = make_figure(1, 3, width=4.6)
    i, j = _at_reference(found)
    for m, name in enumerate(found.models):
        line(axes[0, 0], m, found.a, found.values[m, :, j], label=name, markevery=4)
        line(axes[0, 1], m, found.b, found.values[m, i, :], markevery=4)
    axes[0, 0].axvline(found.reference[0], color="black", linewidth=1, linestyle="--")
    axes[0, 1].axvline(found.reference[1], color="black", linewidth=1, linestyle="--")
    axes[0, 0].set(xlabel="A", ylabel=f"PSP@{K}, %", title=f"B = {found.b[j]:g}")
    axes[0, 1].set(xlabel="B", ylabel=f"PSP@{K}, %", title=f"A = {found.a[i]:g}", xscale="log")
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    field = axes[0, 2]
    field.grid(False)
    colours = import_extra("matplotlib.colors", "report", "a plot").ListedColormap(
        [COLOURS[m % 10] for m in range(len(found.models))]
    )
    field.pcolormesh(
        found.b, found.a, found.winners, cmap=colours, vmin=-0.5, vmax=len(found.models) - 0.5, shading="nearest"
    )
    if not found.sure.all():
        field.contourf(found.b, found.a, ~found.sure, levels=[0.5, 1.5], colors="none", hatches=["////"])
    for a, b in ((0.5, 0.4), (0.55, 1.5), (0.6, 2.6)):
        field.plot(b, a, "w*", markeredgecolor="black", markersize=10)
    field.set(xlabel="B", ylabel="A", title="best model (hatched: lead not sure)", xscale="log")
    return figure
