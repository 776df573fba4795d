"""What the one-vs-rest models share: blocks of labels in, pruned sparse weights out."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.changes import Change, check_solved_rows, labels_to_solve, solved_rows
from tailwise.errors import InvalidInput
from tailwise.kernels.solvers.lanes import LANES
from tailwise.kernels.solvers.problems import NO_START, Labels, Rows, Start, Weights, pack_rows
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.linear.model import LinearModel
from tailwise.linear.weight_store import WeightStore
from tailwise.parallel import map_shards
from tailwise.parameters import Constraint, Number
from tailwise.validation import as_rng, check_number, label_counts

_LITTLE = {"max_rounds": 3, "max_sweeps": 5}
_BLOCKS = 128
"""So many blocks, about, that cost the same, if they may be so small."""
_ANY_LABEL = 64
"""What a label costs beside its positives, counted in these."""


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
    Labels without rows are not solved and get the bias -inf: they are never predicted. An update solves labels that
    have new rows to speak of, from their old weights, and those of rows that changed, anew; all others keep their bits.

    Attributes
    ----------
    weights_ : csr_array (n_features, n_labels)
        Pruned weights, float32.
    bias_ : ndarray (n_labels,)
        Float32; -inf for a label without rows.
    C_ : float
        The C that was used.
    solved_rows_ : ndarray (n_labels,) or None
        How many rows there were when each label was solved, after an update; None says all.
    """

    _parameters = {
        "C": Number(low=0, open_low=True),
        "prune": Number(low=0),
        "positive_weight": PositiveWeight(),
        "tol": Number(low=0, open_low=True),
    }
    _labels_a_block = 32
    _max_rounds = 100

    C: float | None
    prune: float
    tol: float
    positive_weight: Any
    random_state: Any

    C_: float
    solved_rows_: np.ndarray | None = None

    @abstractmethod
    def _solve(self, rows: Rows, labels: Labels, seed: int, prepared: Any, start: Start) -> Weights:
        """Solve one block of labels: a pure function of its arguments and the parameters."""

    def _effort(self, start: Start) -> dict[str, int]:
        """Bounds on the solver's work, as options; close to the solution, where old weights are, little is enough."""
        return _LITTLE if start.bias.size else {"max_rounds": self._max_rounds}

    def _prepare(self, rows: Rows) -> Any:
        """What every block shares besides the rows; made once."""
        return None

    def _blocks(self, order: np.ndarray, costs: np.ndarray, prepared: Any) -> list[np.ndarray]:
        """The labels, dearest first, in blocks: the same ones in every process of a run."""
        return _cut(order, costs, self._labels_a_block)

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

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        weight = np.ones(X.shape[0]) if weight is None else weight
        self.C_ = self._cost()
        self.solved_rows_ = None
        problem = self._problem(X, Y, weight)
        store = WeightStore(X.shape[1], self.n_labels_)
        self._solve_labels(problem, np.flatnonzero(label_counts(Y)), store, f"Training {type(self).__name__}")
        self.weights_, self.bias_ = store.finish()

    def _update(self, change: Change) -> int:
        n_rows, n_labels = change.Y.shape
        solved = solved_rows(self.solved_rows_, change)
        old = self.weights_.T.tocsr()
        old = sparse.csr_array(sparse.vstack([old, sparse.csr_array((n_labels - old.shape[0], old.shape[1]))]))
        bias = np.append(self.bias_, np.full(n_labels - self.bias_.size, -np.inf)).astype(np.float32)

        problem = self._problem(change.X, change.Y, np.ones(n_rows))
        again = labels_to_solve(change, solved)
        anew = np.union1d(np.intersect1d(again, change.relabelled), again[np.isneginf(bias[again])])
        resumed = np.setdiff1d(again, anew)
        kept = np.flatnonzero(~np.isneginf(bias) & (self.label_counts_ > 0))
        kept = np.setdiff1d(kept, again)

        store = WeightStore(change.X.shape[1], n_labels)
        untouched = sparse.csr_array(old[kept])
        store.add(kept, Weights(untouched.indptr, untouched.indices, untouched.data, bias[kept]))
        name = type(self).__name__
        self._solve_labels(problem, anew, store, f"Updating {name}")
        self._solve_labels(problem, resumed, store, f"Updating {name}", _Old(old, bias, solved))
        self.weights_, self.bias_ = store.finish()
        solved[again] = n_rows
        self.solved_rows_ = solved
        return again.size

    def _problem(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray) -> _Problem:
        seed = int(as_rng(self.random_state).integers(2**31))
        costs = self._positive_costs(Y)
        rows = pack_rows(csr_parts(X), X.shape[1], weights=weight)
        by_label = sparse.csc_array(Y)
        by_label.sort_indices()
        return _Problem(rows, by_label, costs, weight, seed, self._prepare(rows))

    def _solve_labels(
        self, problem: _Problem, labels: np.ndarray, store: WeightStore, description: str, old: _Old | None = None
    ) -> None:
        """Solve ``labels``, the most frequent first, from ``old`` weights if there are any, into ``store``."""
        counts = np.diff(problem.by_label.indptr)
        order = labels[np.argsort(-counts[labels], kind="stable")]
        costs = counts + _ANY_LABEL
        blocks = self._blocks(order, costs[order], problem.prepared)

        def solve(block: np.ndarray) -> Weights:
            own = _labels_of(problem.by_label, block, problem.costs, self.C_, problem.weight)
            start = NO_START if old is None else old.start(block)
            return self._solve(problem.rows, own, problem.seed, problem.prepared, start)

        map_shards(
            solve,
            blocks,
            take=store.add,
            n_jobs=self.n_jobs,
            description=description,
            weight=lambda block: float(costs[block].sum()),
        )

    def _check_state(self) -> None:
        super()._check_state()
        check_number("C_", self.C_, low=0)
        check_solved_rows(self.solved_rows_, self.n_labels_)


def _cut(order: np.ndarray, costs: np.ndarray, most: int) -> list[np.ndarray]:
    """Blocks of at most ``most`` labels; of sixteen, which one scan serves, where these are dear.

    >>> [block.size for block in _cut(np.arange(80), np.repeat([9, 1], [16, 64]), 64)]
    [16, 16, 16, 16, 16]
    """
    limit = costs.sum() / _BLOCKS
    blocks, start = [], 0
    while start < order.size:
        size = most
        while size > LANES and costs[start : start + size].sum() > limit:
            size = max(LANES, size // 2)
        blocks.append(order[start : start + size])
        start += size
    return blocks


class _Problem(NamedTuple):
    """What all blocks of labels share."""

    rows: Rows
    by_label: sparse.csc_array
    costs: np.ndarray
    weight: np.ndarray
    seed: int
    prepared: Any


class _Old(NamedTuple):
    """The weights that labels had before an update: CSR (n_labels, n_features), biases, rows known to each."""

    weights: sparse.csr_array
    bias: np.ndarray
    n_known: np.ndarray

    def start(self, block: np.ndarray) -> Start:
        own = sparse.csr_array(self.weights[block])
        own.sort_indices()
        return Start(own.indptr, own.indices, own.data, self.bias[block], self.n_known[block])


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
