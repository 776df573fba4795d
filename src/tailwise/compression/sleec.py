"""SLEEC: rows near in label space, found again from their features; the labels of the nearest vote."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.compression.low_rank import DIM, LARGEST, POSITIVE, encode
from tailwise.compression.neighbours import embed_neighbours, nearest_by_labels
from tailwise.compression.partition import Partition, partition_rows
from tailwise.compression.ridge import CentredRows, ridge
from tailwise.explanation import Explanation, Part, not_ranked
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.sparse.topk import topk_csr
from tailwise.parallel import ONE_BLAS_THREAD, map_blocks, map_shards, row_blocks
from tailwise.parameters import Integer
from tailwise.persistence.checks import (
    check_exact,
    check_indices,
    check_kind,
    check_matrix,
    check_offsets,
    check_range,
    check_that,
)
from tailwise.ranges import Range, Ranges
from tailwise.rows import UNIT_LENGTH, RowView, scaled_rows, unit_rows
from tailwise.scoring import search_vectors
from tailwise.validation import as_rng

_ROWS_A_BLOCK = 1024


class Learner(NamedTuple):
    """One clustering of the training rows; entries ``starts[c] : starts[c + 1]`` belong to cluster c."""

    partition: Partition
    starts: np.ndarray
    """(n_clusters + 1,) int64"""
    members: np.ndarray
    """(n_rows,) int32: training rows, cluster by cluster."""
    projections: np.ndarray
    """(n_clusters, n_features, dim) float32: from features to the space of the cluster."""
    vectors: np.ndarray
    """(n_rows, dim + 1) float32: where each member's features lead, and ``-½|z|²`` behind."""

    def neighbours(self, X: sparse.csr_array, k: int, n_jobs: int | None) -> np.ndarray:
        """The ``k`` training rows that lie nearest to each row within its cluster: (n, k) int32, -1 where none."""
        near = np.full((X.shape[0], k), -1, np.int32)
        scores = np.full((X.shape[0], k), -np.inf, np.float32)
        parts = self.partition.of(X, n_jobs=n_jobs)
        for part in np.unique(parts):
            rows, (start, stop) = np.flatnonzero(parts == part), self.starts[part : part + 2]
            if start == stop:
                continue
            # The largest z·v - ½|v|² is the least distance.
            queries = np.ones((rows.size, self.vectors.shape[1]), np.float32)
            queries[:, :-1] = encode(X[rows], self.projections[part], n_jobs=n_jobs)
            found, score = near[rows], scores[rows]
            search_vectors(queries, self.vectors[start:stop], found, score, n_jobs=n_jobs)
            near[rows] = np.where(found >= 0, self.members[start:stop][found], -1)
        return near

    def check(self, n_features: int, n_rows: int, dim: int) -> None:
        """Refuse a learner that does not belong to these rows."""
        n_clusters = check_kind("partition", self.partition, Partition).check("partition", n_features)
        check_exact("members", self.members, np.int32, (None,))
        check_indices("members", self.members, n_rows)
        check_offsets("starts", self.starts, n_clusters, self.members.size)
        for name, shape in (("projections", (n_clusters, n_features, dim)), ("vectors", (self.members.size, dim + 1))):
            array = check_exact(name, getattr(self, name), np.float32, shape)
            check_range(name, array, -LARGEST, LARGEST)


class SLEEC(XMCModel):
    """Sparse local embeddings: a committee of clusterings; in a cluster rows are embedded so that near labels are near.

    In each cluster of a learner's k-means, Ω pairs each row with the ``n_pairs`` rows of most similar labels (cosine);
    singular value projection finds Z of ``dim`` columns with ``z_i·z_j`` near that similarity; ridge regression takes
    features to Z. A new row goes to its cluster, its ``k`` nearest training rows there, by where their features lead,
    vote with their labels; the learners' votes are averaged: ``score_l`` is the share of votes, in [0, 1].

    A learner costs O(rounds · n_samples · dim · (n_pairs + dim) + steps · entries of X · dim), a prediction
    O(rows of the cluster · dim); the model keeps n_samples · dim numbers a learner. The authors' regression has an L1
    penalty on what it gives out; here it is plain ridge.

    Paper: K. Bhatia et al., *Sparse local embeddings for extreme multi-label classification* (2015).

    Parameters
    ----------
    dim : int
        Dimensions of the embedding.
    n_learners : int
        Clusterings whose votes are averaged.
    cluster_rows : int
        Rows of a cluster, on average.
    n_pairs : int
        Neighbours in label space whose similarity is kept.
    k : int
        Training rows that vote, for each learner.
    rounds : int
        Of singular value projection.
    l2 : float
        Penalty of the regression; rows have unit length.
    tol : float
        The regression stops when its residual is below this share of the right-hand side.
    random_state : int, Generator or None
        Starts the k-means.
    n_jobs : int or None
        Threads; None uses every core.

    Examples
    --------
    >>> X, Y = [[1.0, 0], [0.9, 0.1], [0, 1.0]], [[1, 0], [1, 0], [0, 1]]
    >>> SLEEC(dim=2, k=1, n_learners=1, l2=0.1, random_state=0).fit(X, Y).predict_topk([[0.1, 0.9]], k=1).labels
    array([[1]], dtype=int32)
    """

    scores_are_probabilities = True

    _parameters = {
        "dim": DIM,
        "n_learners": Integer(low=1),
        "cluster_rows": Integer(low=1),
        "n_pairs": Integer(low=1),
        "k": Integer(low=1),
        "rounds": Integer(low=1),
        "l2": POSITIVE,
        "tol": POSITIVE,
    }

    learners_: list[Learner]
    row_numbers_: np.ndarray
    labels_: sparse.csr_array

    def __init__(
        self,
        dim: int = 100,
        *,
        n_learners: int = 10,
        cluster_rows: int = 2000,
        n_pairs: int = 15,
        k: int = 10,
        rounds: int = 20,
        l2: float = 2.0,
        tol: float = 1e-2,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.dim = dim
        self.n_learners = n_learners
        self.cluster_rows = cluster_rows
        self.n_pairs = n_pairs
        self.k = k
        self.rounds = rounds
        self.l2 = l2
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"l2": Range.around(self.l2, 16)}

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        self.row_numbers_ = np.flatnonzero(np.diff(Y.indptr))
        X, self.labels_ = sparse.csr_array(X[self.row_numbers_]), sparse.csr_array(Y[self.row_numbers_])
        similar = unit_rows(self.labels_)
        if weight is not None:
            weight = weight[self.row_numbers_]
            # Each row here has a label, so that its entries can tell what its vote weighs.
            self.labels_ = scaled_rows(self.labels_, weight / weight.max())
        seeds = as_rng(self.random_state).spawn(self.n_learners)

        def learn(rng: np.random.Generator) -> Learner:
            return self._learn(X, similar, weight, rng)

        with ONE_BLAS_THREAD:
            self.learners_ = (
                map_shards(learn, seeds, n_jobs=self.n_jobs, description="Training SLEEC") if X.shape[0] else []
            )

    def _learn(
        self, X: sparse.csr_array, similar: sparse.csr_array, weight: np.ndarray | None, rng: np.random.Generator
    ) -> Learner:
        partition = partition_rows(X, max(1, round(X.shape[0] / self.cluster_rows)), rng, weight)
        parts, n_parts = partition.of(X, n_jobs=1), partition.offsets.size
        members = np.argsort(parts, kind="stable").astype(np.int32)
        starts = np.append(0, np.cumsum(np.bincount(parts, minlength=n_parts)))
        projections = np.zeros((n_parts, X.shape[1], self.dim), np.float32)
        vectors = np.zeros((members.size, self.dim + 1), np.float32)
        for part in range(n_parts):
            own = slice(starts[part], starts[part + 1])
            rows = members[own]
            if not rows.size:
                continue
            near = nearest_by_labels(sparse.csr_array(similar[rows]), self.n_pairs)
            Z = embed_neighbours(near, self.dim, self.rounds, rng)
            inside = CentredRows(sparse.csr_array(X[rows]), None if weight is None else weight[rows])
            W = ridge(inside, inside.scaled(Z), self.l2, tol=self.tol, n_jobs=1)
            projections[part, :, : W.shape[1]] = W
            # Distances do not see the regression's intercept, which moves all rows alike.
            vectors[own, :-1] = encode(sparse.csr_array(X[rows]), projections[part], n_jobs=1)
        vectors[:, -1] = -0.5 * np.einsum("ij,ij->i", vectors[:, :-1], vectors[:, :-1])
        return Learner(partition, starts, members, projections, vectors)

    def _check_state(self) -> None:
        super()._check_state()
        n_rows = check_exact("row_numbers_", self.row_numbers_, np.int64, (None,)).size
        check_range("row_numbers_", self.row_numbers_, 0)
        check_range("labels_.data", check_matrix("labels_", self.labels_, (n_rows, self.n_labels_)).data, 0, 1)
        check_kind("learners_", self.learners_, list)
        expected = self.n_learners if n_rows else 0
        check_that(len(self.learners_) == expected, f"learners_ are {len(self.learners_)}, not {expected}")
        for learner in self.learners_:
            check_kind("an entry of learners_", learner, Learner).check(self._n_seen, n_rows, self.dim)

    @property
    def _row_weights(self) -> np.ndarray:
        """What each vote of a training row weighs: its entries in ``labels_``; it has at least one."""
        return self.labels_.data[self.labels_.indptr[:-1]]

    def _voters(self, X: sparse.csr_array) -> sparse.csr_array:
        """How often each training row is among the neighbours that a learner finds: (n, n_training_rows) counts."""
        n_rows = self.row_numbers_.size
        voters = sparse.csr_array((X.shape[0], n_rows), dtype=np.float32)
        for learner in self.learners_:
            near = learner.neighbours(X, min(self.k, n_rows), self.n_jobs)
            voters = voters + TopK(near, np.ones(near.shape, np.float32)).to_csr(n_rows)
        return sparse.csr_array(voters)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = TopK(np.empty((X.shape[0], k), np.int32), np.empty((X.shape[0], k), np.float32))
        voters = self._voters(X)

        def vote(block: tuple[int, int]) -> None:
            # Counts are whole numbers: without weights their sums are exact in any order.
            mine = sparse.csr_array(voters[slice(*block)])
            votes = sparse.csr_array(mine @ self.labels_)
            shares = votes.data / np.repeat(mine @ self._row_weights, np.diff(votes.indptr))
            topk_csr(csr_parts(votes, shares.astype(np.float32)), top.labels[slice(*block)], top.scores[slice(*block)])

        map_blocks(vote, row_blocks(X.shape[0], _ROWS_A_BLOCK), n_jobs=self.n_jobs)
        return top

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        voters = self._voters(x)
        weights = voters.data * self._row_weights[voters.indices]
        has_label = self.labels_[:, [label]].toarray().ravel() > 0
        parts = [
            Part(
                f"training row {self.row_numbers_[row]}, {count:g} votes",
                float(weight / weights.sum()),
                row=int(self.row_numbers_[row]),
            )
            for row, count, weight in zip(voters.indices, voters.data, weights, strict=True)
            if has_label[row]
        ]
        return Explanation.sum_of(label, parts) if parts else not_ranked(label, "no near training row has the label")
