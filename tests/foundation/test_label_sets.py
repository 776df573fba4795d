"""Models as scikit-learn knows estimators: sets, matrices, a score, weights, names."""

import numpy as np
import pytest
from contracts import make_rows
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import classification_report, f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

import tailwise
from tailwise import (
    Calibrated,
    Centroid,
    Columns,
    DiSMEC,
    Ensemble,
    FastXML,
    NearestRows,
    Popularity,
    PPDSparse,
    PropensityReranker,
    ProXML,
    RankNet,
    Stacked,
    Sublinear,
    TradeOff,
)
from tailwise.assigning import set_sizes
from tailwise.errors import InvalidInput, Unsupported
from tailwise.tail.calibrated import fit_curve

X, Y = make_rows()
TEXTS = ["tax law", "sea fish", "fish law", "tax of the sea", "law", "fish and fish"] * 4
LABELS = [["law"], ["fish"], ["law", "fish"], ["law"], ["law"], ["fish"]] * 4


@pytest.fixture(scope="module")
def margins():
    return DiSMEC().fit(X, Y)


@pytest.fixture(scope="module")
def probabilities():
    return NearestRows(k=10).fit(X, Y)


def labels_of(matrix):
    return [set(matrix.indices[a:b].tolist()) for a, b in zip(matrix.indptr, matrix.indptr[1:], strict=False)]


def test_predict_gives_about_as_many_labels_as_rows_have(margins):
    sizes = np.diff(margins.predict(X).indptr)
    assert len(set(sizes)) > 1, "a set, not always the same number"
    assert sizes.min() >= 1
    assert sizes.mean() == pytest.approx(np.diff(Y.indptr).mean(), rel=0.1)


def test_scikit_learn_reports_on_what_is_predicted(margins):
    report = classification_report(Y.astype(int), margins.predict(X), output_dict=True, zero_division=0)
    assert report["micro avg"]["precision"] > 0.9 and report["micro avg"]["recall"] > 0.9


def test_a_threshold_assigns_what_reaches_it(margins):
    everything = margins.predict_topk(X, Y.shape[1])
    for threshold in (-0.5, 0.0, 0.7):
        expected = [
            {label for label, score in zip(*row, strict=True) if label >= 0 and score >= threshold}
            for row in zip(everything.labels.tolist(), everything.scores, strict=True)
        ]
        assert labels_of(margins.predict(X, threshold=threshold)) == expected


def test_labels_that_reach_a_threshold_are_found_however_many_they_are():
    n_labels = 400
    model = Popularity().fit(np.ones((3, 1)), np.ones((3, n_labels)))
    assert model.predict([[1.0]], threshold=0.5).nnz == n_labels
    assert model.predict_proba([[1.0]], threshold=0.5).nnz == n_labels


def test_utilities_assign_from_probabilities(probabilities):
    top = probabilities.predict_topk(X, Y.shape[1])
    q = np.where(top.labels >= 0, top.scores, 0)
    for utility in ("f1", "f0.5", "precision>=0.9", "recall>=0.9"):
        sizes = np.diff(probabilities.predict(X, assign=utility).indptr)
        np.testing.assert_array_equal(sizes, np.minimum(set_sizes(q, utility), (top.labels >= 0).sum(axis=1)))
    default = np.diff(probabilities.predict(X).indptr)
    np.testing.assert_array_equal(default, np.maximum(set_sizes(q, "f1"), 1))


def test_margins_refuse_what_needs_probabilities_and_name_the_way(margins):
    for ask in (lambda: margins.predict(X, assign="f1"), lambda: margins.predict_proba(X)):
        with pytest.raises(Unsupported, match=r"needs probabilities.*Calibrated\(DiSMEC\(\)\)"):
            ask()
    assert not hasattr(margins, "predict_proba")
    calibrated = Calibrated(DiSMEC(), n_folds=2, random_state=0).fit(X, Y)
    assert calibrated.predict(X, assign="f1").nnz


def test_one_rule_at_a_time(margins):
    with pytest.raises(InvalidInput, match="k and threshold are rules that exclude each other; pass one"):
        margins.predict(X, 3, threshold=0.0)
    with pytest.raises(InvalidInput, match="k and threshold are rules"):
        margins.decision_function(X, 3, threshold=0.0)
    with pytest.raises(InvalidInput, match=r"threshold='high' must be a number"):
        margins.predict(X, threshold="high")


def test_score_matrices_hold_the_ranking(margins, probabilities):
    for model, matrix, absent in (
        (margins, margins.decision_function, -np.inf),
        (probabilities, probabilities.predict_proba, 0.0),
    ):
        top = model.predict_topk(X, 4)
        sparse_ = matrix(X, 4)
        assert sparse_.shape == Y.shape and (abs(sparse_ - top.to_csr(15, binary=False))).nnz == 0
        dense = matrix(X, dense=True)
        every = model.predict_topk(X, 15)
        for i in range(X.shape[0]):
            own = every.labels[i] >= 0
            np.testing.assert_array_equal(dense[i, every.labels[i, own]], every.scores[i, own])
        assert (dense[:, 0] == absent).all(), "the label without rows"


def test_a_dense_matrix_that_is_too_large_is_refused():
    model = Popularity().fit(np.ones((2, 1)), sparse.csr_array((2, 200_000)) + sparse.eye_array(2, 200_000))
    with pytest.raises(InvalidInput, match=r"1,000 rows × 200,000 labels; take fewer rows"):
        model.predict_proba(np.ones((1000, 1)), dense=True)


def test_score_is_the_mean_f1_of_rows(margins):
    expected = f1_score(Y.astype(int), margins.predict(X), average="samples", zero_division=1)
    assert margins.score(X, Y) == pytest.approx(expected)
    weight = np.arange(X.shape[0], dtype=float)
    expected = f1_score(Y.astype(int), margins.predict(X), average="samples", sample_weight=weight, zero_division=1)
    assert margins.score(X, Y, sample_weight=weight) == pytest.approx(expected)


def test_plain_search_and_cross_validation():
    search = GridSearchCV(DiSMEC(random_state=0), {"C": [1e-4, 1.0]}, cv=3, error_score="raise").fit(X, Y)
    assert search.best_params_ == {"C": 1.0} and 0.5 < search.best_score_ <= 1
    assert (cross_val_score(Centroid(), X, Y.toarray(), cv=3, error_score="raise") > 0.5).all()


def test_linear_models_have_coefficients(margins):
    for model in (margins, Centroid().fit(X, Y)):
        seen = model.rows_(X)
        scores = (seen @ model.coef_.T).toarray() + model.intercept_
        top = model.predict_topk(X, 3)
        np.testing.assert_allclose(np.take_along_axis(scores, top.labels, 1), top.scores, rtol=1e-4, atol=1e-5)
    assert not hasattr(Popularity().fit(X, Y), "coef_")


EXACT = {"tol": 1e-5, "prune": 0.0, "random_state": 0}
WEIGHING = {
    "Popularity": Popularity,
    "Centroid": Centroid,
    "DiSMEC": lambda: DiSMEC(**EXACT),
    "logistic": lambda: DiSMEC(loss="logistic", **EXACT),
    "PPDSparse": lambda: PPDSparse(l1=0.01, **EXACT),
    "ProXML": lambda: ProXML(propensity=np.full(15, 0.7), **EXACT),
}


@pytest.mark.parametrize("make", WEIGHING.values(), ids=WEIGHING)
def test_a_weight_is_how_often_a_row_counts(make):
    weight = np.random.default_rng(0).integers(0, 3, X.shape[0])
    repeated = np.repeat(np.arange(X.shape[0]), weight)
    weighted, other = make().fit(X, Y, sample_weight=weight), make().fit(X[repeated], Y[repeated])
    a, b = weighted.predict_topk(X, 15), other.predict_topk(X, 15)
    np.testing.assert_allclose(a.scores, b.scores, rtol=1e-3, atol=1e-3)
    assert (a.labels == b.labels).mean() > 0.99, "but for ties"
    plain = make().fit(X, Y).predict_topk(X, 5)
    assert make is Popularity or np.abs(plain.scores - a.scores[:, :5]).max() > 0.01, "weights matter"


def test_a_weight_counts_in_the_hinge_too():
    # Its descent ends within a thousandth of the optimum, but not at the same weights.
    weight = np.random.default_rng(0).integers(1, 4, X.shape[0])
    repeated = np.repeat(np.arange(X.shape[0]), weight)

    def objective(model, label=5):
        w, b = model.coef_[[label]].toarray().ravel().astype(float), float(model.intercept_[label])
        margins = np.where(Y[:, [label]].toarray().ravel() > 0, 1, -1) * (model.rows_(X) @ w + b)
        return 0.5 * w @ w + 0.5 * (b + 1) ** 2 + weight @ np.maximum(0, 1 - margins)

    make = DiSMEC(loss="hinge", **EXACT)
    best = objective(make.fit(X[repeated], Y[repeated]))
    assert objective(make.fit(X, Y, sample_weight=weight)) == pytest.approx(best, rel=0.005)
    assert objective(make.fit(X, Y)) > 1.02 * best


def test_equal_weights_change_nothing():
    for make in (Popularity, Centroid):
        plain, weighted = make().fit(X, Y), make().fit(X, Y, sample_weight=np.ones(X.shape[0]))
        np.testing.assert_array_equal(plain.predict_topk(X).scores, weighted.predict_topk(X).scores)


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
    with pytest.raises(InvalidInput, match=message):
        Centroid().fit(X, Y, sample_weight=weight)


CANNOT_WEIGH = {"FastXML": FastXML(n_trees=1), "NearestRows": NearestRows(), "RankNet": RankNet(Centroid(), epochs=1)}


@pytest.mark.parametrize("model", CANNOT_WEIGH.values(), ids=CANNOT_WEIGH)
def test_a_model_that_cannot_weigh_rows_says_so(model):
    with pytest.raises(Unsupported, match=r"cannot weigh rows; .*DiSMEC.*Bonsai.*repeat the rows"):
        model.fit(X, Y, sample_weight=np.ones(120))
    with pytest.raises(Unsupported, match=f"{type(model).__name__} cannot weigh rows"):
        PropensityReranker(model).fit(X, Y, sample_weight=np.ones(120))


WRAPPED = {
    "PropensityReranker": lambda base: PropensityReranker(base, propensity=np.full(15, 0.5)),
    "Sublinear": Sublinear,
    "Columns": lambda base: Columns(base, columns=[(0, 20)]),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_a_wrapper_passes_weights_on(wrap):
    weight = np.random.default_rng(0).integers(0, 3, X.shape[0])
    repeated = np.repeat(np.arange(X.shape[0]), weight)
    weighted = wrap(Centroid()).fit(X, Y, sample_weight=weight).predict_topk(X, 5)
    other = wrap(Centroid()).fit(X[repeated], Y[repeated]).predict_topk(X, 5)
    np.testing.assert_allclose(weighted.scores, other.scores, rtol=1e-4, atol=1e-5)


LEARNING = {
    "isotonic": lambda: Calibrated(Centroid(), n_folds=2, random_state=0),
    "platt": lambda: Calibrated(Centroid(), method="platt", n_folds=2, random_state=0),
    "Ensemble": lambda: Ensemble([Centroid(), Popularity()], n_folds=2, random_state=0),
    "Stacked": lambda: Stacked([Centroid(), Popularity()], max_iter=5, n_folds=2, random_state=0),
    "TradeOff": lambda: TradeOff(Centroid(), random_state=0),
}


@pytest.mark.parametrize("make", LEARNING.values(), ids=LEARNING)
def test_a_wrapper_that_learns_weighs_what_it_learns_from(make):
    plain = make().fit(X, Y).predict_topk(X, 5)
    ones = make().fit(X, Y, sample_weight=np.ones(X.shape[0])).predict_topk(X, 5)
    np.testing.assert_allclose(ones.scores, plain.scores, rtol=1e-5)
    # Only the rows of the more frequent half of the labels count: the others' labels lose all they had.
    rare = np.asarray(Y[:, 8:].sum(axis=1)).ravel() > 0
    weighted = make().fit(X, Y, sample_weight=np.where(rare, 0.0, 1.0)).predict_topk(X, 5)
    assert (weighted.scores[weighted.labels >= 8] <= 1e-3).all()
    assert np.abs(weighted.scores - plain.scores).max() > 0.01


@pytest.mark.parametrize("method", ["isotonic", "platt"])
def test_a_calibration_curve_counts_a_score_as_often_as_its_weight(method):
    rng = np.random.default_rng(3)
    scores = rng.normal(size=400)
    hits, weight = rng.random(400) < 1 / (1 + np.exp(-scores)), rng.integers(0, 4, 400)
    repeated = np.repeat(np.arange(400), weight)
    weighted, other = fit_curve(scores, hits, method, weight), fit_curve(scores[repeated], hits[repeated], method)
    np.testing.assert_allclose(weighted(scores), other(scores), atol=0.02)
    assert np.abs(weighted(scores) - fit_curve(scores, hits, method)(scores)).max() > 0.02


def test_lists_of_labels_and_tables_name_the_columns(tmp_path):
    names = np.array([f"label {i}" for i in range(15)])
    lists = [[str(name) for name in names[list(row)]] for row in labels_of(Y)]
    model = Centroid().fit(X, lists)
    binarizer = MultiLabelBinarizer(sparse_output=True)
    matrix = binarizer.fit_transform(lists)
    assert model.label_names_in_.tolist() == binarizer.classes_.tolist()
    same = Centroid().fit(X, matrix)
    np.testing.assert_array_equal(model.predict_topk(X).labels, same.predict_topk(X).labels)
    assert binarizer.inverse_transform(sparse.csr_matrix(model.predict(X, 2)))
    assert model.score(X, lists) == same.score(X, matrix)
    unknown = [[*row, "never seen"] for row in lists]
    assert model.score(X, unknown) < model.score(X, lists)
    model.save(tmp_path / "model")
    assert tailwise.load(tmp_path / "model").label_names_in_.tolist() == binarizer.classes_.tolist()
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(Y.toarray(), columns=names)
    assert Centroid().fit(X, table).label_names_in_.tolist() == names.tolist()
    assert Centroid().fit(X, pandas.Series(lists)).label_names_in_.tolist() == model.label_names_in_.tolist()
    assert not hasattr(model.fit(X, Y), "label_names_in_")


def test_one_label_a_row_is_told_to_be_a_list():
    with pytest.raises(InvalidInput, match=r"Y has the string 'law' .*\['law'\]"):
        Centroid().fit([[1.0], [2.0]], ["law", "fish"])


def test_texts_are_told_where_to_go():
    for texts in (TEXTS, np.array(TEXTS), np.array(TEXTS, dtype=object)):
        with pytest.raises(InvalidInput, match=r"X has texts, such as 'tax law'.*Tagger\(\).*TextFeatures"):
            Centroid().fit(texts, LABELS)


def test_one_row_of_a_sparse_array_is_told_to_stay_a_matrix(margins):
    with pytest.raises(InvalidInput, match=r"X has 1 dimension\(s\); .*X\[\[i\]\]"):
        margins.predict_topk(X[0])


def test_a_pipeline_predicts_sets_and_is_searched():
    pipeline = make_pipeline(TfidfVectorizer(), DiSMEC(random_state=0)).fit(TEXTS, LABELS)
    assert pipeline.predict(["sea fish"]).toarray().tolist() == [[1, 0]]
    assert pipeline.score(TEXTS, LABELS) > 0.8
    assert pipeline.decision_function(["sea fish"]).shape == (1, 2)
    search = GridSearchCV(pipeline, {"dismec__C": [0.1, 1.0]}, cv=2, error_score="raise").fit(TEXTS, LABELS)
    assert search.best_score_ > 0.5


def test_a_saved_model_keeps_its_rule(margins, tmp_path):
    margins.save(tmp_path / "model")
    loaded = tailwise.load(tmp_path / "model")
    assert loaded.rule_ == margins.rule_ and loaded.rule_.threshold is not None
    assert (abs(loaded.predict(X) - margins.predict(X))).nnz == 0
    del loaded.__dict__["rule_"]
    assert (np.diff(loaded.predict(X).indptr) == 5).all(), "a folder of an older version assigns five, as it did"
