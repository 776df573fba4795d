import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.tail import neighbour_votes
from strategies import examples, rows_and_labels, sparse_rows

from tailwise import NearestRows
from tailwise.errors import InvalidInput


@pytest.mark.parametrize("sharpness", [1.0, 3.0])
def test_nearest_rows_equal_the_twin(rows, sharpness):
    X, Y = rows
    dense_X, dense_Y = X.toarray(), Y.toarray()
    top = NearestRows(k=7, sharpness=sharpness).fit(X, Y).predict_topk(X[:25], 15)
    for i in range(25):
        expected = neighbour_votes(dense_X, dense_Y, dense_X[i], 7, sharpness)
        order = top.labels[i][top.labels[i] >= 0]
        assert set(order) == set(np.flatnonzero(expected > 1e-7))
        np.testing.assert_allclose(top.scores[i][: len(order)], expected[order], rtol=1e-4)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (NearestRows(k=0), "k=0 is outside"),
        (NearestRows(sharpness=-1), "sharpness=-1 is outside"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(rows, model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*rows)


@examples(20)
@given(rows_and_labels((1, 20), (1, 8), (1, 6)), sparse_rows((1, 6), 8), st.sampled_from([0.0, 1.0, 3.0]))
def test_votes_of_all_rows_equal_the_twin(rows, asked, sharpness):
    X, Y = rows
    asked = asked.toarray()[:, : X.shape[1]]
    top = NearestRows(k=X.shape[0], sharpness=sharpness).fit(X, Y).predict_topk(asked, Y.shape[1])
    for i, x in enumerate(asked):
        expected = neighbour_votes(X.toarray(), Y.toarray(), x, X.shape[0], sharpness)
        named = top.labels[i][top.labels[i] >= 0]
        assert set(named) == set(np.flatnonzero(expected))
        np.testing.assert_allclose(top.scores[i][: len(named)], expected[named], rtol=1e-4)
