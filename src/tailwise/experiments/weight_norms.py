"""Experiment ``norms``: does the norm of a label's weights follow its frequency, and how often it is predicted?

After Theorem 1 and figures 1 and 4 of *Improving Tail Label Prediction for Extreme Multi-label Learning*. (a) The
theorem in its own setting: labels of given norms and random directions, rows drawn evenly from a sphere, a label is
predicted where its score passes a threshold, or is among the best five. (b) Linear models and label trees on a data
set: the norm of each label's weights beside its training rows and the share of test rows that have it among their best
five; one-vs-rest also with all norms made equal, the bias divided too or left out.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import betainc
from scipy.stats import rankdata

import tailwise
from tailwise.base import TopK, XMCModel
from tailwise.data import Dataset, load_dataset, make_longtail
from tailwise.experiments.running import Record, Summary
from tailwise.metrics import evaluate
from tailwise.propensity import JainPropensity
from tailwise.tail import classifier_norms
from tailwise.validation import label_counts

METRICS = tuple(f"{name}@{k}" for name in ("p", "ndcg", "psp", "psndcg") for k in (1, 3, 5))
EQUAL, COSINE = "DiSMEC, equal norms", "DiSMEC, equal norms, no bias"
MODELS: dict[str, Callable[[Record], XMCModel]] = {
    "DiSMEC": lambda s: tailwise.DiSMEC(C_decay=0.0),
    EQUAL: lambda s: tailwise.DiSMEC(C_decay=0.0),
    COSINE: lambda s: tailwise.DiSMEC(C_decay=0.0),
    "Parabel": lambda s: tailwise.Parabel(n_trees=s["trees"]),
    "Bonsai": lambda s: tailwise.Bonsai(n_trees=s["trees"]),
}
THRESHOLD = 0.5
"""t of the theorem, with rows of unit length and norms of 1 and more."""
NORMS = np.linspace(1, 4, 13)
RELATIONS = {
    "norm, frequency": ("norm", "frequency", None),
    "norm, rate": ("norm", "rate", None),
    "norm, rate | frequency": ("norm", "rate", "frequency"),
    "rate, frequency": ("rate", "frequency", None),
}
"""Which rank correlations over labels are printed; the third with the ranks of frequency regressed out of both."""


def choose(size: str, options: Record) -> Record:
    """Dimensions, models and repeats of each size."""
    usual = {
        "dataset": "eurlex-4k",
        "models": list(MODELS),
        "trees": 3,
        "repeats": 3,
        "dimensions": [2, 10, 50],
        "points": 200_000,
        "bins": 30,
    }
    by_size: dict[str, Record] = {
        "quick": {"dataset": "synthetic", "trees": 1, "repeats": 2, "points": 20_000, "bins": 10},
        "default": {},
        "full": {"repeats": 5, "points": 1_000_000},
    }
    return {**usual, **by_size[size], **({"dataset": options["data"]} if "data" in options else {})}


def cells(settings: Record) -> list[Record]:
    """One cell a dimension for (a), one a training for (b)."""
    found: list[Record] = [{"part": "theorem", "dimension": d} for d in settings["dimensions"]]
    return found + [
        {"part": "models", "model": model, "repeat": repeat}
        for repeat in range(settings["repeats"])
        for model in settings["models"]
    ]


def load(name: str, seed: int, n_jobs: int | None) -> Dataset:
    """The data set of that name; ``"synthetic"`` is a small long-tail one."""
    if name == "synthetic":
        return make_longtail(2_000, 800, 300, random_state=seed, n_jobs=n_jobs)
    return load_dataset(name)


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, Dataset]:
    """The data."""
    return settings, load(settings["dataset"], settings["seed"], n_jobs)


def compute(shared: tuple[Record, Dataset], cell: Record, n_jobs: int | None) -> Record:
    """A simulation of the theorem, or a model's norms, rates and metrics."""
    settings, data = shared
    if cell["part"] == "theorem":
        return _simulate(cell["dimension"], settings["points"], settings["seed"])
    model = MODELS[cell["model"]](settings).set_params(n_jobs=n_jobs, random_state=cell["repeat"])
    model.fit(data.X_train, data.Y_train)
    if cell["model"] in (EQUAL, COSINE):
        model = with_equal_norms(model, bias=cell["model"] == EQUAL)
    return judge(model, data, settings["bins"])


def predicted_rate(norms: np.ndarray, threshold: float, dimension: int) -> np.ndarray:
    """P(w·x >= t) for x drawn evenly from the unit sphere, where 0 < t <= ‖w‖: ``½ I_{1 - (t/‖w‖)²}((d-1)/2, ½)``.

    In two dimensions the angle is uniform and this is the ``arccos(t/‖w‖)/π`` of the paper's proof.

    >>> predicted_rate(np.array([1.0, 2.0]), 0.5, 2).round(4), (np.arccos([0.5, 0.25]) / np.pi).round(4)
    (array([0.3333, 0.4196]), array([0.3333, 0.4196]))
    """
    return 0.5 * betainc((dimension - 1) / 2, 0.5, 1 - (threshold / norms) ** 2)


def _simulate(dimension: int, n_points: int, seed: int) -> Record:
    """How often labels of each norm pass the threshold, and are among the best five; directions are random."""
    rng = np.random.default_rng([seed, dimension])
    norms = np.repeat(NORMS, 20)
    W = norms[:, None] * _on_sphere(rng, norms.size, dimension)
    passed, best = np.zeros(norms.size), np.zeros(norms.size)
    for _ in range(0, n_points, 10_000):
        scores = _on_sphere(rng, 10_000, dimension) @ W.T
        passed += (scores >= THRESHOLD).sum(axis=0)
        best += np.bincount(np.argpartition(-scores, 5, axis=1)[:, :5].ravel(), minlength=norms.size)
    drawn = len(range(0, n_points, 10_000)) * 10_000
    by_norm = [(part / drawn).reshape(NORMS.size, -1).mean(axis=1) for part in (passed, best)]
    return {
        "norms": NORMS.tolist(),
        "closed_form": predicted_rate(NORMS, THRESHOLD, dimension).tolist(),
        "passed": by_norm[0].tolist(),
        "best_five": by_norm[1].tolist(),
    }


def _on_sphere(rng: np.random.Generator, n: int, dimension: int) -> np.ndarray:
    drawn = rng.standard_normal((n, dimension))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def with_equal_norms(model: Any, *, bias: bool = True) -> Any:
    """A one-vs-rest model with each label's weights and bias divided by the norm of its weights.

    Without the bias, labels are ranked by the cosine between their weights and the row.
    """
    norms = classifier_norms(model)
    scale = (1 / np.where(norms > 0, norms, 1)).astype(np.float32)
    scaled = copy.copy(model)
    scaled.weights_ = sparse.csr_array(model.weights_ * scale)
    scaled.bias_ = model.bias_ * scale if bias else np.where(np.isneginf(model.bias_), -np.inf, 0).astype(np.float32)
    return scaled


def judge(model: XMCModel, data: Dataset, n_bins: int) -> Record:
    """Metrics on test rows, and norms and rates over labels: rank correlations, and means over bins by frequency."""
    top = model.predict_topk(data.X_test, 5)
    propensity = JainPropensity().fit(data.Y_train)
    found = evaluate(
        data.Y_test, top, METRICS, propensity=propensity, label_counts=model.label_counts_, confidence=None
    )
    described = describe(label_counts(data.Y_train), classifier_norms(model), top, data.Y_test, n_bins)
    return {name: found[name].value for name in METRICS} | described


def describe(counts: np.ndarray, norms: np.ndarray, top: TopK, Y_test: sparse.csr_array, n_bins: int) -> Record:
    """What norms, frequencies and rates of labels say of each other; labels without training rows are left out."""
    seen = np.flatnonzero(counts)
    rates = np.bincount(top.labels[top.labels >= 0], minlength=counts.size) / max(1, top.labels.shape[0])
    true = label_counts(Y_test) / max(1, Y_test.shape[0])
    values = {"norm": norms[seen], "frequency": counts[seen].astype(float), "rate": rates[seen]}
    bins = np.array_split(seen[np.argsort(-counts[seen], kind="stable")], n_bins)
    return {
        **{name: rank_correlation(*(values.get(part or "") for part in parts)) for name, parts in RELATIONS.items()},
        "by_frequency": {
            "frequency": [float(counts[own].mean()) for own in bins],
            "norm": [float(norms[own].mean()) for own in bins],
            "rate": [float(100 * rates[own].mean()) for own in bins],
            "true_rate": [float(100 * true[own].mean()) for own in bins],
        },
    }


def rank_correlation(a: np.ndarray | None, b: np.ndarray | None, given: np.ndarray | None = None) -> float:
    """Spearman's rank correlation; with ``given``, of what a linear fit on its ranks leaves of the ranks of both.

    >>> rank_correlation(np.array([1.0, 2, 3]), np.array([1.0, 4, 9]))
    1.0
    """
    ranks = [rankdata(part) - (len(part) + 1) / 2 for part in (a, b, given) if part is not None]
    if len(ranks) > 2:
        third = ranks[2]
        ranks = [part - third * (part @ third) / max(third @ third, 1e-300) for part in ranks[:2]]
    size = np.sqrt((ranks[0] @ ranks[0]) * (ranks[1] @ ranks[1]))
    return round(float(ranks[0] @ ranks[1] / size), 4) if size > 0 else 0.0


class Means(NamedTuple):
    """Means and standard deviations over repeats, by name."""

    mean: dict[str, float]
    sd: dict[str, float]
    n: int

    @classmethod
    def of(cls, results: list[Record], names: tuple[str, ...]) -> Means:
        """Over ``results``, of those ``names``."""
        values = {name: np.array([r[name] for r in results], float) for name in names}
        spread = {name: float(v.std(ddof=1)) if len(v) > 1 else 0.0 for name, v in values.items()}
        return cls({name: float(v.mean()) for name, v in values.items()}, spread, len(results))

    def shown(self, name: str, digits: int = 1) -> str:
        """``mean ± sd``."""
        return f"{self.mean[name]:.{digits}f} ± {self.sd[name]:.{digits}f}"

    def listed(self, *names: str, digits: int = 1) -> str:
        """The values of ``names``, parted by strokes."""
        return " / ".join(self.shown(name, digits) for name in names)

    def record(self, digits: int = 3) -> Record:
        """Both as one record: ``name`` and ``name sd``."""
        found: Record = {}
        for name in self.mean:
            found[name], found[f"{name} sd"] = round(self.mean[name], digits), round(self.sd[name], digits)
        return found


def mean_bins(results: list[Record]) -> dict[str, np.ndarray]:
    """The bins by frequency, averaged over repeats."""
    return {name: np.mean([r["by_frequency"][name] for r in results], axis=0) for name in results[0]["by_frequency"]}


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """The correlations and metrics of each model, what the theorem's own setting gives, and the plots."""
    theory = [r for r in results if r["part"] == "theorem"]
    by_model = {name: [r for r in results if r.get("model") == name] for name in settings["models"]}
    rows, findings = [], [_of_theory(r) for r in theory]
    for name, own in by_model.items():
        means = Means.of(own, (*RELATIONS, *METRICS))
        bins = mean_bins(own)
        third = max(1, len(bins["norm"]) // 3)
        rows.append({"model": name, "repeats": means.n, **means.record()})
        findings.append(
            f"(b) {name}: rank correlations of "
            + "; ".join(f"{relation} {means.shown(relation, 2)}" for relation in RELATIONS)
            + f". Mean norm {bins['norm'][:third].mean():.2f} in the most frequent third of the labels, "
            f"{bins['norm'][-third:].mean():.2f} in the rarest; predicted {_share(bins, slice(third)):.2f} and "
            f"{_share(bins, slice(-third, None)):.2f} times as often as they are true. "
            f"P@1/3/5 {means.listed('p@1', 'p@3', 'p@5')}, PSP@1/3/5 {means.listed('psp@1', 'psp@3', 'psp@5')}, "
            f"PSnDCG@3/5 {means.listed('psndcg@3', 'psndcg@5')}."
        )
    figures = {"theorem": _plot_theory(theory), "norms": _plot_models(by_model)}
    return Summary(rows, findings, figures)


def _share(bins: dict[str, np.ndarray], part: slice) -> float:
    return float(bins["rate"][part].sum() / max(bins["true_rate"][part].sum(), 1e-300))


def _of_theory(result: Record) -> str:
    norms, passed, best = (np.array(result[name]) for name in ("norms", "passed", "best_five"))
    off = float(np.abs(passed - result["closed_form"]).max())
    rising = [
        f"{what} {100 * rate[0]:.3g} % at norm {norms[0]:g} and {100 * rate[-1]:.3g} % at norm {norms[-1]:g}"
        + (f", {rate[-1] / rate[0]:.3g} times" if rate[0] > 0 else "")
        for what, rate in ((f"w·x >= {THRESHOLD}", passed), ("among the best five", best))
    ]
    grows = all((np.diff(rate) > -0.01 * rate.max()).all() for rate in (passed, best))
    return (
        f"(a) {result['dimension']} dimensions: {'; '.join(rising)}, where proportion would be {norms[-1]:g} times. "
        f"The rate {'grows' if grows else 'does not always grow'} with the norm; closed form and draws differ by "
        f"{100 * off:.2g} points at most."
    )


def _plot_theory(theory: list[Record]) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    figure, axes = make_figure(1, 2)
    for axis, name, title in zip(
        axes[0], ("passed", "best_five"), (f"w·x ≥ {THRESHOLD}", "among the best five of all labels"), strict=True
    ):
        for i, r in enumerate(theory):
            rates = np.array(r[name])
            line(axis, i, r["norms"], rates / rates[-1], label=f"{r['dimension']} dimensions")
        axis.plot(NORMS, NORMS / NORMS[-1], color="black", linewidth=1, linestyle="--", label="in proportion")
        axis.set(title=title, xlabel="norm of a label's weights", ylabel="rate, over that at norm 4")
        axis.legend(frameon=False, fontsize=8)
    return figure


def _plot_models(by_model: dict[str, list[Record]]) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    figure, (axes,) = make_figure(1, 3)
    for i, (name, results) in enumerate(by_model.items()):
        bins = mean_bins(results)
        line(axes[0], i, bins["frequency"], bins["norm"], label=name)
        line(axes[1], i, bins["norm"], bins["rate"], label=name, linestyle="none")
        line(axes[2], i, bins["frequency"], bins["rate"], label=name)
    axes[2].plot(bins["frequency"], bins["true_rate"], color="black", linewidth=1, linestyle="--", label="true rate")
    axes[0].set(xscale="log", xlabel="training rows of a label", ylabel="norm of its weights")
    axes[1].set(yscale="log", xlabel="norm of a label's weights", ylabel="test rows with it in the top five, %")
    axes[2].set(xscale="log", yscale="log", xlabel="training rows of a label", ylabel="test rows, %")
    for axis in (axes[0], axes[2]):
        axis.legend(frameon=False, fontsize=8)
    return figure
