import numpy as np
from naive.tail import union_of_candidates

from tailwise import Centroid, NearestRows, Popularity
from tailwise.tail.candidates import gather_candidates


def test_candidates_are_the_union_of_the_members(rows):
    X, Y = rows
    tops = [model.fit(X, Y).predict_topk(X[:20], 4) for model in (Centroid(), NearestRows(k=3), Popularity())]
    table = gather_candidates(tops, Y.shape[1])
    assert list(zip(table.rows.tolist(), table.labels.tolist(), strict=True)) == union_of_candidates(tops)
    for m, top in enumerate(tops):
        named = ~np.isnan(table.scores[:, m])
        assert named.sum() == (top.labels >= 0).sum()
        for pair in np.flatnonzero(named)[:50]:
            row, rank = table.rows[pair], int(table.ranks[pair, m])
            assert top.labels[row, rank] == table.labels[pair] and top.scores[row, rank] == table.scores[pair, m]
    hits = table.are_hits(Y[:20])
    assert hits.tolist() == [bool(Y[r, l]) for r, l in zip(table.rows, table.labels, strict=True)]


def test_a_grid_has_each_pair_in_its_row_and_filled_scores_end_where_the_member_did(rows):
    X, Y = rows
    X = X[:20].copy()
    X.data[X.indptr[3] : X.indptr[4]] = 0  # a row whose neighbours are none
    tops = [model.fit(*rows).predict_topk(X, 4) for model in (Centroid(), NearestRows(k=3))]
    table = gather_candidates(tops, Y.shape[1])
    labels, column = table.grid()
    assert labels.shape[1] == np.diff(table.indptr).max()
    np.testing.assert_array_equal(labels[table.rows, column], table.labels)
    assert (labels >= 0).sum() == table.labels.size
    filled = table.filled().scores
    for pair, (row, own) in enumerate(zip(table.rows, table.scores, strict=True)):
        for m, score in enumerate(own):
            named = tops[m].scores[row][tops[m].labels[row] >= 0]
            expected = named.min(initial=np.inf) if np.isnan(score) else score
            np.testing.assert_equal(filled[pair, m], expected if np.isfinite(expected) else np.nan)
