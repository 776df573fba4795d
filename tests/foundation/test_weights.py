"""``sample_weight``: how often a row counts, in every model that sums over rows."""

import numpy as np
import pytest
from contracts import assert_same_bits, make_rows

from tailwise import (
    CPLST,
    CS,
    LEML,
    LPSR,
    MLCSSP,
    SLEEC,
    WSABIE,
    XMLCNN,
    AttentionXML,
    Calibrated,
    Centroid,
    CentroidReranker,
    Columns,
    DiSMEC,
    Ensemble,
    FastXML,
    GLaS,
    NearestRows,
    PDSparse,
    PfastreXML,
    PfastXML,
    Popularity,
    PPDSparse,
    PropensityReranker,
    ProXML,
    RankNet,
    RobustXML,
    SampledSoftmax,
    Stacked,
    Sublinear,
    Tagger,
    TailAugmented,
    TailCalibrated,
    TradeOff,
)
from tailwise.embedding.binary_network import BinaryNetwork
from tailwise.errors import InvalidInput
from tailwise.forest.tail_centroids import TailCentroids
from tailwise.tail.calibrated import fit_curve
from tailwise.tail.lpsr import labels_that_serve

X, Y = make_rows()
EXACT = {"tol": 1e-5, "prune": 0.0, "random_state": 0}
EVEN = np.full(15, 0.7)
"""Propensities that do not depend on counts, which weights leave as they are."""


def repeated(seed=0, low=1):
    """Weights, and the rows that they stand for."""
    weight = np.random.default_rng(seed).integers(low, 4, X.shape[0])
    return weight, np.repeat(np.arange(X.shape[0]), weight)


# Solved to an optimum, or a mean: a row of weight 2 is a row that is there twice.
AS_REPEATED = {
    "Popularity": Popularity,
    "Centroid": Centroid,
    "NearestRows": lambda: NearestRows(k=1000),
    "DiSMEC": lambda: DiSMEC(**EXACT),
    "logistic": lambda: DiSMEC(loss="logistic", **EXACT),
    "PPDSparse": lambda: PPDSparse(l1=0.01, **EXACT),
    "ProXML": lambda: ProXML(propensity=EVEN, **EXACT),
    "PDSparse": lambda: PDSparse(early_stopping=False, tol=1e-5, max_rounds=100, random_state=0),
    "LEML": lambda: LEML(dim=4, tol=1e-6, max_rounds=200),
    "CPLST": lambda: CPLST(dim=4, tol=1e-6),
    "CS": lambda: CS(dim=20, tol=1e-6, random_state=0),
    "MLCSSP": lambda: MLCSSP(dim=6, tol=1e-6, random_state=0),
    "RobustXML": lambda: RobustXML(dim=4, tol=1e-6, rounds=60, steps=20),
    "a leaf of FastXML": lambda: FastXML(n_trees=1, max_leaf=1000, idf=False),
    "a leaf of PfastXML": lambda: PfastXML(n_trees=1, max_leaf=1000, idf=False, propensity=EVEN),
    "a leaf of PfastreXML": lambda: PfastreXML(
        n_trees=1, max_leaf=1000, idf=False, propensity=EVEN, centroids=TailCentroids(idf=False)
    ),
    "PropensityReranker": lambda: PropensityReranker(Centroid(), propensity=EVEN),
    "CentroidReranker": lambda: CentroidReranker(Centroid(), centroids=TailCentroids(idf=False)),
    "Sublinear": lambda: Sublinear(Centroid()),
    "Columns": lambda: Columns(Centroid(), columns=[(0, 20)]),
    "TailAugmented": lambda: TailAugmented(Centroid(), keep_probability=1.0, swap=0.0, tau=0.3, random_state=0),
    "LPSR": lambda: LPSR(Centroid(), n_partitions=1),
}


def every_score(model):
    """The score of each label for each row; 0 where there is none."""
    top, scores = model.predict_topk(X, 15), np.zeros((X.shape[0], 15))
    row, place = np.nonzero(top.labels >= 0)
    scores[row, top.labels[row, place]] = top.scores[row, place]
    return scores


@pytest.mark.parametrize("make", AS_REPEATED.values(), ids=AS_REPEATED)
def test_a_weight_is_how_often_a_row_counts(make):
    weight, rows = repeated()
    weighted, other = make().fit(X, Y, sample_weight=weight), make().fit(X[rows], Y[rows])
    a, b, plain = (every_score(model) for model in (weighted, other, make().fit(X, Y)))
    np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3)
    assert np.abs(plain - a).max() > 0.005, "weights matter"


def test_a_weight_counts_in_the_hinge_too():
    # Its descent ends within a thousandth of the optimum, but not at the same weights.
    weight, rows = repeated()

    def objective(model, label=5):
        w, b = model.coef_[[label]].toarray().ravel().astype(float), float(model.intercept_[label])
        margins = np.where(Y[:, [label]].toarray().ravel() > 0, 1, -1) * (model.rows_(X) @ w + b)
        return 0.5 * w @ w + 0.5 * (b + 1) ** 2 + weight @ np.maximum(0, 1 - margins)

    make = DiSMEC(loss="hinge", **EXACT)
    best = objective(make.fit(X[rows], Y[rows]))
    assert objective(make.fit(X, Y, sample_weight=weight)) == pytest.approx(best, rel=0.005)
    assert objective(make.fit(X, Y)) > 1.02 * best


SMALL = {"epochs": 12, "early_stopping": False, "random_state": 0}
# Stochastic: rows that are there twice are also drawn, parted or stepped through twice.
LEARNING = {
    "FastXML": lambda: FastXML(n_trees=20, max_leaf=5, random_state=0),
    "PfastXML": lambda: PfastXML(n_trees=20, max_leaf=5, propensity=EVEN, random_state=0),
    "PfastreXML": lambda: PfastreXML(n_trees=20, max_leaf=5, propensity=EVEN, random_state=0),
    "SLEEC": lambda: SLEEC(dim=8, n_learners=3, random_state=0),
    "RankNet": lambda: RankNet(Centroid(), learning_rate=0.01, propensity=EVEN, random_state=0),
    "isotonic": lambda: Calibrated(Centroid(), n_folds=2, random_state=0),
    "platt": lambda: Calibrated(Centroid(), method="platt", n_folds=2, random_state=0),
    "TailCalibrated": lambda: TailCalibrated(Centroid(), n_folds=2, random_state=0),
    "Ensemble": lambda: Ensemble([Centroid(), Popularity()], n_folds=2, random_state=0),
    "Stacked": lambda: Stacked([Centroid(), Popularity()], max_iter=5, n_folds=2, random_state=0),
    "TradeOff": lambda: TradeOff(Centroid(), propensity=EVEN, random_state=0),
}


@pytest.mark.parametrize("make", LEARNING.values(), ids=LEARNING)
def test_rows_of_great_weight_are_learnt_best(make):
    plain = make().fit(X, Y).predict_topk(X, 5)
    # Half of the labels of each topic go wrong, at random; only the weights tell which rows to believe.
    wrong = np.random.default_rng(1).random(X.shape[0]) < 0.5
    noisy = Y.toarray()
    noisy[wrong] = noisy[np.random.default_rng(2).permutation(np.flatnonzero(wrong))]
    weight = np.where(wrong, 0.02, 2.0)

    def found(model):
        top = model.predict_topk(X[wrong], 3)
        return np.take_along_axis(Y[wrong].toarray(), np.maximum(top.labels, 0), 1).mean()

    believing, weighing = make().fit(X, noisy), make().fit(X, noisy, sample_weight=weight)
    assert found(weighing) > found(believing) + 0.02
    assert np.abs(weighing.predict_topk(X, 5).scores - plain.scores).max() > 1e-3


def as_sequences(labels, seed):
    """Rows of tokens 1…8: label 0 is spoken of by tokens 1 to 4, label 1 by 5 to 8."""
    rng = np.random.default_rng(seed)
    return np.array([rng.integers(1, 5, 6) + 4 * label for label in labels], np.float32)


def as_bags(labels, seed):
    """The same, as how often each token comes."""
    return np.array([np.bincount(row.astype(int), minlength=9) for row in as_sequences(labels, seed)], np.float32)


NETWORKS = {
    "BinaryNetwork": lambda: BinaryNetwork(hidden=(8,), epochs=60, learning_rate=0.02, batch_size=16, random_state=0),
    "WSABIE": lambda: WSABIE(dim=8, random_state=0),
    "GLaS": lambda: GLaS(dim=8, learning_rate=0.02, **SMALL),
    "GLaS, margin": lambda: GLaS(dim=8, loss="margin", learning_rate=0.02, **SMALL),
    "GLaS, mining": lambda: GLaS(dim=8, loss="negative_mining", learning_rate=0.02, **SMALL),
    "SampledSoftmax": lambda: SampledSoftmax(dim=8, learning_rate=0.02, **SMALL),
    "XMLCNN": lambda: XMLCNN((2,), n_filters=8, bottleneck=16, word_dim=8, batch_size=16, **SMALL),
    "AttentionXML": lambda: AttentionXML(8, word_dim=8, learning_rate=0.02, batch_size=16, **{**SMALL, "epochs": 24}),
    "AttentionXML, groups": lambda: AttentionXML(
        8, word_dim=8, learning_rate=0.02, batch_size=16, flat_labels=1, beam=1, **SMALL
    ),
}


@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_networks_believe_rows_of_great_weight(make):
    truth = np.arange(80) % 2
    wrong = np.random.default_rng(3).random(80) < 0.5
    said = np.eye(2)[np.where(wrong, 1 - truth, truth)]
    shown = as_sequences if make().reads == "sequences" else as_bags
    model = make().fit(shown(truth, seed=0), said, sample_weight=np.where(wrong, 0.02, 1.0))
    assert (model.predict_topk(shown(truth, seed=4), 1).labels.ravel() == truth).mean() > 0.9


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_a_calibration_curve_counts_a_score_as_often_as_its_weight(method):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=400)
    hits, weight = rng.random(400) < 1 / (1 + np.exp(-scores)), rng.integers(0, 4, 400)
    rows = np.repeat(np.arange(400), weight)
    weighted, other = fit_curve(scores, hits, method, weight), fit_curve(scores[rows], hits[rows], method)
    np.testing.assert_allclose(weighted(scores), other(scores), atol=0.02)


def test_labels_of_a_partition_serve_the_rows_that_count():
    truth, seen = Y[:3, :3].toarray() * 0, np.array([[0, 1], [0, 1], [0, 1]])
    truth[[0, 1, 2], [0, 1, 1]] = 1
    truth = type(Y)(truth)
    assert labels_that_serve(truth, seen, 1).tolist() == [1]
    assert labels_that_serve(truth, seen, 1, np.array([3.0, 1.0, 1.0])).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(3), r"sample_weight has shape \(3,\); pass one number for each of the 120 rows"),
        (np.full(120, -1.0), "sample_weight has the value -1"),
        (np.zeros(120), "sample_weight is 0 for every row"),
        (["a"] * 120, "sample_weight=.* is no array of numbers"),
    ],
)
def test_wrong_weights_are_refused(weight, message):
    for fit in (Centroid().fit, TailCentroids().fit, Tagger(Centroid()).fit):
        with pytest.raises(InvalidInput, match=message):
            fit(X, Y, sample_weight=weight)


def test_a_tagger_passes_weights_on():
    texts = ["cod", "cod", "mill", "cod"]
    labels, weight = [["fish"], ["steel"], ["steel"], ["steel"]], [9, 1, 1, 1]
    tagger = Tagger(Popularity(), calibrate=False, random_state=0)
    assert tagger.fit(texts, labels).suggest(["cod"], k=1)[0][0].id == "steel"
    assert tagger.fit(texts, labels, sample_weight=weight).suggest(["cod"], k=1)[0][0].id == "fish"
    with pytest.raises(InvalidInput, match=r"sample_weight has shape \(2,\); pass one number for each of the 4 rows"):
        tagger.fit(texts, labels, sample_weight=[1, 2])


def test_equal_weights_change_nothing():
    for make in (Popularity, Centroid, lambda: FastXML(n_trees=2, random_state=0)):
        plain, weighted = make().fit(X, Y), make().fit(X, Y, sample_weight=np.ones(X.shape[0]))
        assert_same_bits(plain.predict_topk(X), weighted.predict_topk(X))
