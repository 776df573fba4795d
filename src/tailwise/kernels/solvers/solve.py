"""One call for every linear one-vs-rest problem: which loss, which penalty, how exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.solvers.l1 import Columns, solve_l1
from tailwise.kernels.solvers.logistic import solve_logistic
from tailwise.kernels.solvers.problems import Labels, Rows, Weights, read_only
from tailwise.kernels.solvers.svm import Settings, solve_svm

DEFAULT_C = {"squared_hinge": 1.0, "hinge": 1.0, "logistic": 16.0}
"""The C to take for a loss, chosen on validation rows: rows of unit length need a stronger pull in the logistic loss,
whose slope never exceeds 1."""


class Options(NamedTuple):
    """What to solve and how exactly; the one place of the defaults."""

    loss: str = "squared_hinge"
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


DEFAULTS = Options()


def solve_block(rows: Rows, labels: Labels, options: Options = DEFAULTS) -> Weights:
    """Solve one linear problem a label over shared rows: ``min ½|w|² + l1|w|₁ + ½v² + Σ_i C_i loss(z_i (w·x_i + b))``.

    A pure function that releases the GIL: call it for blocks of labels (a few hundred) or for the children of a
    tree node, from as many threads as wanted. ``rows`` comes from :func:`pack_rows` once and serves every block.
    A label's result does not depend on the other labels of the block. Labels may have no positive row, or
    every row.

    Parameters
    ----------
    rows : Rows
        The rows, packed; may be read-only.
    labels : Labels
        For each label the *positions* in ``rows`` (not row numbers of X) of its positives, ascending, the C of each
        positive, and the C of all its negatives.
    options : Options
        Loss, penalty, accuracy, pruning.

    Returns
    -------
    Weights
        Feature numbers of X (not local ones), ascending within a label, and their values; biases.

    Examples
    --------
    >>> from tailwise.kernels.solvers.problems import pack_rows
    >>> rows = pack_rows(np.array([0, 1, 2]), np.array([0, 1]), np.array([1.0, 1.0]), 2)
    >>> labels = Labels(np.array([0, 1]), np.array([0]), np.ones(1, np.float32), np.ones(1, np.float32))
    >>> solve_block(rows, labels, Options(tol=1e-4)).features
    array([0, 1], dtype=int32)
    """
    logistic = options.loss == "logistic"
    if not logistic and options.loss not in ("squared_hinge", "hinge"):
        raise ValueError(f"loss={options.loss!r} is not one of 'squared_hinge', 'hinge', 'logistic'")
    if logistic and options.l1:
        raise ValueError(f"l1={options.l1!r} goes with the hinge losses only")
    centre = options.bias_centre
    if centre is None:
        centre = np.nan if logistic else -1.0
    settings = _settings(options, centre)
    return _joined(rows, (solve_logistic if logistic else solve_svm)(rows, _plain(labels), settings))


def solve_l1_block(rows: Rows, columns: Columns, labels: Labels, options: Options = DEFAULTS) -> Weights:
    """As :func:`solve_block` for ``min |w|₁ + |v| + Σ_i C_i max(0, 1 - z_i (w·x_i + b))²``: sparse without pruning.

    ``columns`` is ``to_columns(rows)``, made once for all blocks. ``options.tol`` is the largest violation of an
    optimality condition, in units of the penalty; ``loss`` and ``l1`` do not apply.
    """
    centre = -1.0 if options.bias_centre is None else options.bias_centre
    return _joined(rows, solve_l1(rows, columns, _plain(labels), _settings(options, centre)))


def _plain(labels: Labels) -> Labels:
    types = (np.int64, np.int32, np.float32, np.float32)
    return Labels(*(read_only(part.astype(kind, copy=False)) for part, kind in zip(labels, types, strict=True)))


def _settings(options: Options, centre: float) -> Settings:
    return Settings(
        options.loss == "squared_hinge",
        float(options.l1),
        float(options.tol),
        int(options.max_rounds),
        int(options.max_sweeps),
        float(centre),
        float(options.bias_scale),
        float(options.prune),
        int(options.seed),
    )


def _joined(rows: Rows, solved: tuple[np.ndarray, ...]) -> Weights:
    """A kernel's output in label order, local feature numbers replaced by features of X."""
    begin, count, features, values, bias = solved
    indptr = np.zeros(count.shape[0] + 1, np.int64)
    np.cumsum(count, out=indptr[1:])
    order = np.repeat(begin - indptr[:-1], count) + np.arange(indptr[-1])
    return Weights(indptr, rows.features[features[order]], values[order], bias)
