"""PfastreXML: the labels that a forest proposes, re-ranked by tail classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.base import TopK, XMCModel
from tailwise.explanation import Explanation, Part
from tailwise.forest.models import ROWS_A_BLOCK, PfastXML
from tailwise.forest.tail_centroids import CENTROIDS, TailCentroids
from tailwise.kernels.arrays import read_only
from tailwise.kernels.forest.predict import predict_reranked
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.parallel import map_blocks, row_blocks
from tailwise.parameters import Number, constraints_of
from tailwise.persistence.checks import check_kind, check_that
from tailwise.ranges import Range, Ranges


class PfastreXML(XMCModel):
    """PfastXML, re-ranked by tail classifiers: ``score_l = α ln P_forest(l|x) + (1-α) ln q_l(x)``.

    q_l(x) is that of :class:`TailCentroids`. Only labels in the leaves that the row reaches are ranked; of these,
    those whose distance bound rules them out are never looked at.

    Parameters
    ----------
    n_trees, max_leaf, labels_per_leaf, C, tol, max_iter, max_features, idf, propensity, random_state, n_jobs
        As in :class:`PfastXML`. C is larger: denser separators gain behind the first label, and what they lose at the
        first the tail classifiers bring back.
    alpha : float
        Weight of the forest, in [0, 1].
    centroids : TailCentroids or None
        The tail classifiers; None is ``TailCentroids()``. It is cloned. The paper's are
        ``TailCentroids(shape="sphere", idf=False)``.

    Examples
    --------
    >>> X, Y = [[1.0, 0], [0.9, 0.1], [0, 1.0], [0.1, 0.9]], [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> PfastreXML(n_trees=3, max_leaf=2, random_state=0).fit(X, Y).predict_topk([[1.0, 0]], k=1).labels
    array([[0]], dtype=int32)
    """

    _parameters = constraints_of(PfastXML) | {"alpha": Number(low=0, high=1), "centroids": CENTROIDS}

    forest_: PfastXML
    centroids_: TailCentroids

    def __init__(
        self,
        n_trees: int = 50,
        *,
        max_leaf: int = 10,
        labels_per_leaf: int = 100,
        C: float = 6.0,
        tol: float = 0.1,
        max_iter: int = 10,
        max_features: float = 0.7,
        idf: bool = True,
        alpha: float = 0.8,
        centroids: TailCentroids | None = None,
        propensity: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaf = max_leaf
        self.labels_per_leaf = labels_per_leaf
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.max_features = max_features
        self.idf = idf
        self.alpha = alpha
        self.centroids = centroids
        self.propensity = propensity
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"C": Range.around(self.C, 8), "alpha": Range(0.5, 1.0, self.alpha)}

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        own = self.get_params(deep=False)
        self.centroids_ = (TailCentroids() if self.centroids is None else clone(self.centroids)).fit(X, Y, weight)
        self.forest_ = PfastXML(**{name: own[name] for name in constraints_of(PfastXML)}).fit(X, Y, weight)

    def _check_state(self) -> None:
        super()._check_state()
        self._check_part("forest_", self.forest_, PfastXML)
        check_kind("centroids_", self.centroids_, TailCentroids)._check_is_fitted()
        self.centroids_.check_agrees(self._n_seen, self.n_labels_)
        views = self.forest_.rows_, self.centroids_.rows_
        check_that(all(view.columns is None for view in views), "forest_ and centroids_ see other columns")

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = TopK(np.empty((X.shape[0], k), np.int32), np.empty((X.shape[0], k), np.float32))
        shape = (self.n_features_in_, self.n_labels_)
        seen = self.forest_.rows_(X)
        # Mostly the forest and the centroids see the same values.
        values = seen.data if self.idf == self.centroids_.idf else self.centroids_.rows_(X).data
        forest, centroids, alpha = self.forest_.forest_, self.centroids_.compiled(), float(self.alpha)
        rows, values = csr_parts(seen), read_only(values)
        map_blocks(
            lambda block: predict_reranked(rows, values, block, forest, centroids, alpha, shape, *top),
            row_blocks(X.shape[0], ROWS_A_BLOCK),
            n_jobs=self.n_jobs,
        )
        return top

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        forest = self.forest_.explain(x, label)
        if np.isneginf(forest.score):
            return forest
        tail = self.centroids_.explain(x, label)
        parts = [
            Part(f"{self.alpha:g} ln P(l|x) of the forest", self.alpha * float(np.log(forest.score)), of=forest),
            Part(f"{1 - self.alpha:g} ln q(x) of the label's centroid", (1 - self.alpha) * tail.score, of=tail),
        ]
        return Explanation.sum_of(label, parts)
