import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV

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
    assert 0 < search.fit(X, Y).best_score_ <= 100
    with pytest.raises(InvalidInput, match="is not known"):
        metric_scorer("accuracy@1")
