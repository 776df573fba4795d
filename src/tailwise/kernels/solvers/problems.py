"""What every solver of one-vs-rest problems takes and returns. Plain NamedTuples of numpy arrays.

A problem is a set of rows and, for each label, the positions of the rows that carry it; all other rows are
negatives. ``linear`` solves over all rows; ``trees`` over the rows that reach a node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailwise.kernels.arrays import empty, frozen, read_only, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.sparse.csr import Csr

LOSSES = ("squared_hinge", "hinge", "logistic")
BYTES_A_VALUE = 8
"""Of a sparse row: feature and value."""
FEW_TIMES = 4
"""Where a feature occurs fewer times on average, one label at a time costs less than sixteen side by side."""
SQUARED_HINGE, HINGE, LOGISTIC = range(3)
"""The losses as kernels know them: their places in ``LOSSES``."""


class Rows(NamedTuple):
    """Rows to learn from, features renumbered so that only those in use take room. Read-only for solvers."""

    indptr: np.ndarray
    """(n_rows + 1,) int64"""
    indices: np.ndarray
    """(nnz,) int32 local feature numbers"""
    data: np.ndarray
    """(nnz,) float32"""
    squares: np.ndarray
    """(n_rows,) float32, the squared length of each row"""
    features: np.ndarray
    """(n_local,) int32, ascending: the feature of X that a local number stands for"""
    weights: np.ndarray
    """(n_rows,) float32 > 0: how often each row counts; negatives cost this times ``Labels.negative_costs``"""


class FarRows(NamedTuple):
    """Rows that stay where they are, on disk: solvers read them in passes and copy what they need together."""

    rows: Rows
    """as always, but ``indices`` and ``data`` are those of all rows of X"""
    starts: np.ndarray
    """(n_rows,) int64: where each row begins there; it has as many values as ``rows.indptr`` says"""
    memory: int
    """how many bytes a solver may take for copies, working sets and weights"""

    def near(self) -> Rows:
        """The rows for solvers that know no passes: copied together, unless they are all rows of X."""
        rows = self.rows
        if np.array_equal(self.starts, rows.indptr[:-1]):
            return rows
        return _copied(self.starts, Csr(*rows[:3]), rows.features.shape[0], rows.weights)


class Labels(NamedTuple):
    """One binary problem a label: its positives and what an error costs."""

    indptr: np.ndarray
    """(n_labels + 1,) int64"""
    positions: np.ndarray
    """(nnz,) int32: which of ``Rows`` carry the label; ascending within a label"""
    positive_costs: np.ndarray
    """(nnz,) float32 > 0: C of each positive"""
    negative_costs: np.ndarray
    """(n_labels,) float32 > 0: C of every negative of the label"""


class Support(NamedTuple):
    """Where the dual of each label's problem stands: its support vectors."""

    indptr: np.ndarray
    """(n_labels + 1,) int64"""
    positions: np.ndarray
    """(nnz,) int32: which of ``Rows``; ascending within a label"""
    values: np.ndarray
    """(nnz,) float32: α z"""


class Several(NamedTuple):
    """Problems that lie one after the other: which rows, labels and features each has."""

    first_row: np.ndarray
    """(n + 1,) int64"""
    first_label: np.ndarray
    """(n + 1,) int64"""
    first_feature: np.ndarray
    """(n,) int64 into ``Rows.features``"""
    last_feature: np.ndarray
    """(n,) int64: the first one after them; problems may share features"""


class Standing(NamedTuple):
    """Where to go on: the support vectors of each label."""

    support: Support
    rounds: int
    """of a look at all rows and a descent, at most"""


class Weights(NamedTuple):
    """Pruned solutions, one sparse vector a label."""

    indptr: np.ndarray
    """(n_labels + 1,) int64"""
    features: np.ndarray
    """(nnz,) int32 features of X, ascending within a label"""
    values: np.ndarray
    """(nnz,) float32, all with magnitude >= ``prune``"""
    bias: np.ndarray
    """(n_labels,) float32"""
    support: Support | None = None
    """where the dual stands, of a solver that has one"""


class Start(NamedTuple):
    """Old solutions to begin from, one a label: what a solver needs when rows were added."""

    indptr: np.ndarray
    """(n_labels + 1,) int64; (1,) says that no label has an old solution"""
    features: np.ndarray
    """(nnz,) int32 features of X, ascending within a label; kernels get local numbers"""
    values: np.ndarray
    """(nnz,) float32"""
    bias: np.ndarray
    """(n_labels,) float32; -inf for a label without an old solution"""
    n_known: np.ndarray
    """(n_labels,) int64: the old solution was made on the first so many rows"""


NO_START = frozen(
    Start(
        np.zeros(1, np.int64),
        np.empty(0, np.int32),
        np.empty(0, np.float32),
        np.empty(0, np.float32),
        np.empty(0, np.int64),
    )
)


class Options(NamedTuple):
    """What to solve and how exactly; the one place of the defaults.

    Kernels get it with the loss as a number and without None: :func:`tailwise.kernels.solvers.solve.solve_block`.
    """

    loss: str | int = "squared_hinge"
    """``"squared_hinge"``, ``"hinge"`` or ``"logistic"``"""
    l1: float = 0.0
    """strength of the L1 penalty that is added to ½|w|² (hinge losses only)"""
    tol: float = 0.1
    """stop when no row's dual gradient is off by more, as LIBLINEAR's ``-e``; 0.001 is close to exact"""
    max_rounds: int = 20
    """scans over all rows at most"""
    max_sweeps: int = 100
    """sweeps over a working set after each scan at most"""
    bias_centre: float | None = None
    """the bias that costs nothing; None is -1 for the hinge losses, which says "not this label" until a row
    disagrees, and the log-odds of the label's frequency for the logistic loss"""
    bias_scale: float = 1.0
    """the bias is centre + scale · v with penalty ½ v²; 0 fixes it, a large value frees it"""
    prune: float = 0.01
    """weights of smaller magnitude are dropped"""
    seed: int = 0
    """of the order in which coordinates are visited"""
    keep_duals: bool = True
    """whether it is asked for where the dual of each label stands; heeded by :mod:`.together` alone"""


def pack_rows(
    X: Csr,
    n_features: int,
    rows: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    memory: int | None = None,
) -> Any:
    """The rows of X (or those numbered by ``rows``) made ready for solvers: :class:`Rows`.

    With ``rows=None`` nothing is copied and all ``n_features`` are kept; otherwise the chosen rows are copied
    with their features renumbered, in O(their non-zeros + n_features). ``weights`` stand beside the packed rows; None
    counts each once. Rows that take more than half of ``memory`` bytes, if that is given, are left where they are:
    :class:`FarRows`.

    >>> from tailwise.kernels.sparse.csr import csr_parts
    >>> X = csr_parts(Csr(np.array([0, 1, 3]), np.array([4, 1, 9]), np.ones(3)))
    >>> packed = pack_rows(X, 10, rows=np.array([1]))
    >>> packed.indices, packed.features
    (array([0, 1], dtype=int32), array([1, 9], dtype=int32))
    """
    if rows is None:
        starts, indptr = X.indptr[:-1], X.indptr
    else:
        starts = X.indptr[rows]
        indptr = np.append(0, np.cumsum(X.indptr[rows + 1] - starts))
    weights = np.ones(starts.shape[0], np.float32) if weights is None else weights.astype(np.float32)
    far = memory is not None and BYTES_A_VALUE * indptr[-1] > memory // 2
    if rows is None or far:
        features = np.arange(n_features, dtype=np.int32)
        whole = frozen(Rows(indptr, X.indices, X.data, _squares(starts, indptr, X.data), features, weights))
        return FarRows(whole, read_only(starts), int(memory or 0)) if far else whole
    return _copied(starts, X._replace(indptr=indptr), n_features, weights)


def _copied(starts: np.ndarray, X: Csr, n_features: int, weights: np.ndarray) -> Rows:
    """The rows that begin at ``starts`` of X, as long as its ``indptr`` says, copied together."""
    indices, data, squares, features = _gather(starts, *X, n_features)
    return frozen(Rows(X.indptr, indices, data, squares, features, weights))


@njit(nogil=True, cache=True, boundscheck=False)
def _squares(starts, indptr, data):
    squares = zeros(starts.shape[0], np.float32)
    for row in range(squares.shape[0]):
        total = 0.0
        for a in range(starts[row], starts[row] + indptr[row + 1] - indptr[row]):
            total += np.float64(data[a]) * np.float64(data[a])
        squares[row] = total
    return squares


@njit(nogil=True, cache=True, boundscheck=False)
def _gather(starts, indptr, indices, data, n_features):
    used = zeros(n_features, np.bool_)
    for i in range(starts.shape[0]):
        for a in range(starts[i], starts[i] + indptr[i + 1] - indptr[i]):
            used[np.uint64(indices[a])] = True
    features = np.flatnonzero(used).astype(np.int32)
    local = empty(n_features, np.int32)
    for number in range(features.shape[0]):
        local[features[number]] = number
    new_indices = empty(indptr[-1], np.int32)
    new_data = empty(indptr[-1], np.float32)
    for i in range(starts.shape[0]):
        shift = starts[i] - indptr[i]
        for a in range(indptr[i], indptr[i + 1]):
            new_indices[a] = local[np.uint64(indices[a + shift])]
            new_data[a] = data[a + shift]
    return new_indices, new_data, _squares(indptr[:-1], indptr, new_data), features


@njit(nogil=True, cache=True, boundscheck=False)
def has_start(start, label):
    """Whether ``label`` has an old solution in ``start``, which is only read."""
    return start.bias.shape[0] > 0 and start.bias[label] > -np.inf
