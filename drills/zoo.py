"""A tiny fitted object of every class that can be saved, and what it answers."""

from __future__ import annotations

import pkgutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import tailwise as tw
from tailwise import persistence
from tailwise.base import XMCModel
from tailwise.by_size import BySize
from tailwise.embedding import BinaryNetwork
from tailwise.embedding.checkpoint import Checkpoint
from tailwise.embedding.index import LabelIndex
from tailwise.errors import InvalidInput, MissingExtra
from tailwise.label_lists import indicator
from tailwise.persistence import Saveable
from tailwise.propensity import (
    AuditedPropensity,
    ConstantPropensity,
    CurveFit,
    EstimatedPropensity,
    GivenPropensity,
    Propensity,
)
from tailwise.text.rows import KnownLabels
from tailwise.vocabulary.building import Builder
from tailwise.vocabulary.vocabulary import SYNONYM

TEXTS = ["tax law of the sea", "sea fish and ships", "fish law", "ships at sea", "tax on ships", "law of tax"] * 4
LABELS = [["law", "tax"], ["fish"], ["law", "fish"], ["sea"], ["tax"], ["law"]] * 4
K = 5
_NO_MODELS = ("tailwise.experiments", "tailwise.cli", "tailwise.serving")


@cache
def rows() -> tuple[sparse.csr_array, sparse.csr_array]:
    """80 rows of 30 features and 12 labels that can be told from them; label 0 has no row, label 1 has all."""
    rng = np.random.default_rng(0)
    n, n_features, n_labels = 80, 30, 12
    topics = rng.integers(2, n_labels, size=(n, 2))
    X, Y = np.zeros((n, n_features), np.float32), np.zeros((n, n_labels), np.float32)
    for i, pair in enumerate(topics):
        Y[i, pair], Y[i, 1] = 1, 1
        X[i, (3 * pair[:, None] + np.arange(4)) % n_features] += rng.random((2, 4), dtype=np.float32)
    return sparse.csr_array(X), sparse.csr_array(Y)


def rows_for(n_features: int) -> sparse.csr_array:
    """The same rows with another number of features, as far apart as possible; empty if it is too small."""
    X, _ = rows()
    n, own = X.shape
    if n_features < own:
        return sparse.csr_array((n, n_features), dtype=np.float32)
    return sparse.csr_array((X.data, X.indices * (n_features // own), X.indptr), shape=(n, n_features))


def _fitted(make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: make().fit(*rows())


def _with_vectors(dim: int = 3) -> tw.Texts:
    vectors = np.random.default_rng(2).standard_normal((len(TEXTS), dim)).astype(np.float32)
    return tw.Texts({"text": TEXTS}, vectors=vectors)


def _sentence_vectors() -> Any:
    """As ``fit`` leaves it, without the encoder, which not everybody has."""
    made = tw.SentenceVectors()
    made.dim_, made.digest_ = 384, "0" * 32
    return made


def _tagger() -> Any:
    features = tw.TextFeatures(char_ngrams=(3, 4), min_df=1)
    rules = tw.LabelRules(exclude=["rows<1", "deprecated"])
    return tw.Tagger(tw.Centroid(n_jobs=1), features=features, rules=rules).fit(TEXTS, LABELS, vocab=_vocabulary())


def _vocabulary() -> Any:
    builder = Builder()
    for label in sorted({label for row in LABELS for label in row} | {"u:old"}):
        concept = builder.concept(label)
        for language in ("de", "en"):
            builder.add_name(concept, f"{label} {language}", language)
        builder.add_name(concept, f"also {label}", "en", SYNONYM)
        builder.add_notation(concept, label[:1])
        builder.add_broader("u:old", label)
        builder.add_member("schemes", label, "u:scheme")
        builder.add_member("collections", label, f"u:{label[:1]}")
    builder.deprecate(builder.concept("u:old"))
    return builder.build()


def _known_labels() -> KnownLabels:
    Y, ids = indicator(LABELS)
    builder = Builder()
    for label in ids:
        builder.add_name(builder.concept(label), label, "de")
        builder.add_broader(label, ids[0])
    return KnownLabels(ids, ids, Y, builder.build())


def _matched_names() -> Any:
    known = _known_labels()
    X = tw.LabelMatcher(n_jobs=1).fit_transform(TEXTS, labels=known)
    return tw.MatchedNames(max_iter=3, **SMALL).fit(X, known.Y)


def _index(kind: str) -> Any:
    vectors = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    return tw.FaissIndex(kind, lists=4, links=4).build(vectors) if kind else tw.ExactIndex().build(vectors)


def _estimated() -> Any:
    made = EstimatedPropensity().fit(rows()[1])
    made.fit_ = CurveFit("a guess", 80, 12, *[np.linspace(0.2, 0.8, 3)] * 5, (0.5, 0.6), (1.0, 1.2), 0.1, 0.95)
    return made


def _checkpoint() -> Any:
    """Of a network that could not go on for longer."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        tw.GLaS(dim=8, epochs=2, hidden=8, early_stopping=False, checkpoint=str(path), **SMALL).fit(*rows())
        return persistence.load(path)


def _few_of_many(model: Any) -> Any:
    """Fitted so that its nodes have buckets in place of bitmaps."""
    return model.fit(rows_for(3000), rows()[1])


def _base() -> Any:
    return tw.Centroid(n_jobs=1)


SMALL: dict[str, Any] = {"n_jobs": 1, "random_state": 0}
MODELS: dict[str, Callable[[], Any]] = {
    "Popularity": _fitted(tw.Popularity),
    "Centroid": _fitted(_base),
    "NearestRows": _fitted(lambda: tw.NearestRows(k=3, n_jobs=1)),
    "DiSMEC": _fitted(lambda: tw.DiSMEC(**SMALL)),
    "PWDiSMEC": _fitted(lambda: tw.PWDiSMEC(**SMALL)),
    "ProXML": _fitted(lambda: tw.ProXML(**SMALL)),
    "PPDSparse": _fitted(lambda: tw.PPDSparse(**SMALL)),
    "PDSparse": _fitted(lambda: tw.PDSparse(**SMALL)),
    "Parabel": _fitted(lambda: tw.Parabel(n_trees=2, max_leaf=3, **SMALL)),
    "Bonsai": _fitted(lambda: tw.Bonsai(n_trees=2, max_leaf=3, loss="logistic", **SMALL)),
    "Parabel of few of many features": lambda: _few_of_many(tw.Parabel(max_leaf=3, **SMALL)),
    "Bonsai of few of many features": lambda: _few_of_many(tw.Bonsai(prune=0.3, **SMALL)),
    "FastXML": _fitted(lambda: tw.FastXML(n_trees=2, max_leaf=4, **SMALL)),
    "PfastXML": _fitted(lambda: tw.PfastXML(n_trees=2, max_leaf=4, **SMALL)),
    "PfastreXML": _fitted(lambda: tw.PfastreXML(n_trees=2, max_leaf=4, **SMALL)),
    "GLaS": _fitted(lambda: tw.GLaS(dim=8, epochs=1, hidden=8, **SMALL)),
    "SampledSoftmax": _fitted(
        lambda: tw.SampledSoftmax(dim=8, epochs=1, index=tw.FaissIndex(lists=2, n_jobs=1), **SMALL)
    ),
    "CPLST": _fitted(lambda: tw.CPLST(dim=3, n_jobs=1)),
    "LEML": _fitted(lambda: tw.LEML(dim=3, n_jobs=1)),
    "MLCSSP": _fitted(lambda: tw.MLCSSP(dim=3, **SMALL)),
    "CS": _fitted(lambda: tw.CS(dim=6, **SMALL)),
    "SLEEC": _fitted(lambda: tw.SLEEC(dim=3, n_learners=2, cluster_rows=30, k=3, **SMALL)),
    "RobustXML": _fitted(lambda: tw.RobustXML(dim=3, l1=0.1, n_jobs=1)),
    "LPSR": _fitted(lambda: tw.LPSR(_base(), n_partitions=4, random_state=0)),
    "WSABIE": _fitted(lambda: tw.WSABIE(dim=8, epochs=2, **SMALL)),
    "XMLCNN": _fitted(lambda: tw.XMLCNN((2,), n_filters=3, bottleneck=4, word_dim=3, epochs=1, **SMALL)),
    "AttentionXML": _fitted(lambda: tw.AttentionXML(3, word_dim=3, epochs=1, flat_labels=4, **SMALL)),
    "BinaryNetwork": _fitted(lambda: BinaryNetwork(hidden=(6,), epochs=1, **SMALL)),
    "PropensityReranker": _fitted(lambda: tw.PropensityReranker(_base())),
    "CentroidReranker": _fitted(lambda: tw.CentroidReranker(_base())),
    "Calibrated": _fitted(lambda: tw.Calibrated(_base(), per="frequency-bin", n_bins=2, random_state=0)),
    "TailCalibrated": _fitted(lambda: tw.TailCalibrated(_base(), **SMALL)),
    "TailCalibrated nearest": _fitted(lambda: tw.TailCalibrated(_base(), nearest=True, **SMALL)),
    "RankNet": _fitted(lambda: tw.RankNet(_base(), blocks=2, bottleneck=3, epochs=1, **SMALL)),
    "TailAugmented": _fitted(lambda: tw.TailAugmented(_base(), tau=0.3, random_state=0)),
    "Ensemble": _fitted(lambda: tw.Ensemble([_base(), tw.Popularity()], random_state=0)),
    "Stacked": _fitted(lambda: tw.Stacked([_base(), tw.Popularity()], max_iter=3, **SMALL)),
    "Columns": _fitted(lambda: tw.Columns(_base(), columns=[(0, 5), (7, 9)])),
    "Sublinear": _fitted(lambda: tw.Sublinear(_base())),
    "TradeOff": _fitted(lambda: tw.TradeOff(_base(), random_state=0)),
    "TailCentroids": _fitted(lambda: tw.TailCentroids(n_jobs=1)),
    "JainPropensity": lambda: tw.JainPropensity().fit(rows()[1]),
    "EstimatedPropensity": _estimated,
    "ConstantPropensity": lambda: ConstantPropensity(0.5).fit(rows()[1]),
    "GivenPropensity": lambda: GivenPropensity(np.linspace(0.2, 0.9, rows()[1].shape[1])).fit(rows()[1]),
    "AuditedPropensity": lambda: AuditedPropensity(0.5, b=2.0).fit(rows()[1]),
    "ExactIndex": lambda: _index(""),
    "FaissIndex ivf": lambda: _index("ivf"),
    "FaissIndex hnsw": lambda: _index("hnsw"),
    "TextFeatures": lambda: tw.TextFeatures(2, min_df=1, stop_words=["the"]).fit(TEXTS),
    "TextParts": lambda: tw.TextParts([tw.TextFeatures(min_df=1), tw.Sequences(3, min_df=1)]).fit(TEXTS),
    "LabelMatcher": lambda: tw.LabelMatcher(n_jobs=1).fit(TEXTS, labels=_known_labels()),
    "MatchedNames": _matched_names,
    "GivenVectors": lambda: tw.GivenVectors().fit(_with_vectors()),
    "SentenceVectors": _sentence_vectors,
    "Sequences": lambda: tw.Sequences(4, min_df=1).fit(TEXTS),
    "Tagger": _tagger,
    "Vocabulary": _vocabulary,
    "BySize": lambda: BySize(one_vs_rest=_base()),
    "Checkpoint": _checkpoint,
}
PARTS = {"LabelRules": "Tagger"}
"""What is saved within another model of the zoo alone."""
OF_RUNS = ("Inputs", "_Kept")
"""What lies in work folders, which are trusted as code is: the drill ``damage`` has them."""


def saveable_classes() -> list[type]:
    """Every class of tailwise that can be saved, wherever it is, those for others to derive from too, by name.

    Experiments change models for what they watch; theirs are not among them.
    """
    for module in pkgutil.walk_packages(tw.__path__, "tailwise."):
        if not module.name.startswith(_NO_MODELS):
            with suppress(ImportError, MissingExtra):
                import_module(module.name)

    def below(kind: type) -> set[type]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    found = (
        kind
        for kind in below(Saveable)
        if kind.__module__.startswith("tailwise.") and not kind.__module__.startswith(_NO_MODELS)
    )
    return sorted(found, key=lambda kind: kind.__qualname__)


def models_of_rows() -> list[str]:
    """The names of all that learns from any sparse rows and labels, such as :func:`rows` are."""
    models = {kind.__name__ for kind in saveable_classes() if issubclass(kind, XMCModel)}
    # It learns from what a LabelMatcher found alone.
    return [name for name in MODELS if name.split()[0] in models - {"MatchedNames"}]


def answers(model: Any) -> list[np.ndarray]:
    """What a model answers, by every way it can be asked; a wrong TopK raises an AssertionError."""
    if isinstance(model, tw.Vocabulary):
        names = [name for label in model.ids for name, _, _ in model.names(label)]
        names += [*model.preferred_names(), *model.updated(model).ids, model.find("also law") or "", model.summary()]
        return [np.array([len(name) for name in names]), model.broader, model.deprecated]
    if isinstance(model, BySize):
        # Without a fitted state parameters are checked when they are used, as in fit.
        with suppress(InvalidInput):
            return [np.array([model.for_size(80, 12, 400).minutes])]
    if isinstance(model, Checkpoint) and hasattr(model, "epoch_"):
        return [np.array([model.epoch_, model.best_epoch_, model.seed])]
    if not hasattr(model, "_check_is_fitted"):
        return []  # parameters alone, which nobody asks anything
    model._check_is_fitted()
    if isinstance(model, tw.Tagger):
        if model.features_ is None:
            return answers(model.model_)
        model.suggest(TEXTS[:2])
        model.explain(TEXTS[0], 0)
        return _checked(model.predict_topk(TEXTS, K), model.model_.n_labels_)
    if isinstance(model, XMCModel):
        X = rows_for(model.n_features_in_)
        top = model.predict_topk(X, K)
        _checked(model.predict_topk(X[:1], 2 * K), model.n_labels_)
        for ask in (model.label_weights, lambda: model.explain(X[[0]], max(0, int(top.labels[0, 0])))):
            try:
                ask()
            except tw.errors.Unsupported:
                continue
        return _checked(top, model.n_labels_)
    if isinstance(model, Propensity):
        str(model)
        return [model.propensity_, model.inverse_]
    if isinstance(model, LabelIndex):
        queries = np.random.default_rng(1).standard_normal((5, model.vectors_.shape[1])).astype(np.float32)
        return _checked(model.search(queries, K), 1 + int(model.labels_.max(initial=0)))
    if isinstance(model, tw.SentenceVectors):
        return [np.array([len(name) for name in model.get_feature_names_out()])]
    if isinstance(model, tw.GivenVectors):
        return _parts(model.transform(_with_vectors(model.dim_)))
    if isinstance(model, tw.TextFeatures | tw.TextParts | tw.Sequences | tw.LabelMatcher):
        return [*_parts(model.transform(TEXTS)), np.array([len(name) for name in model.get_feature_names_out()])]
    X = rows_for(model.n_features_in_)
    model.explain(X[[0]], 0)
    return [model.log_scores(X, np.zeros((X.shape[0], 1), int) + min(3, model.offsets_.size - 1))]


def _parts(X: sparse.csr_array) -> list[np.ndarray]:
    return [X.data, X.indices, X.indptr, np.array(X.shape)]


def _checked(top: tw.TopK, n_labels: int) -> list[np.ndarray]:
    labels, scores = top
    present = labels >= 0
    assert labels.dtype == np.int32 and scores.dtype == np.float32, "types"
    assert labels.min(initial=-1) >= -1 and labels.max(initial=-1) < n_labels, "labels out of range"
    assert np.isfinite(scores[present]).all() and np.isneginf(scores[~present]).all(), "scores not finite"
    assert (scores[:, 1:] <= scores[:, :-1]).all(), "scores do not descend"
    for row, there in zip(labels, present, strict=True):
        assert len(set(row[there].tolist())) == there.sum(), "a label twice"
    return [labels, scores]
