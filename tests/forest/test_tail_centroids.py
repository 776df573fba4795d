import numpy as np
import pytest
from naive import forest as naive
from scipy import sparse

import tailwise
from tailwise import persistence
from tailwise.errors import InvalidInput, NotFitted
from tailwise.forest import TailCentroids
from tailwise.rows import unit_rows

SHAPES = ("sphere", "cone")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 20), density=0.3, rng=rng, dtype=np.float32).tocsr()
    Y = sparse.csr_array((rng.random((60, 9)) < 0.2).astype(np.float32) * (np.arange(9) != 4))
    return X, Y


@pytest.mark.parametrize("idf", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_the_formula(rows, shape, idf):
    X, Y = rows
    dense = naive.weighted(X, X) if idf else unit_rows(X).toarray().astype(np.float64)
    expected = naive.log_q(dense, Y.toarray(), dense[:7], gamma=12, shape=shape)
    labels = np.tile(np.arange(-1, 9), (7, 1))
    scores = TailCentroids(gamma=12, shape=shape, idf=idf).fit(X, Y).log_scores(X[:7], labels)
    assert scores.dtype == np.float32
    assert np.isneginf(scores[:, [0, 5]]).all(), "no candidate, and a label without rows"
    seen = [0, 1, 2, 3, 5, 6, 7, 8]
    np.testing.assert_allclose(scores[:, 1:][:, seen], expected[:, seen], rtol=1e-4)


def test_the_cone_does_not_prefer_labels_of_many_rows_that_differ():
    # Label 0 has one row, label 1 that row and one without a common feature; the row asked for is both labels' own.
    X, Y = [[1.0, 0, 0], [1.0, 0, 0], [0, 1.0, 1.0]], [[1, 0], [0, 1], [0, 1]]
    asked = [[1.0, 0.0, 3.0]]
    sphere, cone = (TailCentroids(shape=shape).fit(X, Y).log_scores(asked, [[0, 1]])[0] for shape in SHAPES)
    assert sphere[1] - sphere[0] > cone[1] - cone[0]


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_and_labels_without_features(shape):
    X, Y = [[0.0, 0], [1.0, 0]], [[1, 0], [0, 1]]
    scores = TailCentroids(shape=shape).fit(X, Y).log_scores([[0.0, 0], [0, 1.0]], [[0, 1], [0, 1]])
    assert np.isfinite(scores).all()
    assert scores[1, 0] > scores[1, 1]


def test_is_kept_by_save_and_load(rows, tmp_path):
    X, Y = rows
    tail = TailCentroids(n_jobs=1).fit(X, Y)
    persistence.save(tail, tmp_path / "tail")
    labels = np.array([[0, 3]] * 60)
    np.testing.assert_array_equal(
        tailwise.load(tmp_path / "tail").log_scores(X, labels), TailCentroids(n_jobs=2).fit(X, Y).log_scores(X, labels)
    )


def test_errors_say_the_fix(rows):
    X, Y = rows
    with pytest.raises(NotFitted, match=r"call TailCentroids.fit\(X, Y\) first"):
        TailCentroids().log_scores(X, np.zeros((60, 1), int))
    with pytest.raises(InvalidInput, match="gamma=0 is outside"):
        TailCentroids(gamma=0).fit(X, Y)
    with pytest.raises(InvalidInput, match="shape='cube'"):
        TailCentroids(shape="cube").fit(X, Y)
    with pytest.raises(InvalidInput, match="idf='yes'"):
        TailCentroids(idf="yes").fit(X, Y)
    tail = TailCentroids().fit(X, Y)
    with pytest.raises(InvalidInput, match=r"each of the 60 rows of X: predict_topk\(X, k\).labels"):
        tail.log_scores(X, np.zeros((59, 1), int))
    with pytest.raises(InvalidInput, match="values from 0 to 9; pass -1 or a label below 9"):
        tail.log_scores(X, np.tile([0, 9], (60, 1)))
