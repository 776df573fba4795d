"""What the one-vs-rest models share: blocks of labels in, pruned sparse weights out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput
from tailwise.kernels.solvers.problems import Labels, Rows, Weights, pack_rows
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.linear.model import LinearModel
from tailwise.linear.weight_store import WeightStore
from tailwise.parallel import map_blocks
from tailwise.parameters import Constraint, Number
from tailwise.validation import as_rng, check_number, counted_rows, label_counts


class PositiveWeight(Constraint):
    """A positive number, or an array with one for each label."""

    def check(self, name: str, value: Any) -> Any:
        """The value; whether there is one for each label is seen when the labels are there."""
        try:
            values = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            values = np.empty((2, 2))
        if values.ndim > 1 or isinstance(value, str):
            raise InvalidInput(f"{name}={value!r}; pass a number, or one for each label")
        if not (np.isfinite(values) & (values > 0)).all():
            raise InvalidInput(f"{name}={value!r}; every weight must be finite and above 0")
        return value

    def __str__(self) -> str:
        return "a number above 0, or an array of n_labels such numbers"


class OneVsRest(LinearModel):
    """One linear problem a label against all rows: ``score_l = w_l·x + b_l``.

    A subclass writes :meth:`_solve`. Training runs in blocks of labels, the most frequent first;
    what is kept are the weights of magnitude ``prune`` and more, so memory is that of the model plus one block.
    Labels without rows are not solved and get the bias -inf: they are never predicted.

    Attributes
    ----------
    weights_ : csr_array (n_features, n_labels)
        Pruned weights, float32.
    bias_ : ndarray (n_labels,)
        Float32; -inf for a label without rows.
    C_ : float
        The C that was used.
    """

    _parameters = {
        "C": Number(low=0, open_low=True),
        "prune": Number(low=0),
        "positive_weight": PositiveWeight(),
        "tol": Number(low=0, open_low=True),
    }
    _labels_a_block = 128
    _max_rounds = 100

    C: float | None
    prune: float
    tol: float
    positive_weight: Any
    random_state: Any

    C_: float

    @abstractmethod
    def _solve(self, rows: Rows, labels: Labels, seed: int, prepared: Any) -> Weights:
        """Solve one block of labels: a pure function of its arguments and the parameters."""

    def _prepare(self, rows: Rows) -> Any:
        """What every block shares besides the rows; made once."""
        return None

    def _positive_costs(self, Y: sparse.csr_array) -> np.ndarray:
        """C of each label's positives: (n_labels,)."""
        values = np.asarray(self.positive_weight, np.float64)
        if values.ndim == 1 and values.size != self.n_labels_:
            raise InvalidInput(
                f"positive_weight has {values.size:,} entries; pass a number, or one for each of the "
                f"{self.n_labels_:,} labels"
            )
        return self.C_ * np.broadcast_to(values, self.n_labels_)

    def _cost(self) -> float:
        """C of negatives."""
        assert self.C is not None
        return self.C

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        self._fit_weighted(X, Y, np.ones(X.shape[0]))

    def _fit_weighted(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray) -> None:
        X, Y, weight = counted_rows(X, Y, weight)
        self.C_ = self._cost()
        seed = int(as_rng(self.random_state).integers(2**31))
        costs = self._positive_costs(Y)
        rows = pack_rows(csr_parts(X), X.shape[1], weights=weight)
        prepared = self._prepare(rows)
        by_label = sparse.csc_array(Y)
        by_label.sort_indices()
        counts = label_counts(Y)
        order = np.argsort(-counts, kind="stable")
        order = order[: np.count_nonzero(counts)]
        size = self._labels_a_block
        blocks = [order[start : start + size] for start in range(0, order.size, size)]

        store = WeightStore(X.shape[1], self.n_labels_)

        def solve(block: np.ndarray) -> None:
            store.add(block, self._solve(rows, _labels_of(by_label, block, costs, self.C_, weight), seed, prepared))

        map_blocks(solve, blocks, n_jobs=self.n_jobs, description=f"Training {type(self).__name__}", weight=len)
        self.weights_, self.bias_ = store.finish()

    def _check_state(self) -> None:
        super()._check_state()
        check_number("C_", self.C_, low=0)


def _labels_of(
    by_label: sparse.csc_array, block: np.ndarray, costs: np.ndarray, negative_cost: float, weight: np.ndarray
) -> Labels:
    starts, counts = by_label.indptr[block].astype(np.int64), np.diff(by_label.indptr)[block]
    indptr = np.zeros(block.size + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    take = np.repeat(starts - indptr[:-1], counts) + np.arange(indptr[-1])
    positions = by_label.indices[take].astype(np.int32)
    return Labels(
        indptr,
        positions,
        (np.repeat(costs[block], counts) * weight[positions]).astype(np.float32),
        np.full(block.size, negative_cost, np.float32),
    )
