"""Experiment ``powerlaw``: do label counts follow a power law, and with which exponent?

After figure 1 of *Unbiased Loss Functions for Extreme Classification With Missing Labels* (and of the PfastreXML
paper), which says that the label of rank r has ``n(r) = n(1) r^(-β)`` training rows. Two exponents are fitted. The
line through ``ln n`` over ``ln r`` is what the eye fits to such a plot. Maximum likelihood fits the distribution of the
counts, ``P(n) ∝ n^(-α)`` from some n on, with that n where the fit is closest (Clauset, Shalizi and Newman 2009): the
same law has ``β = 1 / (α - 1)``. Intervals come from resampling labels. Whether it *is* a power law is judged by how
often counts drawn from the fitted law, fitted anew, are as far from their fit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import zeta

from tailwise.data import load_dataset, make_longtail
from tailwise.errors import InvalidInput
from tailwise.experiments.running import Record, Summary
from tailwise.validation import label_counts

FILES = {
    "Bibtex": "bibtex-train.arff.xz",
    "Delicious": "delicious-train.arff.xz",
    "TIBKAT English": "tibkat-en-train.jsonl.xz",
    "TIBKAT German": "tibkat-de-train.jsonl.xz",
}
"""Training files of the data sets that are no registered ones."""

_FOLDERS = ("data", "../shared/data")
_FEWEST = 50
_CANDIDATES = 60
_ALPHAS = (1.05, 6.0)
_RARE = (5, 10)
_LARGEST = 2**50


class Tail(NamedTuple):
    """The power law of the counts from ``start`` on: ``P(n) ∝ n^(-alpha)``."""

    alpha: float
    start: int
    n_labels: int
    """How many labels have so many rows."""
    distance: float
    """Kolmogorov and Smirnov's: the largest difference of the cumulated shares."""


def choose(size: str, options: Record) -> Record:
    """Data sets and draws of each size."""
    usual = {"datasets": ["EURLex-4K", *FILES], "resamples": 200, "simulations": 200}
    by_size: dict[str, Record] = {
        "quick": {"datasets": ["synthetic"], "resamples": 20, "simulations": 20},
        "default": {},
        "full": {"resamples": 1_000, "simulations": 1_000},
    }
    return {"data": options.get("data", ""), **usual, **by_size[size]}


def cells(settings: Record) -> list[Record]:
    """One cell a data set."""
    return [{"dataset": name} for name in settings["datasets"]]


def prepare(settings: Record, n_jobs: int | None) -> Record:
    """The settings: each cell opens its own data set."""
    return settings


def compute(settings: Record, cell: Record, n_jobs: int | None) -> Record:
    """Both exponents with their intervals, and whether counts drawn from the law are as far from it."""
    counts, n_rows = read_counts(cell["dataset"], settings, n_jobs)
    counts = np.sort(counts[counts > 0])[::-1]
    rng = np.random.default_rng([settings["seed"], counts.size])
    tail, whole, beta = fit_tail(counts), fit_tail(counts, whole=True), fit_ranks(counts)
    again = [rng.choice(counts, counts.size) for _ in range(settings["resamples"])]
    return {
        "rows": n_rows,
        "labels": int(counts.size),
        "largest": int(counts[0]),
        **{f"below {few}": 100 * float(np.mean(counts < few)) for few in _RARE},
        "beta": beta,
        "beta_interval": _interval([fit_ranks(np.sort(sample)[::-1]) for sample in again]),
        **tail._asdict(),
        "alpha_interval": _interval([fit_tail(sample).alpha for sample in again]),
        "alpha_of_all": whole.alpha,
        "distance_of_all": whole.distance,
        "as_far": _as_far(counts, tail, settings["simulations"], rng),
        "counts": [int(counts[place]) for place in _places(counts.size)],
    }


def read_counts(name: str, settings: Record, n_jobs: int | None) -> tuple[np.ndarray, int]:
    """How many training rows each label of the data set has, and how many rows there are."""
    if name == "synthetic":
        data = make_longtail(4_000, 200, 1_000, exponent=1.2, random_state=settings["seed"], n_jobs=n_jobs)
    elif name in FILES:
        data = load_dataset(find_file(FILES[name], settings["data"]))
    else:
        data = load_dataset(name.lower())
    return label_counts(data.Y_train), data.Y_train.shape[0]


def find_file(name: str, folder: str = "") -> Path:
    """The file in ``folder``, or in a usual place."""
    places = [Path(place) / name for place in ([folder] if folder else _FOLDERS)]
    found = next((path for path in places if path.is_file()), None)
    if found is None:
        raise InvalidInput(f"{name} is not in {' or '.join(str(path.parent) for path in places)}; pass its folder")
    return found


def fit_ranks(counts: np.ndarray) -> float:
    """β of ``n(r) = c r^(-β)`` by least squares on the logarithms, for descending counts above 0.

    >>> round(fit_ranks(1000 / np.arange(1, 50) ** 0.8), 3)
    0.8
    """
    ranks, logs = np.log(np.arange(1, counts.size + 1)), np.log(counts)
    ranks = ranks - ranks.mean()
    return float(-(ranks @ logs) / (ranks @ ranks)) if counts.size > 1 else float("nan")


def fit_tail(counts: np.ndarray, *, whole: bool = False) -> Tail:
    """The power law of the largest counts, from the count on where law and counts are closest; at least 50 labels.

    ``whole`` fits it to all of them.
    """
    values, times = np.unique(counts, return_counts=True)
    if whole:
        return _fit_from(int(values[0]), values, times)
    above = np.cumsum(times[::-1])[::-1]
    starts = values[above >= min(_FEWEST, above[0])]
    if starts.size > _CANDIDATES:
        starts = starts[np.unique(np.geomspace(1, starts.size, _CANDIDATES).round().astype(int)) - 1]
    fits = [_fit_from(int(start), values[values >= start], times[values >= start]) for start in starts]
    return min(fits, key=lambda fit: fit.distance)


def _fit_from(start: int, values: np.ndarray, times: np.ndarray) -> Tail:
    n, logs = int(times.sum()), float(times @ np.log(values))

    def unlikely(alpha: float) -> float:
        return n * float(np.log(zeta(alpha, start))) + alpha * logs

    alpha = float(minimize_scalar(unlikely, bounds=_ALPHAS, method="bounded").x)
    law = 1 - zeta(alpha, values + 1.0) / zeta(alpha, start)
    return Tail(alpha, start, n, float(np.abs(np.cumsum(times) / n - law).max()))


def draw_counts(tail: Tail, n: int, rng: np.random.Generator) -> np.ndarray:
    """``n`` counts of the law: the smallest m that leaves no more than a uniform share above it.

    >>> draws = draw_counts(Tail(2.5, 3, 0, 0.0), 20_000, np.random.default_rng(0))
    >>> bool(draws.min() == 3), round(fit_tail(draws).alpha, 1)
    (True, 2.5)
    """
    shares, whole = 1 - rng.random(n), zeta(tail.alpha, tail.start)
    low = np.full(n, tail.start, np.int64)
    high = low.copy()
    while (open_ends := (zeta(tail.alpha, high + 1.0) / whole > shares) & (high < _LARGEST)).any():
        low, high = np.where(open_ends, high + 1, low), np.where(open_ends, 2 * high, high)
    while (low < high).any():
        middle = (low + high) // 2
        too_low = zeta(tail.alpha, middle + 1.0) / whole > shares
        low, high = np.where(too_low, middle + 1, low), np.where(too_low, high, middle)
    return low


def _as_far(counts: np.ndarray, tail: Tail, simulations: int, rng: np.random.Generator) -> float:
    """The share of simulated sets of counts that are at least as far from their own fit."""
    below = counts[counts < tail.start]
    worse = 0
    for _ in range(simulations):
        n_tail = rng.binomial(counts.size, tail.n_labels / counts.size)
        head = draw_counts(tail, n_tail, rng)
        rest = rng.choice(below, counts.size - n_tail) if below.size else head[:0]
        worse += fit_tail(np.concatenate([head, rest])).distance >= tail.distance
    return worse / simulations


def _interval(values: list[float]) -> list[float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return [float(low), float(high)]


def _places(n: int) -> np.ndarray:
    """Ranks, from 0, that are enough for a plot."""
    return np.unique(np.geomspace(1, n, 200).round().astype(int)) - 1


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """A row a data set, what it says, and counts by rank with both laws."""
    rows = [
        {
            "dataset": r["dataset"],
            "rows": r["rows"],
            "labels": r["labels"],
            **{f"below {few}, %": round(r[f"below {few}"], 1) for few in _RARE},
            "β of the line": round(r["beta"], 3),
            "β low": round(r["beta_interval"][0], 3),
            "β high": round(r["beta_interval"][1], 3),
            "α": round(r["alpha"], 3),
            "α low": round(r["alpha_interval"][0], 3),
            "α high": round(r["alpha_interval"][1], 3),
            "β = 1/(α - 1)": round(1 / (r["alpha"] - 1), 3),
            "α of all labels": round(r["alpha_of_all"], 3),
            "distance of all": round(r["distance_of_all"], 4),
            "from": r["start"],
            "labels from there": r["n_labels"],
            "distance": round(r["distance"], 4),
            "as far by chance": r["as_far"],
        }
        for r in results
    ]
    return Summary(rows, [_said(r) for r in results], {"powerlaw": _plot(results)})


def _said(r: Record) -> str:
    holds = "a power law is not refuted there" if r["as_far"] > 0.1 else "a power law is refuted even there"
    return (
        f"{r['dataset']}: {r['below 10']:.0f} % of {r['labels']:,} labels have fewer than 10 of {r['rows']:,} rows, "
        f"{r['below 5']:.0f} % fewer than 5. The line through all ranks has β = {r['beta']:.2f} "
        f"[{r['beta_interval'][0]:.2f}, {r['beta_interval'][1]:.2f}]; by likelihood α = {r['alpha']:.2f} "
        f"[{r['alpha_interval'][0]:.2f}, {r['alpha_interval'][1]:.2f}], that is β = {1 / (r['alpha'] - 1):.2f}, for "
        f"the {100 * r['n_labels'] / r['labels']:.0f} % of labels with {r['start']} rows or more; {holds} "
        f"({100 * r['as_far']:.0f} % of simulated sets are as far from their fit). All labels: "
        f"α = {r['alpha_of_all']:.2f}, β = {1 / (r['alpha_of_all'] - 1):.2f}, "
        f"{100 * r['distance_of_all']:.0f} % off at worst."
    )


def _plot(results: list[Record]) -> Any:
    from tailwise.experiments.plotting import COLOURS, make_figure

    columns = min(3, len(results))
    figure, axes = make_figure(-(-len(results) // columns), columns, width=3.6, height=2.9)
    for axis in axes.flat[len(results) :]:
        axis.set_axis_off()
    for axis, r in zip(axes.flat, results, strict=False):
        ranks, counts = _places(r["labels"]) + 1, np.array(r["counts"])
        axis.loglog(ranks, counts, ".", color=COLOURS[0], markersize=3, rasterized=True, label="labels")
        line = np.exp(np.log(counts).mean() + r["beta"] * (np.log(ranks).mean() - np.log(ranks)))
        axis.loglog(ranks, line, "--", color=COLOURS[1], linewidth=1.2, label=f"line, β = {r['beta']:.2f}")
        own = ranks[ranks <= r["n_labels"]]
        slope = 1 / (r["alpha"] - 1)
        axis.loglog(
            own,
            r["start"] * (own / r["n_labels"]) ** -slope,
            color=COLOURS[2],
            linewidth=1.2,
            label=f"likelihood, β = {slope:.2f}",
        )
        axis.set(title=r["dataset"], xlabel="rank of the label", ylabel="training rows")
        axis.legend(frameon=False, fontsize=7)
    return figure
