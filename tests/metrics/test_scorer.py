import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

from tailwise import Centroid, Popularity
from tailwise.errors import InvalidInput
from tailwise.metrics import evaluate, metric_scorer, predict_topk


def test_scorer_equals_evaluate_and_serves_cross_validation():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.random((60, 4)).astype(np.float32))
    Y = sparse.csr_array((rng.random((60, 8)) < np.linspace(0.6, 0.05, 8)).astype(np.float32))
    model = Popularity().fit(X, Y)
    p = np.linspace(1, 0.2, 8)
    top = model.predict_topk(X, 8)
    assert metric_scorer("psp@3", p)(model, X, Y) == evaluate(Y, top, "psp@3", p)["psp@3"].value
    tail = evaluate(Y, top, "recall@3:tail", label_counts=model.label_counts_)["recall@3:tail"].value
    assert metric_scorer("recall@3:tail")(model, X, Y) == tail
    assert metric_scorer("hamming@2")(model, X, Y) == -evaluate(Y, top, "hamming@2")["hamming@2"].value
    search = GridSearchCV(Centroid(), {"n_jobs": [1, 2]}, scoring=metric_scorer("p@1"), cv=3, error_score="raise")
    search.fit(X, Y)
    folds = [search.cv_results_[f"split{fold}_test_score"][0] for fold in range(3)]
    by_hand = [
        metric_scorer("p@1")(Centroid().fit(X[train], Y[train]), X[test], Y[test]) for train, test in KFold(3).split(X)
    ]
    np.testing.assert_allclose(folds, by_hand)
    with pytest.raises(InvalidInput, match="is not known"):
        metric_scorer("accuracy@1")


def test_a_pipeline_is_ranked_scored_and_searched():
    texts = ["tax law", "sea fish", "fish law", "tax of the sea", "law", "fish and fish"] * 4
    labels = [["law"], ["fish"], ["law", "fish"], ["law"], ["law"], ["fish"]] * 4
    pipeline = make_pipeline(TfidfVectorizer(), Centroid()).fit(texts, labels)
    top = predict_topk(pipeline, texts, 1)
    inside = pipeline[-1].predict_topk(pipeline[0].transform(texts), 1)
    np.testing.assert_array_equal(top.labels, inside.labels)
    matrix = MultiLabelBinarizer(sparse_output=True).fit_transform(labels)
    scorer = metric_scorer("p@1")
    assert (
        scorer(pipeline, texts, labels) == scorer(pipeline, texts, matrix) == evaluate(matrix, top, "p@1")["p@1"].value
    )
    search = GridSearchCV(pipeline, {"tfidfvectorizer__sublinear_tf": [True, False]}, scoring=scorer, cv=2)
    search.fit(texts, labels)
    assert search.best_score_ > 50
    assert predict_topk(search, texts, 1).labels.shape == (24, 1)
    with pytest.raises(InvalidInput, match=r"model=TfidfVectorizer\(\) has no predict_topk; pass a model of tailwise"):
        predict_topk(TfidfVectorizer(), texts)


def test_labels_that_training_did_not_know_count_as_missed():
    model = Popularity().fit([[1.0], [1.0]], [["law"], ["law", "fish"]])
    assert metric_scorer("recall@2")(model, [[1.0]], [["law", "sea"]]) == 50
    assert metric_scorer("recall@2:tail")(model, [[1.0]], [["law", "sea"]]) == 50
