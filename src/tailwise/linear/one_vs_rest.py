"""What the one-vs-rest models share: blocks of labels in, pruned sparse weights out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from tailwise.changes import Change, check_solved_rows, labels_to_solve, more_rows, solved_rows, widened
from tailwise.dual_state import DualState, DualStore, check_dual
from tailwise.errors import InvalidInput
from tailwise.kernels.solvers.lanes import HALF_LANES, LANES
from tailwise.kernels.solvers.problems import NO_START, Labels, Rows, Standing, Start, Weights, pack_rows
from tailwise.kernels.solvers.solve import GOING_ON, rounds_to_go
from tailwise.kernels.sparse.columns import merge_columns
from tailwise.kernels.sparse.csr import csr_parts, spread
from tailwise.linear.model import LinearModel
from tailwise.linear.weight_store import WeightStore
from tailwise.parallel import map_shards
from tailwise.parameters import Constraint, Number
from tailwise.ranges import Range, Ranges
from tailwise.validation import as_rng, check_number, label_counts

_LITTLE = {"max_rounds": 3, "max_sweeps": 5}
_BLOCKS = 128
"""So many blocks, about, that cost the same, if they may be so small."""
_LABELS_GOING_ON, _BLOCKS_GOING_ON = 256, 16
"""The same where labels go on, which takes little: fewer blocks, which then prepare less."""
_NEW_ROUNDS = 3
"""Looks at all rows for a new label, which goes on from nothing: five gained nothing on library records."""
_WITHOUT_ROWS = {"max_sweeps": 3}
"""As :data:`GOING_ON`, where labels go on without some rows."""
_FINER = 0.04
"""Of ``tol``, where labels go on without some rows: negatives that those rows had called in must be seen to go, or rows
held out are scored too low (by a point of P@1 where labels have a few rows each)."""
_WORTH_GOING_ON = 5_000
"""Rows of a part from which on it goes on: fewer are solved anew in less time than the code for going on takes to be
compiled."""
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
    Labels without rows are not solved and get the bias -inf: they are never predicted. An update goes on where the
    dual of each label with new rows stood; the others keep their bits. Where no dual is kept, labels that have new rows
    to speak of are solved from their old weights.

    Attributes
    ----------
    weights_ : csr_array (n_features, n_labels)
        Pruned weights, float32.
    bias_ : ndarray (n_labels,)
        Float32; -inf for a label without rows.
    C_ : float
        The C that was used.
    solved_rows_ : ndarray (n_labels,) or None
        How many rows there were when each label was solved, after an update without a dual; None says all.
    dual_ : DualState or None
        The support vectors of each label with their α, four to six bytes each; None for the logistic and the L1 loss,
        which have no such dual, and after training with weights of rows.
    """

    _parameters = {
        "C": Number(low=0, open_low=True),
        "prune": Number(low=0),
        "positive_weight": PositiveWeight(),
        "tol": Number(low=0, open_low=True),
    }
    _labels_a_block = 32
    _max_rounds = 100
    _goes_without_rows = False

    C: float | None
    prune: float
    tol: float
    positive_weight: Any
    random_state: Any

    C_: float
    solved_rows_: np.ndarray | None = None
    dual_: DualState | None = None

    @abstractmethod
    def _solve(self, rows: Rows, labels: Labels, seed: int, prepared: Any, start: Start | Standing) -> Weights:
        """Solve one block of labels: a pure function of its arguments and the parameters."""

    def _effort(self, start: Start | Standing) -> dict[str, Any]:
        """Bounds on the solver's work, as options; close to the solution, where old weights are, little is enough."""
        if isinstance(start, Standing):
            return _WITHOUT_ROWS if self._goes_without_rows else GOING_ON
        return _LITTLE if start.bias.size else {"max_rounds": self._max_rounds}

    def _prepare(self, rows: Rows) -> Any:
        """What every block shares besides the rows; made once."""
        return None

    def _ranges(self) -> Ranges:
        return {"C": Range.around(self._cost(), 16)}

    def _blocks(self, labels: np.ndarray, costs: np.ndarray, prepared: Any) -> list[np.ndarray]:
        """The labels that are solved together, of predicted ``costs``: the same blocks in every process of a run."""
        return _cut(labels, costs, self._labels_a_block)

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
        self._fit_from(X, Y, weight)

    def _fit_part(
        self, whole: Self, rows: np.ndarray, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None
    ) -> None:
        if weight is not None or whole.dual_ is None or rows.size < _WORTH_GOING_ON:
            return self._fit(X, Y, weight)
        # The α of rows that stay are a point of their own dual, as good as any to begin from.
        return self._fit_from(X, Y, None, whole.dual_.among(rows), rounds_without(whole.dual_.n_rows, rows.size))

    def _fit_from(
        self,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        weight: np.ndarray | None,
        dual: DualState | None = None,
        rounds: int = 0,
    ) -> None:
        """Solve all labels from the start, or from where their ``dual`` stood."""
        self.C_ = self._cost()
        self.solved_rows_ = None
        problem = self._problem(X, Y, np.ones(X.shape[0]) if weight is None else weight)
        store = _Store(X.shape, self.n_labels_)
        go_on = None
        if dual is not None:
            exact = copy(self)
            exact.tol, exact._goes_without_rows = _FINER * self.tol, True
            go_on = exact._going_on(problem, dual, rounds)
        labels, description = np.flatnonzero(label_counts(Y)), f"Training {type(self).__name__}"
        self._solve_labels(problem, labels, store, description, go_on)
        self.weights_, self.bias_, self.dual_ = store.finish()
        if weight is not None:
            # Rows of weight 0 were left out, and whoever updates numbers them all.
            self.dual_ = None

    def _update(self, change: Change) -> int:
        if self.dual_ is not None and self.dual_.n_rows == change.n_known:
            return self._go_on(change, self.dual_)
        return self._solve_again(change)

    def _go_on(self, change: Change, dual: DualState) -> int:
        """Labels that a row has got or lost go on from where their duals stood; the others keep their bits.

        New rows are negatives of the others too, but hardly move them: leaving them out was not seen to cost accuracy.
        """
        n_rows, n_labels = change.Y.shape
        problem = self._problem(change.X, change.Y, np.ones(n_rows))
        has_rows = self.label_counts_ > 0
        is_new = np.append(np.isneginf(self.bias_), np.ones(n_labels - self.bias_.size, bool))
        touched = np.zeros(n_labels, bool)
        touched[change.touched] = True
        store = _Store(change.X.shape, n_labels)
        description = f"Updating {type(self).__name__}"
        rounds_of_old = rounds_to_go(change.fresh.size, change.n_known)
        for labels, rounds in ((has_rows & is_new, _NEW_ROUNDS), (touched & ~is_new, rounds_of_old)):
            go_on = self._going_on(problem, dual, rounds)
            self._solve_labels(problem, np.flatnonzero(labels), store, description, go_on)
        kept = np.flatnonzero(has_rows & ~is_new & ~touched)
        self.weights_, self.bias_, self.dual_ = store.finish_beside(kept, self.weights_, self.bias_, dual)
        return int(has_rows.sum()) - kept.size

    def _going_on(self, problem: _Problem, dual: DualState, rounds: int) -> Callable[[np.ndarray, Labels], Weights]:
        """How a block of labels goes on from where their ``dual`` stood."""

        def go_on(block: np.ndarray, own: Labels) -> Weights:
            standing = Standing(dual.of(block), rounds)
            return self._solve(problem.rows, own, problem.seed, problem.prepared, standing)

        return go_on

    def _solve_again(self, change: Change) -> int:
        """Labels with new rows to speak of are solved from their old weights, by scans of all rows."""
        n_rows, n_labels = change.Y.shape
        solved = solved_rows(self.solved_rows_, change)
        old = self._by_label(change)
        problem = self._problem(change.X, change.Y, np.ones(n_rows))
        again = labels_to_solve(change, solved)
        anew = np.union1d(np.intersect1d(again, change.relabelled), again[np.isneginf(old.bias[again])])
        resumed = np.setdiff1d(again, anew)
        kept = np.flatnonzero(~np.isneginf(old.bias) & (self.label_counts_ > 0))
        kept = np.setdiff1d(kept, again)

        store = _Store(change.X.shape, n_labels)
        store.add(kept, Weights(*old.start(kept)[:4]))
        name = type(self).__name__

        def resume(block: np.ndarray, own: Labels) -> Weights:
            start = old.start(block)._replace(n_known=solved[block])
            return self._solve(problem.rows, own, problem.seed, problem.prepared, start)

        self._solve_labels(problem, anew, store, f"Updating {name}")
        self._solve_labels(problem, resumed, store, f"Updating {name}", resume)
        self.weights_, self.bias_, self.dual_ = store.finish()
        solved[again] = n_rows
        self.solved_rows_ = solved
        return again.size

    def _by_label(self, change: Change) -> _Old:
        n_features, n_labels = change.X.shape[1], change.Y.shape[1]
        by_label = more_rows(sparse.csr_array(self.weights_.T.tocsr()), n_labels)
        bias = np.append(self.bias_, np.full(n_labels - self.bias_.size, -np.inf)).astype(np.float32)
        return _Old(widened(by_label, n_features), bias)

    def _problem(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray) -> _Problem:
        seed = int(as_rng(self.random_state).integers(2**31))
        costs = self._positive_costs(Y)
        rows = pack_rows(csr_parts(X), X.shape[1], weights=weight)
        by_label = sparse.csc_array(Y)
        by_label.sort_indices()
        return _Problem(rows, by_label, costs, weight, seed, self._prepare(rows))

    def _solve_labels(
        self,
        problem: _Problem,
        labels: np.ndarray,
        store: _Store,
        description: str,
        solve: Callable[[np.ndarray, Labels], Weights] | None = None,
    ) -> None:
        """Solve ``labels``, the most frequent first, from the start or as ``solve`` does it, into ``store``."""
        counts = np.diff(problem.by_label.indptr)
        order = labels[np.argsort(-counts[labels], kind="stable")]
        costs = counts + _ANY_LABEL
        if solve is None:
            blocks = self._blocks(order, costs[order], problem.prepared)
        else:
            blocks = _cut(order, costs[order], _LABELS_GOING_ON, _BLOCKS_GOING_ON, HALF_LANES)

        def solve_block(block: np.ndarray) -> Weights:
            own = _labels_of(problem.by_label, block, problem.costs, self.C_, problem.weight)
            if solve is not None:
                return solve(block, own)
            return self._solve(problem.rows, own, problem.seed, problem.prepared, NO_START)

        map_shards(
            solve_block,
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
        check_dual(self.dual_, self.n_labels_)


def rounds_without(n_before: int, n_left: int) -> int:
    """How many looks a label needs that goes on without some rows: three where a third of them is gone.

    >>> rounds_without(90, 60), rounds_without(90, 59), rounds_without(90, 75), rounds_without(90, 30)
    (3, 3, 2, 5)
    """
    return 1 + min(4, round(4 * (n_before - n_left) / n_left))


class _Store:
    """Takes what blocks of labels were solved to: weights, biases, where their duals stand."""

    def __init__(self, shape: tuple[int, int], n_labels: int) -> None:
        self._weights = WeightStore(shape[1], n_labels)
        self._duals = DualStore(shape[0], n_labels)

    def add(self, labels: np.ndarray, solved: Weights) -> None:
        self._weights.add(labels, solved)
        self._duals.add(labels, solved.support)

    def finish(self) -> tuple[sparse.csr_array, np.ndarray, DualState | None]:
        return *self._weights.finish(), self._duals.finish()

    def finish_beside(
        self, kept: np.ndarray, old: sparse.csr_array, old_bias: np.ndarray, dual: DualState
    ) -> tuple[sparse.csr_array, np.ndarray, DualState | None]:
        """As :meth:`finish`, with what the labels ``kept`` have had."""
        self._duals.add(kept, dual.of(kept))
        new, bias, duals = self.finish()
        bias[kept] = old_bias[kept]
        stays = np.zeros(old.shape[1], bool)
        stays[kept] = True
        indptr, labels, values = merge_columns(csr_parts(old), csr_parts(new), stays)
        if labels.size < 2**31:
            indptr = indptr.astype(np.int32)
        return sparse.csr_array((values, labels, indptr), shape=new.shape), bias, duals


def _cut(
    order: np.ndarray, costs: np.ndarray, most: int, n_blocks: int = _BLOCKS, least: int = LANES
) -> list[np.ndarray]:
    """Blocks of at most ``most`` labels; of ``least``, which one scan serves, where these are dear.

    >>> [block.size for block in _cut(np.arange(80), np.repeat([9, 1], [16, 64]), 64)]
    [16, 16, 16, 16, 16]
    """
    limit = costs.sum() / n_blocks
    blocks, start = [], 0
    while start < order.size:
        size = most
        while size > least and costs[start : start + size].sum() > limit:
            size = max(least, size // 2)
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
    """The weights that labels had before an update: CSR (n_labels, n_features), biases, -inf for new labels."""

    weights: sparse.csr_array
    bias: np.ndarray

    def start(self, block: np.ndarray) -> Start:
        own = sparse.csr_array(self.weights[block])
        own.sort_indices()
        return Start(own.indptr, own.indices, own.data, self.bias[block], np.zeros(block.size, np.int64))


def _labels_of(
    by_label: sparse.csc_array, block: np.ndarray, costs: np.ndarray, negative_cost: float, weight: np.ndarray
) -> Labels:
    counts = np.diff(by_label.indptr)[block]
    indptr, take = spread(by_label.indptr[block].astype(np.int64), counts)
    positions = by_label.indices[take].astype(np.int32)
    return Labels(
        indptr,
        positions,
        (np.repeat(costs[block], counts) * weight[positions]).astype(np.float32),
        np.full(block.size, negative_cost, np.float32),
    )
