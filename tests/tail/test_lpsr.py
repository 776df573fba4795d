"""LPSR: a row is answered with the labels that its partition keeps, in the wrapped model's order."""

import numpy as np
import pytest
from contracts import make_rows
from scipy import sparse

from tailwise import LPSR, Centroid, Popularity
from tailwise.compression.partition import partition_rows
from tailwise.errors import InvalidInput
from tailwise.tail.lpsr import labels_that_serve


@pytest.fixture(scope="module")
def fitted():
    X, Y = make_rows(200, 40, 30)
    return LPSR(Centroid(), n_partitions=12, random_state=0).fit(X, Y), X, Y


def test_only_kept_labels_are_ranked_in_the_order_of_the_base(fitted):
    model, X, _ = fitted
    kept = model.kept_.toarray() > 0
    assert 0 < kept.mean() < 0.8
    top, all_ = model.predict_topk(X, 4), model.base_.predict_topk(X, 30)
    for i, part in enumerate(model.partition_.of(X)):
        expected = [
            (label, score) for label, score in zip(all_.labels[i], all_.scores[i], strict=True) if kept[part, label]
        ]
        got = list(zip(top.labels[i], top.scores[i], strict=True))
        assert [pair for pair in got if pair[0] >= 0] == [pair for pair in expected if pair[0] >= 0][:4]


def test_a_partition_keeps_no_label_that_its_rows_do_not_have(fitted):
    model, X, Y = fitted
    parts = model.partition_.of(X)
    for part in range(model.kept_.shape[0]):
        has = np.asarray(Y[np.flatnonzero(parts == part)].sum(axis=0)).ravel() > 0
        assert not (model.kept_[[part]].toarray().ravel().astype(bool) & ~has).any()


def test_dropping_labels_never_lowers_precision_on_the_rows_it_looks_at():
    rng = np.random.default_rng(0)
    for _ in range(30):
        Y = sparse.csr_array((rng.random((20, 9)) < 0.3).astype(np.float32))
        candidates = np.stack([rng.permutation(9) for _ in range(20)])
        hits = []
        for kept in (np.unique(Y.indices), labels_that_serve(Y, candidates, 2)):
            ranked = [[label for label in row if label in kept][:2] for row in candidates]
            hits.append(sum(Y[i, label] for i, row in enumerate(ranked) for label in row))
        assert hits[1] >= hits[0]


def test_what_is_not_kept_is_not_explained(fitted):
    model, X, _ = fitted
    part = model.partition_.of(X[[0]])[0]
    dropped = int(np.flatnonzero(model.kept_[[part]].toarray().ravel() == 0)[-1])
    assert f"partition {part} does not keep" in model.explain(X[[0]], dropped).parts[0].name


def test_the_parts_are_the_nearest_centroids():
    X = make_rows()[0]
    partition = partition_rows(X, 5, np.random.default_rng(0))
    distances = ((X.toarray()[:, :, None] - partition.centroids[None]) ** 2).sum(axis=1)
    np.testing.assert_array_equal(partition.of(X), distances.argmin(axis=1))
    assert partition_rows(X[:3], 50, np.random.default_rng(0)).offsets.size == 3


def test_a_wrong_number_of_partitions_is_refused():
    with pytest.raises(InvalidInput, match=r"n_partitions=0 is outside \[1, inf\)"):
        LPSR(Popularity(), n_partitions=0).fit(*make_rows())
