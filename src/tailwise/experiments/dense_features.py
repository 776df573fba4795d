"""Experiment ``dense``: what do re-ranking and augmentation add to models on dense features?

After tables 2 to 6 of *Improving Tail Label Prediction for Extreme Multi-label Learning*, whose dense features of
EURLex-4K are not at hand. Library records with titles and abstracts become sentence vectors (extra ``encoder``; kept on
disk, so that each text is encoded once) and, for comparison, bags of words. A repeat parts the records anew into those
to train on and those to judge by. Labels on a single record could be learnt or judged, not both, and are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import tailwise
from tailwise.base import XMCModel
from tailwise.data import load_dataset, make_longtail
from tailwise.data.texts import take_texts
from tailwise.errors import InvalidInput
from tailwise.experiments.running import Record, Summary
from tailwise.experiments.sharing import share_fits
from tailwise.experiments.tail_augmentation import KINDS
from tailwise.experiments.weight_norms import METRICS, Means
from tailwise.metrics import evaluate
from tailwise.propensity import JainPropensity
from tailwise.rows import unit_rows
from tailwise.text.vectors import SentenceVectors
from tailwise.validation import label_counts

PLACES = ("tibkat-en-train.jsonl.xz", "data/tibkat-en-train.jsonl.xz", "../shared/data/tibkat-en-train.jsonl.xz")
FEATURES = {"vectors": "sentence vectors", "words": "bag of words"}
BASES: dict[str, Callable[[Record], XMCModel]] = {
    "FastXML": lambda s: tailwise.FastXML(n_trees=s["trees"]["FastXML"]),
    "Parabel": lambda s: tailwise.Parabel(n_trees=s["trees"]["Parabel"]),
    "Bonsai": lambda s: tailwise.Bonsai(n_trees=s["trees"]["Bonsai"]),
}


class Rows(NamedTuple):
    """The records as rows of each kind of features, or as what makes them of texts, and their labels."""

    vectors: sparse.csr_array
    words: Any
    """Texts, or rows where they are made up"""
    Y: sparse.csr_array


def choose(size: str, options: Record) -> Record:
    """Records, models and repeats of each size."""
    usual = {
        "records": 6_000,
        "judged": 1_200,
        "encoder": "minilm",
        "trees": {"FastXML": 20, "Parabel": 1, "Bonsai": 1},
        "models": [["vectors", "FastXML"], ["vectors", "Parabel"], ["vectors", "Bonsai"], ["words", "Bonsai"]],
        "repeats": 3,
    }
    by_size: dict[str, Record] = {
        "quick": {
            "records": 900,
            "judged": 200,
            "encoder": "",
            "trees": {"FastXML": 2, "Parabel": 1, "Bonsai": 1},
            "models": [["vectors", "FastXML"], ["vectors", "Bonsai"], ["words", "Bonsai"]],
            "repeats": 2,
        },
        "default": {},
        "full": {
            "records": 40_000,
            "judged": 8_000,
            "trees": {"FastXML": 50, "Parabel": 3, "Bonsai": 3},
            "repeats": 5,
        },
    }
    return {"data": options.get("data", ""), **usual, **by_size[size]}


def cells(settings: Record) -> list[Record]:
    """Every kind of features × model × repeat; the modules around a model share its fits."""
    return [
        {"features": features, "model": model, "repeat": repeat}
        for repeat in range(settings["repeats"])
        for features, model in settings["models"]
    ]


def modules(base: XMCModel, seed: int, *, kinds: bool) -> dict[str, XMCModel]:
    """``base`` alone and with every module around it; ``kinds`` adds copies by dropout and by swaps alone."""
    around = {"random_state": seed}
    base = share_fits(base)
    augmented = share_fits(tailwise.TailAugmented.as_published(base, **around))
    found: dict[str, XMCModel] = {
        "alone": base,
        "simple form": tailwise.PropensityReranker(base),
        "RankNet": tailwise.RankNet(base, **around),
        "RankNet as published": tailwise.RankNet.as_published(base, **around),
        "Taug": augmented,
        "simple form + Taug": tailwise.PropensityReranker(augmented),
        "RankNet as published + Taug": tailwise.RankNet.as_published(augmented, **around),
    }
    if kinds:
        found |= {
            f"Taug, {kind}": tailwise.TailAugmented.as_published(base, **KINDS[kind], **around)
            for kind in ("dropout", "swap")
        }
    return found


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, Rows]:
    """The records as rows; without an encoder, made-up rows and a random projection of them."""
    rng = np.random.default_rng(settings["seed"])
    if not settings["encoder"]:
        data = make_longtail(
            settings["records"], 800, 150, test_fraction=0, random_state=settings["seed"], n_jobs=n_jobs
        )
        projection = rng.standard_normal((800, 48)).astype(np.float32)
        return settings, Rows(unit_rows(sparse.csr_array(data.X_train @ projection)), data.X_train, data.Y_train)
    read = load_dataset(_find(settings["data"]))
    chosen = rng.permutation(read.n_train)[: settings["records"]]
    Y = sparse.csr_array(read.Y_train[chosen])
    Y = sparse.csr_array(Y[:, np.flatnonzero(label_counts(Y) > 1)])
    labelled = np.flatnonzero(np.diff(Y.indptr))
    texts = take_texts(read.texts_train, chosen[labelled])
    return settings, Rows(
        SentenceVectors(settings["encoder"]).fit_transform(texts), texts, sparse.csr_array(Y[labelled])
    )


def _find(given: str) -> Path:
    for place in [given] if given else PLACES:
        if Path(place).is_file():
            return Path(place)
    raise InvalidInput(
        f"data={given!r} is no file of records; pass --data FILE, such as TIBKAT's tibkat-en-train.jsonl.xz"
    )


def compute(shared: tuple[Record, Rows], cell: Record, n_jobs: int | None) -> Record:
    """Part the records, fit one model in every module, judge."""
    settings, rows = shared
    order = np.random.default_rng([settings["seed"], cell["repeat"]]).permutation(rows.Y.shape[0])
    judged, train = np.sort(order[: settings["judged"]]), np.sort(order[settings["judged"] :])
    X_train, X_judged = _features(rows, cell["features"], train, judged)
    Y_train, Y_judged = sparse.csr_array(rows.Y[train]), sparse.csr_array(rows.Y[judged])
    propensity = JainPropensity().fit(Y_train)
    base = BASES[cell["model"]](settings).set_params(random_state=cell["repeat"], n_jobs=n_jobs)
    kinds = (cell["features"], cell["model"]) == ("vectors", "Bonsai")
    found: Record = {"n_labels": int(rows.Y.shape[1]), "n_train": int(train.size)}
    for name, model in modules(base, cell["repeat"], kinds=kinds).items():
        top = model.fit(X_train, Y_train).predict_topk(X_judged, 5)
        scored = evaluate(Y_judged, top, METRICS, propensity=propensity, confidence=None)
        found[name] = {metric: scored[metric].value for metric in METRICS}
    return found


def _features(rows: Rows, kind: str, train: np.ndarray, judged: np.ndarray) -> tuple[Any, Any]:
    if kind == "vectors":
        return rows.vectors[train], rows.vectors[judged]
    if sparse.issparse(rows.words):
        return rows.words[train], rows.words[judged]
    features = tailwise.TextFeatures()
    return features.fit_transform(take_texts(rows.words, train)), features.transform(take_texts(rows.words, judged))


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """A row a model and module, what each module gains over the model alone, and a plot."""
    rows, findings = [], []
    what = (settings["data"] or "records") if settings["encoder"] else "synthetic rows"
    size = (
        f"{results[0]['n_train']:,} rows to train on, {settings['judged']:,} judged, {results[0]['n_labels']:,} labels"
    )
    findings.append(f"{what}: {size}, {settings['repeats']} repeats")
    plotted: dict[str, dict[str, Means]] = {}
    alone: dict[tuple[str, str], Means] = {}
    for features, model in settings["models"]:
        own = [r for r in results if (r["features"], r["model"]) == (features, model)]
        title = f"{model}, {FEATURES[features]}"
        for module in [name for name in own[0] if isinstance(own[0][name], dict)]:
            means = Means.of([r[module] for r in own], METRICS)
            gains = Means.of([{m: r[module][m] - r["alone"][m] for m in METRICS} for r in own], METRICS)
            rows.append(
                {"features": features, "model": model, "module": module, "repeats": means.n, **means.record()}
                | {f"gain {m}": round(gains.mean[m], 3) for m in METRICS}
                | {f"gain {m} sd": round(gains.sd[m], 3) for m in METRICS}
            )
            findings.append(f"{title}, {module}: {_shown(means)}" + ("" if module == "alone" else _gained(gains)))
            if module == "alone":
                alone[features, model] = means
            else:
                plotted.setdefault(title, {})[module] = gains
    for features, model in settings["models"]:
        if features == "vectors" and ("words", model) in alone:
            pair = [alone[kind, model] for kind in ("vectors", "words")]
            findings.append(
                f"{model}: sentence vectors against bag of words, PSP@1/3/5 "
                + " / ".join(f"{pair[0].mean[m] - pair[1].mean[m]:+.1f}" for m in ("psp@1", "psp@3", "psp@5"))
            )
    return Summary(rows, findings, {"dense": _plot(plotted)})


def _shown(means: Means) -> str:
    return (
        f"P@1/3/5 {means.listed('p@1', 'p@3', 'p@5')}; nDCG@3/5 {means.listed('ndcg@3', 'ndcg@5')}; "
        f"PSP@1/3/5 {means.listed('psp@1', 'psp@3', 'psp@5')}; PSnDCG@3/5 {means.listed('psndcg@3', 'psndcg@5')}"
    )


def _gained(gains: Means) -> str:
    told = " / ".join(f"{gains.mean[m]:+.1f} ± {gains.sd[m]:.1f}" for m in ("p@1", "psp@1", "psp@3", "psp@5"))
    return f"; gain in P@1, PSP@1/3/5 {told}"


def _plot(plotted: dict[str, dict[str, Means]]) -> Any:
    from tailwise.experiments.plotting import COLOURS, make_figure

    names = list(dict.fromkeys(name for gains in plotted.values() for name in gains))
    figure, (axes,) = make_figure(1, len(plotted), width=3.6, height=3.6)
    for axis, (title, gains) in zip(axes, plotted.items(), strict=True):
        for i, metric in enumerate(("p@1", "psp@1", "psp@5")):
            places = np.arange(len(names)) + 0.27 * (i - 1)
            values = [gains[name].mean[metric] if name in gains else 0.0 for name in names]
            spread = [gains[name].sd[metric] if name in gains else 0.0 for name in names]
            axis.barh(places, values, 0.25, xerr=spread, color=COLOURS[i], label=metric.upper())
        axis.set_yticks(np.arange(len(names)), names)
        axis.invert_yaxis()
        axis.axvline(0, color="black", linewidth=1)
        axis.set(title=title, xlabel="gain in points over the model alone")
        axis.label_outer()
    axes[0].legend(frameon=False, fontsize=8)
    return figure
