"""Experiment ``dropping``: do propensities help to judge and to train models when labels go missing along a curve?

After figure 3 of *Extreme Multi-label Loss Functions for Recommendation, Tagging, Ranking & Other Missing Label
Applications*. A data set's labels are taken to be complete and dropped along the paper's propensity curve for several
A (B = 1.5). (a) Test labels are dropped many times, and plain and propensity-scored P@3 and nDCG@3 are compared with
their value on complete labels. (b) Training labels are dropped; models with and without propensities learn from what
is left and are judged by the plain metrics on complete test labels. (c) As (b) at one curve, but the model is told a
wrong A.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tailwise
from tailwise.base import TopK
from tailwise.data import Dataset, drop_labels, load_dataset, make_longtail
from tailwise.experiments.running import Record, Summary
from tailwise.metrics import evaluate
from tailwise.propensity import JainPropensity
from tailwise.validation import check_labels

B = 1.5
REFERENCE = 0.55
ESTIMATES = {
    "p@3": "plain",
    "psp@3": "scored",
    "ndcg@3": "plain",
    "psndcg@3": "scored",
    "psndcg@3, relevant labels counted": "scored, |y*| known",
}
JUDGED_BY = ("ndcg@3", "p@1", "p@3", "p@5")


class Family(NamedTuple):
    """A model without propensities and the same model with them."""

    title: str
    plain: Callable[[Record], Any]
    scored: Callable[[Record, np.ndarray], Any]
    """From settings and propensities to a model."""
    tail: Callable[[Record, np.ndarray], Any] | None = None
    """The same with the weight 1/p - 1, which is no theory's but was found best for rare labels."""


FAMILIES = {
    "forest": Family(
        "FastXML and PfastXML",
        lambda s: tailwise.FastXML(n_trees=s["trees"]),
        lambda s, p: tailwise.PfastXML(n_trees=s["trees"], propensity=p),
    ),
    "linear": Family(
        "DiSMEC and PW-DiSMEC",
        lambda s: tailwise.DiSMEC(C_decay=0.0),
        lambda s, p: tailwise.PWDiSMEC(propensity=p, weighting="convex", C_decay=0.0),
        lambda s, p: tailwise.PWDiSMEC(propensity=p, weighting="tail", C_decay=0.0),
    ),
}


def choose(size: str, options: Record) -> Record:
    """Curves, models and repeats of each size."""
    usual = {
        "dataset": "eurlex-4k",
        "curves": [0.25, 0.4, 0.55, 0.7, 0.85],
        "told": [0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.2],
        "draws": 50,
        "repeats": 3,
        "trees": 10,
        "rows": {"forest": 5_000, "linear": 3_000},
        "families": list(FAMILIES),
    }
    by_size: dict[str, Record] = {
        "quick": {
            "dataset": "synthetic",
            "curves": [0.4, 0.55],
            "told": [0.25, 0.55],
            "draws": 10,
            "repeats": 1,
            "trees": 2,
            "rows": {"forest": 800, "linear": 500},
        },
        "default": {},
        "full": {"draws": 200, "repeats": 5, "trees": 50, "rows": {"forest": 10**9, "linear": 10**9}},
    }
    return {**usual, **by_size[size], **({"dataset": options["data"]} if "data" in options else {})}


def cells(settings: Record) -> list[Record]:
    """One cell a curve for (a); one a training for (b) and (c).

    ``told`` is the A of the curve that the model is told. "nothing": a model without propensities; "observed": the
    right A, but frequencies of the observed labels; "tail": the true propensities with the weight 1/p - 1.
    """
    found: list[Record] = [{"part": "judging", "curve": a} for a in settings["curves"]]
    for repeat in range(settings["repeats"]):
        for family in settings["families"]:
            base = {"part": "training", "family": family, "repeat": repeat}
            for a in settings["curves"]:
                kinds = ["nothing", a, "observed"] + ["tail"] * (FAMILIES[family].tail is not None)
                found += [{**base, "curve": a, "told": told} for told in kinds]
            found += [{**base, "curve": REFERENCE, "told": a} for a in settings["told"] if a != REFERENCE]
    return found


class Shared(NamedTuple):
    """What all cells share."""

    settings: Record
    data: Dataset
    top: TopK
    """Predictions of one fixed model for part (a)."""

    def curve(self, a: float) -> np.ndarray:
        """The propensities along which labels are dropped, from the frequencies of the complete labels."""
        return JainPropensity(a=a, b=B).fit(self.data.Y_train).propensity_


def prepare(settings: Record, n_jobs: int | None) -> Shared:
    """The data, and the fixed predictions that part (a) judges: those of the nearest label mean."""
    if settings["dataset"] == "synthetic":
        data = make_longtail(2_000, 800, 150, propensity=1.0, random_state=settings["seed"], n_jobs=n_jobs)
    else:
        data = load_dataset(settings["dataset"])
    model = tailwise.Centroid(n_jobs=n_jobs).fit(data.X_train, data.Y_train)
    return Shared(settings, data, model.predict_topk(data.X_test, 5))


def compute(shared: Shared, cell: Record, n_jobs: int | None) -> Record:
    """One curve's draws of test labels, or one training."""
    return _judge(shared, cell) if cell["part"] == "judging" else _train(shared, cell, n_jobs)


def _judge(shared: Shared, cell: Record) -> Record:
    truth, top = check_labels(shared.data.Y_test), shared.top
    p = shared.curve(cell["curve"])
    complete = evaluate(truth, top, ["p@3", "ndcg@3"], confidence=None)
    counts = np.diff(truth.indptr)
    drawn: dict[str, list[float]] = {name: [] for name in ESTIMATES}
    for draw in range(shared.settings["draws"]):
        rng = np.random.default_rng([shared.settings["seed"], draw, round(1000 * cell["curve"])])
        seen = drop_labels(truth, p, random_state=rng)
        names = ["p@3", "ndcg@3", "psp@3", "psndcg@3"]
        found = evaluate(seen, top, names, propensity=p, confidence=None, normalize=False)
        known = evaluate(seen, top, "psndcg@3", p, confidence=None, normalize=False, relevant_counts=counts)
        for name in names:
            drawn[name].append(found[name].value)
        drawn["psndcg@3, relevant labels counted"].append(known["psndcg@3"].value)
    return {
        "kept": 100 * float(p[truth.indices].mean()),
        "truth": {name: complete[name].value for name in ("p@3", "ndcg@3")},
        "estimates": {name: [round(value, 6) for value in values] for name, values in drawn.items()},
    }


def _train(shared: Shared, cell: Record, n_jobs: int | None) -> Record:
    settings, data = shared.settings, shared.data
    seed = [settings["seed"], cell["repeat"], round(1000 * cell["curve"])]
    seen = drop_labels(data.Y_train, shared.curve(cell["curve"]), random_state=np.random.default_rng([*seed, 1]))
    rows = np.random.default_rng([*seed, 2]).permutation(data.n_train)[: settings["rows"][cell["family"]]]
    X, Y = data.X_train[rows], seen[rows]
    family = FAMILIES[cell["family"]]
    if cell["told"] == "nothing":
        model = family.plain(settings)
    elif cell["told"] == "observed":
        model = family.scored(settings, JainPropensity(a=cell["curve"], b=B).fit(seen).propensity_)
    elif cell["told"] == "tail" and family.tail is not None:
        model = family.tail(settings, shared.curve(cell["curve"]))
    else:
        model = family.scored(settings, shared.curve(cell["told"]))
    model.set_params(n_jobs=n_jobs)
    if "random_state" in model.get_params():
        model.set_params(random_state=cell["repeat"])
    found = evaluate(data.Y_test, model.fit(X, Y).predict_topk(data.X_test, 5), JUDGED_BY, confidence=None)
    return {name: found[name].value for name in JUDGED_BY}


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """One table for all parts, the verdicts, and a plot a part."""
    judging = [r for r in results if r["part"] == "judging"]
    trained = _means([r for r in results if r["part"] == "training"])
    rows, findings = _judging_rows(judging)
    for family in settings["families"]:
        for a in settings["curves"]:
            findings.append(_with_or_without(trained, family, a))
        findings.append(_told_wrongly(settings, trained, family))
    rows += [
        {"part": "training", "curve": curve, "what": f"{family}, told {told}", "metric": name, "truth": "", **figures}
        for (family, curve, told), by_name in trained.items()
        for name, figures in by_name.items()
    ]
    return Summary(rows, findings, {"judging": _plot_judging(rows), "training": _plot_training(settings, trained)})


def _judging_rows(judging: list[Record]) -> tuple[list[Record], list[str]]:
    rows, findings = [], []
    for result in judging:
        said = []
        for name, kind in ESTIMATES.items():
            metric = "p@3" if "psp" in name or name == "p@3" else "ndcg@3"
            values, truth = np.array(result["estimates"][name]), result["truth"][metric]
            rows.append(
                {
                    "part": "judging",
                    "curve": result["curve"],
                    "what": kind,
                    "metric": metric,
                    "truth": round(truth, 3),
                    "mean": round(float(values.mean()), 3),
                    "sd": round(float(values.std(ddof=1)), 3),
                    "n": len(values),
                }
            )
            said.append(f"{metric} {kind} {values.mean():.2f} ± {values.std(ddof=1):.2f} (true {truth:.2f})")
        findings.append(f"(a) A = {result['curve']}, {result['kept']:.0f} % of test labels kept: {'; '.join(said)}.")
    return rows, findings


def _means(results: list[Record]) -> dict[tuple[str, float, Any], dict[str, Record]]:
    """Mean and standard deviation over repeats by (family, curve, what the model was told) and metric."""
    groups: dict[tuple[str, float, Any], list[Record]] = {}
    for r in results:
        groups.setdefault((r["family"], r["curve"], r["told"]), []).append(r)
    return {key: {name: _mean([r[name] for r in group]) for name in JUDGED_BY} for key, group in groups.items()}


def _mean(values: list[float]) -> Record:
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return {"mean": round(float(np.mean(values)), 3), "sd": round(sd, 3), "n": len(values)}


def _shown(figures: Record) -> str:
    return f"{figures['mean']:.2f} ± {figures['sd']:.2f}"


def _with_or_without(trained: Any, family: str, a: float) -> str:
    without, right, observed = (trained[family, a, told]["ndcg@3"] for told in ("nothing", a, "observed"))
    gain = right["mean"] - without["mean"]
    tail = trained.get((family, a, "tail"))
    return (
        f"(b) {FAMILIES[family].title}, A = {a}: nDCG@3 on complete labels {_shown(without)} without propensities, "
        f"{_shown(right)} with the true ones ({gain:+.2f}), {_shown(observed)} with those from observed counts"
        + (f", {_shown(tail['ndcg@3'])} with the weight 1/p - 1." if tail else ".")
    )


def _told_wrongly(settings: Record, trained: Any, family: str) -> str:
    without = trained[family, REFERENCE, "nothing"]["ndcg@3"]
    told = {a: trained[family, REFERENCE, a]["ndcg@3"] for a in sorted({*settings["told"], REFERENCE})}
    better = [f"{a}" for a, figures in told.items() if figures["mean"] > without["mean"]]
    listed = "; ".join(f"A = {a}: {_shown(figures)}" for a, figures in told.items())
    return (
        f"(c) {FAMILIES[family].title}, labels dropped at A = {REFERENCE}: {_shown(without)} without propensities; "
        f"told {listed}. Better than without: {', '.join(better) or 'none'}."
    )


def _plot_judging(rows: list[Record]) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    figure, axes = make_figure(1, 2)
    for axis, metric in zip(axes[0], ("p@3", "ndcg@3"), strict=True):
        mine = [r for r in rows if r["part"] == "judging" and r["metric"] == metric]
        for i, kind in enumerate(dict.fromkeys(r["what"] for r in mine)):
            of_kind = [r for r in mine if r["what"] == kind]
            line(axis, i, *([r[name] for r in of_kind] for name in ("curve", "mean", "sd")), label=kind)
        axis.axhline(mine[0]["truth"], color="black", linewidth=1, linestyle="--", label="on complete labels")
        axis.set(title=metric, xlabel="A of the curve along which test labels are dropped", ylabel="%")
        axis.legend(frameon=False, fontsize=8)
    return figure


def _plot_training(settings: Record, trained: Any) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    families = settings["families"]
    figure, axes = make_figure(max(1, len(families)), 2)
    for (left, right), family in zip(axes, families, strict=False):
        labels = {"nothing": "without propensities", "right": "true propensities", "observed": "from observed counts"}
        if FAMILIES[family].tail is not None:
            labels["tail"] = "true ones, weight 1/p - 1"
        for i, (told, label) in enumerate(labels.items()):
            points = [trained[family, a, a if told == "right" else told]["ndcg@3"] for a in settings["curves"]]
            spread = [p["sd"] for p in points]
            line(left, i, settings["curves"], [p["mean"] for p in points], spread, label=label)
        left.set(
            title=FAMILIES[family].title, xlabel="A of the curve along which labels are dropped", ylabel="nDCG@3, %"
        )
        left.legend(frameon=False, fontsize=8)
        values = sorted({*settings["told"], REFERENCE})
        told_points = [trained[family, REFERENCE, a]["ndcg@3"] for a in values]
        line(
            right,
            1,
            values,
            [p["mean"] for p in told_points],
            [p["sd"] for p in told_points],
            label="with propensities",
        )
        without = trained[family, REFERENCE, "nothing"]["ndcg@3"]
        right.axhline(without["mean"], color="black", linewidth=1, linestyle="--", label="without propensities")
        right.axhspan(without["mean"] - without["sd"], without["mean"] + without["sd"], color="black", alpha=0.08)
        right.set(title=f"labels dropped at A = {REFERENCE}", xlabel="A that the model is told", ylabel="nDCG@3, %")
        right.legend(frameon=False, fontsize=8)
    return figure
