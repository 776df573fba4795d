"""Experiment ``frequency``: for which labels do propensities gain, by how often a label is seen in training?

After figure 4 and table 4 of *Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other Missing
Label Applications*, which says that PfastreXML's gain over FastXML comes from infrequent labels, and that it predicts
more distinct labels. Labels are binned by their training rows; a bin's share of PSP@5 and P@5 is what its labels add to
them, so that the bins sum to the whole, and its recall@5 is the share of its test labels that is found. The same for
PW-DiSMEC over DiSMEC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tailwise
from tailwise.data import Dataset, load_dataset, make_longtail
from tailwise.experiments.running import Record, Summary
from tailwise.experiments.sensitivity import hit_matrix, rarest_of_rows
from tailwise.forest import TailCentroids
from tailwise.metrics import evaluate
from tailwise.metrics.rows import Batch
from tailwise.propensity import JainPropensity
from tailwise.topk import TopK

K = 5
EDGES = (1, 3, 6, 11, 21, 51, 101, 201)
"""The first count of each bin but the first, which has the labels without training rows."""


def published_pfastrexml(n_trees: int, seed: int) -> tailwise.PfastreXML:
    """PfastreXML with the settings of its paper and of its authors' program."""
    spheres = TailCentroids(shape="sphere", idf=False)
    return tailwise.PfastreXML(
        n_trees=n_trees, C=1.0, idf=False, max_features=1.0, centroids=spheres, random_state=seed
    )


MODELS: dict[str, Callable[[Record, int], Any]] = {
    "FastXML": lambda s, seed: tailwise.FastXML(n_trees=s["trees"], random_state=seed),
    "PfastXML": lambda s, seed: tailwise.PfastXML(n_trees=s["trees"], random_state=seed),
    "PfastreXML": lambda s, seed: tailwise.PfastreXML(n_trees=s["trees"], random_state=seed),
    "PfastreXML as published": lambda s, seed: published_pfastrexml(s["trees"], seed),
    "DiSMEC": lambda s, seed: tailwise.DiSMEC(C_decay=0.0, random_state=seed),
    "PWDiSMEC, 1/p - 1": lambda s, seed: tailwise.PWDiSMEC(weighting="tail", C_decay=0.0, random_state=seed),
    "PWDiSMEC, 2/p - 1": lambda s, seed: tailwise.PWDiSMEC(weighting="convex", C_decay=0.0, random_state=seed),
}
"""From settings and a seed to a model, by name."""

PAIRS = (
    ("PfastXML", "FastXML"),
    ("PfastreXML", "FastXML"),
    ("PfastreXML", "PfastXML"),
    ("PfastreXML as published", "FastXML"),
    ("PWDiSMEC, 1/p - 1", "DiSMEC"),
    ("PWDiSMEC, 2/p - 1", "DiSMEC"),
)
"""Whose gain over whom is shown."""

_SHOWN = {
    "P@1/3/5": ("p@1", "p@3", "p@5"),
    "nDCG@3/5": ("ndcg@3", "ndcg@5"),
    "PSP@1/3/5": ("psp@1", "psp@3", "psp@5"),
    "PSnDCG@3/5": ("psndcg@3", "psndcg@5"),
    "labels predicted at 1/3/5, %": ("predicted@1", "predicted@3", "predicted@5"),
    "labels found at 1/3/5, %": ("coverage@1", "coverage@3", "coverage@5"),
}
_METRICS = tuple(name for names in _SHOWN.values() for name in names)


def choose(size: str, options: Record) -> Record:
    """Data set, trees and seeds of each size."""
    usual = {"dataset": "eurlex-4k", "trees": 50, "repeats": 3}
    by_size: dict[str, Record] = {
        "quick": {"dataset": "synthetic", "trees": 3, "repeats": 2},
        "default": {},
        "full": {"repeats": 5},
    }
    return {**usual, **by_size[size], **({"dataset": options["data"]} if "data" in options else {})}


def cells(settings: Record) -> list[Record]:
    """One cell a training; one-vs-rest models do not depend on their seed but for the last digits."""
    return [
        {"model": name, "repeat": repeat}
        for name in MODELS
        for repeat in range(settings["repeats"] if "XML" in name else 1)
    ]


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, Dataset]:
    """The data."""
    if settings["dataset"] == "synthetic":
        return settings, make_longtail(2_000, 800, 150, random_state=settings["seed"], n_jobs=n_jobs)
    return settings, load_dataset(settings["dataset"])


def compute(shared: tuple[Record, Dataset], cell: Record, n_jobs: int | None) -> Record:
    """Train and predict; the predictions are the result."""
    settings, data = shared
    model = MODELS[cell["model"]](settings, settings["seed"] + cell["repeat"]).set_params(n_jobs=n_jobs)
    return {"labels": model.fit(data.X_train, data.Y_train).predict_topk(data.X_test, K).labels.tolist()}


def bin_names() -> list[str]:
    """The bins as they are shown: the training rows of their labels.

    >>> bin_names()[:3], bin_names()[-1]
    (['0', '1-2', '3-5'], '201+')
    """
    ends = [*EDGES[1:], None]
    return ["0"] + [
        f"{first}+" if last is None else f"{first}-{last - 1}" for first, last in zip(EDGES, ends, strict=True)
    ]


def shares_by_bin(top: np.ndarray, data: Dataset) -> dict[str, np.ndarray]:
    """What each row earns in each bin, (n_rows, n_bins): ``psp`` and ``p`` as shares of the whole, and ``hits``.

    The mean over rows, summed over bins, is PSP@5 and P@5 in percent.
    """
    counts = data.label_counts
    inverse = JainPropensity().fit(data.Y_train).inverse_
    bins = np.eye(len(EDGES) + 1)[np.searchsorted(EDGES, counts, side="right")]
    batch = Batch(data.Y_test, top, None, K)
    hits = hit_matrix(batch, K)
    best = float(rarest_of_rows(batch.Y, counts, K) @ inverse) / batch.Y.shape[0]
    return {"psp": hits @ (bins * inverse[:, None]) * (100 / best), "p": hits @ bins * (100 / K), "hits": hits @ bins}


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """A row a model and bin, the gain of one model over another by bin, and the plot."""
    data = prepared()[1]
    names, propensity = bin_names(), JainPropensity().fit(data.Y_train)
    place = np.searchsorted(EDGES, data.label_counts, side="right")
    n_labels = np.bincount(place, minlength=len(names))
    n_true = np.bincount(place[data.Y_test.tocsr().indices], minlength=len(names))
    shares: dict[str, list[dict[str, np.ndarray]]] = {}
    whole: dict[str, list[dict[str, float]]] = {}
    for r in results:
        top = np.array(r["labels"], np.int32)
        shares.setdefault(r["model"], []).append(shares_by_bin(top, data))
        ranks = np.broadcast_to(-np.arange(K, dtype=np.float32), top.shape)
        scored = TopK(top, np.where(top >= 0, ranks, -np.inf).astype(np.float32))
        found = evaluate(data.Y_test, scored, _METRICS, propensity=propensity, confidence=None)
        whole.setdefault(r["model"], []).append({name: float(found[name].value) for name in _METRICS})
    rows = [
        {
            "model": model,
            "training rows of the label": name,
            "labels": int(n_labels[b]),
            "test labels": int(n_true[b]),
            "PSP@5 share": round(float(np.mean([s["psp"][:, b].mean() for s in own])), 3),
            "P@5 share": round(float(np.mean([s["p"][:, b].mean() for s in own])), 3),
            "recall@5": round(100 * float(np.mean([s["hits"][:, b].sum() for s in own])) / max(1, int(n_true[b])), 2),
        }
        for model, own in shares.items()
        for b, name in enumerate(names)
    ]
    gains = [_gain(names, better, plain, shares, n_true) for better, plain in PAIRS]
    findings = [_whole(model, own) for model, own in whole.items()] + [_said(names, gain) for gain in gains]
    for gain in gains:
        rows += [
            {
                "model": f"{gain['better']} less {gain['plain']}",
                "training rows of the label": name,
                "labels": int(n_labels[b]),
                "test labels": int(n_true[b]),
                "PSP@5 share": round(gain["psp"][b], 3),
                "P@5 share": round(gain["p"][b], 3),
                "recall@5": round(gain["recall"][b], 2),
            }
            for b, name in enumerate(names)
        ]
    return Summary(rows, findings, {"frequency": _plot(names, gains)})


def _gain(
    names: list[str], better: str, plain: str, shares: dict[str, list[dict[str, np.ndarray]]], n_true: np.ndarray
) -> Record:
    """The gain by bin: its mean over seeds, its standard error over test rows, and its spread over seeds."""
    found: Record = {"better": better, "plain": plain}
    for measure in ("psp", "p", "hits"):
        ours, theirs = (np.mean([s[measure] for s in shares[name]], axis=0) for name in (better, plain))
        difference = ours - theirs
        found[measure] = difference.mean(axis=0).tolist()
        found[f"{measure}_error"] = (difference.std(axis=0, ddof=1) / np.sqrt(len(difference))).tolist()
    found["recall"] = (100 * np.array(found["hits"]) * len(difference) / np.maximum(1, n_true)).tolist()
    by_seed = [s["psp"].mean(axis=0) for s in shares[better]]
    found["psp_sd"] = np.std(by_seed, axis=0, ddof=1).tolist() if len(by_seed) > 1 else [0.0] * len(names)
    return found


def _whole(model: str, own: list[dict[str, float]]) -> str:
    said = "; ".join(
        f"{title} {' / '.join(f'{np.mean([o[name] for o in own]):.1f}' for name in names)}"
        for title, names in _SHOWN.items()
    )
    spread = max(float(np.std([o[name] for o in own], ddof=1)) for name in _METRICS) if len(own) > 1 else 0.0
    return f"{model}: {said}" + (f"; over {len(own)} seeds a figure's sd is at most {spread:.2f}." if spread else ".")


def _said(names: list[str], gain: Record) -> str:
    psp, p = np.array(gain["psp"]), np.array(gain["p"])
    rare = sum(name == "0" or int(name.split("-")[0].rstrip("+")) < 21 for name in names)
    parts = ", ".join(
        f"{name}: {value:+.2f} ± {error:.2f}" for name, value, error in zip(names, psp, gain["psp_error"], strict=True)
    )
    return (
        f"{gain['better']} less {gain['plain']}: PSP@5 {psp.sum():+.2f}, of which labels of at most 20 rows "
        f"{psp[:rare].sum():+.2f}; P@5 {p.sum():+.2f}, of which {p[:rare].sum():+.2f}. By training rows: {parts}."
    )


def _plot(names: list[str], gains: list[Record]) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    figure, axes = make_figure(1, 3, width=4.4)
    for i, gain in enumerate(gains):
        title, places = f"{gain['better']} less {gain['plain']}", range(len(names))
        line(axes[0, 0], i, places, gain["psp"], gain["psp_error"], label=title)
        line(axes[0, 1], i, places, gain["p"], gain["p_error"])
        line(axes[0, 2], i, places, gain["recall"])
    titles = ("added to PSP@5, points", "added to P@5, points", "recall@5 of the bin, points")
    for axis, title in zip(axes[0], titles, strict=True):
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set(title=title, xlabel="training rows of the label")
        axis.set_xticks(range(len(names)), names, rotation=45, fontsize=7)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=7)
    return figure
