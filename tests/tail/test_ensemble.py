import numpy as np
import pytest
from sklearn.metrics import log_loss

from tailwise import Centroid, Popularity
from tailwise.errors import InvalidInput
from tailwise.tail import Ensemble
from tailwise.tail.candidates import is_hit


def test_fitted_ensemble_weights_prefer_the_better_member(rows):
    X, Y = rows
    model = Ensemble([Centroid(), Popularity()], weights="fitted", random_state=0).fit(X, Y)
    assert model.weights_.sum() == pytest.approx(1.0) and model.weights_[0] > model.weights_[1]
    hits = is_hit(model.predict_topk(X, 15).labels, Y)
    scores = model.predict_topk(X, 15).scores
    present = np.isfinite(scores)
    assert log_loss(hits[present], np.clip(scores[present], 1e-6, 1 - 1e-6)) < 0.5


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Ensemble([]), "members=\\[\\] is empty"),
        (Ensemble([Centroid()], weights="best"), "weights='best' is not one of 'equal', 'fitted'"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(rows, model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*rows)
