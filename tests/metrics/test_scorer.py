import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV, KFold

from tailwise import Centroid, Popularity
from tailwise.errors import InvalidInput
from tailwise.metrics import evaluate, metric_scorer


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
