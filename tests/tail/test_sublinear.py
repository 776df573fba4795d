import numpy as np
import pytest
from hypothesis import given
from strategies import examples, rows_and_labels

from tailwise import Centroid
from tailwise.errors import InvalidInput
from tailwise.tail import Sublinear


@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
@examples(15)
@given(rows=rows_and_labels((2, 30), (1, 10), (1, 8), signed=True, untidy=True))
def test_sublinear_equals_the_model_on_damped_rows(rows, power, idf):
    X, Y = rows
    damped = np.sign(X.toarray()) * np.where(X.toarray() != 0, np.abs(X.toarray()) ** power, 0)
    if idf:
        damped = damped * (np.log((1 + len(damped)) / (1 + (X.toarray() != 0).sum(axis=0))) + 1)
    norms = np.linalg.norm(damped, axis=1, keepdims=True)
    damped = damped / np.where(norms > 0, norms, 1)
    ours = Sublinear(Centroid(), power=power, idf=idf).fit(X, Y).predict_topk(X, 5)
    theirs = Centroid().fit(damped, Y).predict_topk(damped, 5)
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Sublinear(Centroid(), power=-1), "power=-1 is outside"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(rows, model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*rows)
