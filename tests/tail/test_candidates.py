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
