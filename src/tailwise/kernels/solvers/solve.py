"""One call for every linear one-vs-rest problem: which loss, which penalty, how exact."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import frozen, read_only
from tailwise.kernels.solvers.l1 import solve_l1
from tailwise.kernels.solvers.logistic import solve_logistic
from tailwise.kernels.solvers.passes import Plan, solve_svm_in_passes
from tailwise.kernels.solvers.problems import (
    FEW_TIMES,
    LOSSES,
    NO_START,
    FarRows,
    Labels,
    Options,
    Rows,
    Several,
    Standing,
    Start,
    Support,
    Weights,
)
from tailwise.kernels.solvers.resuming import resume_svm
from tailwise.kernels.solvers.resuming_together import resume_svm_together
from tailwise.kernels.solvers.svm import solve_svm
from tailwise.kernels.solvers.together import LANES, bytes_at_once, solve_svm_together
from tailwise.kernels.sparse.columns import Columns
from tailwise.kernels.sparse.csr import spread

DEFAULT_C = {"squared_hinge": 1.0, "hinge": 1.0, "logistic": 16.0}
"""The C to take for a loss, chosen on validation rows: rows of unit length need a stronger pull in the logistic loss,
whose slope never exceeds 1."""


DEFAULT_DECAY = {"squared_hinge": 0.2, "hinge": 0.0, "logistic": 0.0}
"""How fast C falls with the rows that carry a label (:func:`costs_by_rows`): a C that fits a label of a few rows fits
the noise of one of hundreds. Chosen inside training rows of thirteen data sets for label trees (``python -m benchmarks
generality trees``), of ten for one-vs-rest; on five of them the hinge lost P@5 by it, and the logistic loss gained on
some what it lost on others."""

GOING_ON = {"max_sweeps": 2}
"""Bounds on the solver's work, as options, where labels go on; chosen on validation rows of EURLex-4K and of English
library records: a third sweep changed no mean by more than 0.03 points."""

DEFAULTS = Options()
PLAN = Plan()
_VISITS = 1 << 17
"""Of rows, for sixteen labels: more sweeps over very many rows gained nothing in one tree of 215,000 labels (P@1 58.7
with all seven and 58.9 with fewer, P@5 19.7 and 19.8)."""
_MANY_VALUES = 1 << 23
"""Of rows that are solved in passes."""
_KINDS = (np.int64, np.int32, np.float32)
_ALL_ROWS = np.empty(0, np.int32)
_NO_WEIGHTS = Weights(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32))


def solve_block(
    rows: Rows | FarRows, labels: Labels, options: Options = DEFAULTS, start: Start | Standing = NO_START
) -> Weights:
    """Solve one linear problem a label over shared rows: ``min ½|w|² + l1|w|₁ + ½v² + Σ_i C_i loss(z_i (w·x_i + b))``.

    A pure function that releases the GIL: call it for blocks of labels (a few hundred) or for the children of a
    tree node, from as many threads as wanted. ``rows`` comes from :func:`pack_rows` once and serves every block.
    A label's result does not depend on the other labels of the block. Labels may have no positive row, or
    every row.

    Parameters
    ----------
    rows : Rows or FarRows
        The rows, packed; may be read-only. The result does not depend on where they are.
    labels : Labels
        For each label the *positions* in ``rows`` (not row numbers of X) of its positives, ascending, the C of each
        positive, and the C of all its negatives.
    options : Options
        Loss, penalty, accuracy, pruning.
    start : Start or Standing
        Old solutions to begin from, by a scan of all rows; or where the dual of each label stood, from which it goes
        on. The logistic loss begins anew whatever it says.

    Returns
    -------
    Weights
        Feature numbers of X (not local ones), ascending within a label, and their values; biases.

    Examples
    --------
    >>> from tailwise.kernels.solvers.problems import pack_rows
    >>> from tailwise.kernels.sparse.csr import Csr, csr_parts
    >>> rows = pack_rows(csr_parts(Csr(np.array([0, 1, 2]), np.array([0, 1]), np.array([1.0, 1.0]))), 2)
    >>> labels = Labels(np.array([0, 1]), np.array([0]), np.ones(1, np.float32), np.ones(1, np.float32))
    >>> solve_block(rows, labels, Options(tol=1e-4)).features
    array([0, 1], dtype=int32)
    """
    if options.loss not in LOSSES:
        raise ValueError(f"loss={options.loss!r} is not one of {', '.join(map(repr, LOSSES))}")
    if isinstance(rows, FarRows) and not _in_passes(rows.rows, options, start):
        rows = rows.near()
    if isinstance(rows, FarRows) or _in_passes(rows, options, start):
        near, starts, memory = rows if isinstance(rows, FarRows) else (rows, rows.indptr[:-1], 0)
        solved = solve_svm_in_passes(near, starts, _plain(labels), _compiled(options, -1.0), PLAN, memory)
        return _joined(near, solved)
    if isinstance(start, Standing):
        return _joined(rows, resume_svm(rows, _plain(labels), _standing(start), _compiled(options, -1.0)))
    if options.loss != "logistic":
        began = _local(rows, start) if start.bias.size else None
        unsoft = np.empty(rows.features.size, np.float32) if options.l1 else None
        return _joined(rows, solve_svm(rows, _plain(labels), began, unsoft, _compiled(options, -1.0)))
    if options.l1:
        raise ValueError(f"l1={options.l1!r} goes with the hinge losses only")
    return _joined(rows, solve_logistic(rows, _plain(labels), _compiled(options, np.nan)))


def _in_passes(rows: Rows, options: Options, start: Start | Standing) -> bool:
    """Whether rows are solved in passes, whatever the memory; others are copied where they are on disk."""
    often = rows.indptr[-1] >= max(_MANY_VALUES, FEW_TIMES * rows.features.shape[0])
    anew = isinstance(start, Start) and not start.bias.size
    return often and anew and options.loss != "logistic" and not options.l1


def solve_l1_block(
    rows: Rows, columns: Columns, labels: Labels, options: Options = DEFAULTS, start: Start = NO_START
) -> Weights:
    """As :func:`solve_block` for ``min |w|₁ + |v| + Σ_i C_i max(0, 1 - z_i (w·x_i + b))²``: sparse without pruning.

    ``columns`` is ``to_columns(rows, n_features)``, made once for all blocks. ``options.tol`` is the largest violation
    of an optimality condition, in units of the penalty; ``loss`` and ``l1`` do not apply.
    """
    return _joined(rows, solve_l1(rows, columns, _plain(labels), _local(rows, start), _compiled(options, -1.0)))


def solve_together(
    rows: Rows | FarRows, labels: Labels, options: Options = DEFAULTS, above: np.ndarray | None = None
) -> Weights:
    """As :func:`solve_block` with the squared hinge, without L1, where most rows are support vectors of most labels.

    Every row is visited in each of ``options.max_sweeps`` sweeps at most, fewer where rows are many
    (:func:`sweeps_over`), for sixteen labels at once or, where rows are on disk, for as many as memory serves. The
    result does not depend on where they are. ``above``, of sixteen labels at most, has for each the number of another,
    whose rows alone belong to its problem, or -1.
    """
    at_once, own = 1, rows.rows if isinstance(rows, FarRows) else rows
    starts = own.indptr[:-1]
    if isinstance(rows, FarRows):
        groups = -(-labels.negative_costs.size // LANES)
        needed = bytes_at_once(own.squares.size, own.features.size)
        at_once, starts = max(1, min(groups, rows.memory // needed)), rows.starts
    options = options._replace(max_sweeps=sweeps_over(own.squares.shape[0], options.max_sweeps))
    among = read_only(_ALL_ROWS if above is None else above)
    solved = solve_svm_together(own, read_only(starts), _plain(labels), among, _compiled(options, -1.0), at_once)
    return _joined(own, solved)


def go_on_together(
    rows: Rows,
    starts: np.ndarray,
    several: Several,
    labels: Labels,
    support: Support,
    began: Weights | None,
    marks: np.ndarray,
    options: Options = DEFAULTS,
) -> Weights:
    """As :func:`solve_together` from where the dual of each label stood, for several problems.

    ``rows`` are those of all problems, which begin at ``starts`` (n_rows,) of their indices and data; ``marks``
    (2, n_rows) says which are new, and which share what has changed. Positions are among the rows of a label's own
    problem, those of the result among all of them; one that is negative in ``support`` is none. ``began`` are weights
    to begin from, with numbers of features among those of the problem; None has them made of the support vectors.
    """
    began = _plain_weights(_NO_WEIGHTS if began is None else began)
    begin, count, features, values, bias, *dual = resume_svm_together(
        rows, starts, frozen(several), _plain(labels), _plain_support(support), began, marks, _compiled(options, -1.0)
    )
    indptr, features, values = _laid(begin, count, features, values)
    return Weights(indptr, features, values, bias, Support(*_laid(*dual)))


def costs_by_rows(rows: Rows | FarRows, labels: Labels, decay: float) -> Labels:
    """The same problems at costs times ``n ** -decay``, n being how often rows with the label count, once at least.

    >>> from tailwise.kernels.solvers.problems import pack_rows
    >>> from tailwise.kernels.sparse.csr import Csr, csr_parts
    >>> rows = pack_rows(csr_parts(Csr(np.array([0, 1, 2]), np.array([0, 1]), np.array([1.0, 1.0]))), 2)
    >>> labels = Labels(np.array([0, 2]), np.array([0, 1]), np.ones(2, np.float32), np.ones(1, np.float32))
    >>> costs_by_rows(rows, labels, 1.0).negative_costs
    array([0.5], dtype=float32)
    """
    if not decay:
        return labels
    weights = rows.rows.weights if isinstance(rows, FarRows) else rows.weights
    counts = np.diff(labels.indptr)
    label = np.repeat(np.arange(counts.size), counts)
    often = np.bincount(label, weights[labels.positions], counts.size)
    factors = np.maximum(often, 1.0) ** -decay
    return labels._replace(
        positive_costs=(labels.positive_costs * factors[label]).astype(np.float32),
        negative_costs=(labels.negative_costs * factors).astype(np.float32),
    )


def sweeps_over(n_rows: int, most: int) -> int:
    """How many sweeps so many rows need of the ``most`` that few need: half of them at least.

    >>> [sweeps_over(n_rows, 7) for n_rows in (10_000, 30_000, 1_000_000)]
    [7, 5, 3]
    """
    return min(most, max(most // 2, -(-_VISITS // max(1, n_rows))))


def rounds_to_go(n_fresh: int, n_known: int) -> int:
    """How many looks a label needs that goes on: one where there are a tenth more rows, five where there are twice."""
    return 1 + min(4, 4 * n_fresh // max(1, n_known))


def _plain(labels: Labels) -> Labels:
    types = (np.int64, np.int32, np.float32, np.float32)
    return frozen(Labels(*(part.astype(kind, copy=False) for part, kind in zip(labels, types, strict=True))))


def _standing(start: Standing) -> Standing:
    return Standing(_plain_support(start.support), int(start.rounds))


def _plain_support(support: Support) -> Support:
    return frozen(Support(*(part.astype(kind, copy=False) for part, kind in zip(support, _KINDS, strict=True))))


def _plain_weights(weights: Weights) -> Weights:
    types = (np.int64, np.int32, np.float32, np.float32)
    indptr, features, values, bias = (
        part.astype(kind, copy=False) for part, kind in zip(weights[:4], types, strict=True)
    )
    return frozen(Weights(indptr, features, values, bias))


def _local(rows: Rows, start: Start) -> Start:
    """The old solutions with local feature numbers, without features that no row has."""
    if start.bias.size == 0:
        return NO_START
    types = (np.int64, np.int32, np.float32, np.float32, np.int64)
    if _has_all_features(rows):
        return frozen(Start(*(part.astype(kind, copy=False) for part, kind in zip(start, types, strict=True))))
    place = np.minimum(np.searchsorted(rows.features, start.features), max(0, rows.features.size - 1))
    there = rows.features[place] == start.features if rows.features.size else np.zeros(place.size, np.bool_)
    indptr = np.append(0, np.cumsum(there))[start.indptr]
    parts = (indptr, place[there], start.values[there], start.bias, start.n_known)
    return frozen(Start(*(part.astype(kind, copy=False) for part, kind in zip(parts, types, strict=True))))


def _compiled(options: Options, centre: float) -> Options:
    """The options with the types for which kernels are compiled; ``centre`` is the bias centre if none is given."""
    return Options(
        LOSSES.index(options.loss),
        float(options.l1),
        float(options.tol),
        int(options.max_rounds),
        int(options.max_sweeps),
        float(centre if options.bias_centre is None else options.bias_centre),
        float(options.bias_scale),
        float(options.prune),
        int(options.seed),
        bool(options.keep_duals),
    )


def _joined(rows: Rows, solved: tuple[np.ndarray, ...]) -> Weights:
    """A kernel's output in label order, local feature numbers replaced by features of X."""
    begin, count, features, values, bias, *dual = solved
    indptr, features, values = _laid(begin, count, features, values)
    if not _has_all_features(rows):
        features = rows.features[features]
    support = Support(*_laid(*dual)) if dual else None
    return Weights(indptr, features, values, bias, support)


def _laid(begin: np.ndarray, count: np.ndarray, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Parts of ``arrays`` laid end to end, and before them where each begins; not copied where they lie so already."""
    indptr = np.append(0, np.cumsum(count))
    if np.array_equal(begin, indptr[:-1]):
        return indptr, *(array[: indptr[-1]] for array in arrays)
    indptr, order = spread(begin, count)
    return indptr, *(array[order] for array in arrays)


def _has_all_features(rows: Rows) -> bool:
    """Whether all features are there, and have their own numbers."""
    return np.array_equal(rows.features, np.arange(rows.features.size))
