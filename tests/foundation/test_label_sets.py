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
    DiSMEC,
    NearestRows,
    Popularity,
)
from tailwise.assigning import set_sizes
from tailwise.errors import InvalidInput, Unsupported

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
