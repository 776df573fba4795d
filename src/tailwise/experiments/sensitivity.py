"""What a guessed propensity costs: does the ranking of models by PSP@k depend on A and B?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput
from tailwise.metrics.rows import Batch
from tailwise.propensity import jain_inverse
from tailwise.validation import check_number

A_VALUES = np.round(np.linspace(0.05, 1.5, 30), 4)
B_VALUES = np.array([0.1, 0.15, 0.25, 0.4, 0.6, 1, 1.5, 2, 2.6, 4, 6, 10, 15, 25, 50])
_SURE = 1.96
_FINE = 600


class Sensitivity(NamedTuple):
    """PSP@k of every model for every (A, B) of a grid, and where the winner stays the winner."""

    models: list[str]
    a: np.ndarray
    b: np.ndarray
    values: np.ndarray
    """(n_models, n_a, n_b) float64: PSP@k in percent."""
    winners: np.ndarray
    """(n_a, n_b) int64: index of the best model; ties go to the model named first."""
    sure: np.ndarray
    """(n_a, n_b) bool: the best model leads the second by more than 1.96 standard errors over test rows."""
    reference: tuple[float, float]
    winner: str
    """The best model at ``reference``."""
    lead: float
    """Its lead there over the second, in points of PSP@k."""
    lead_error: float
    """The standard error of that lead over test rows."""
    a_range: tuple[float, float]
    """Where it stays the best as A moves from the reference, with B as there."""
    b_range: tuple[float, float]
    """Where it stays the best as B moves from the reference, with A as there."""

    @property
    def share(self) -> float:
        """The share of the grid in which the winner at the reference is the best."""
        return float((self.winners == self.models.index(self.winner)).mean())

    def __str__(self) -> str:
        others = sorted({self.models[i] for i in self.winners.flat} - {self.winner})
        return (
            f"{self.winner} is best at A = {self.reference[0]:g}, B = {self.reference[1]:g}, by "
            f"{self.lead:.2f} ± {self.lead_error:.2f} points; it stays best for A in {_span(self.a_range, self.a)} "
            f"and B in {_span(self.b_range, self.b)}, on {100 * self.share:.0f} % of the grid"
            + (f"; elsewhere {', '.join(others)}" if others else "")
        )


def propensity_sensitivity(
    Y_true: Any,
    predictions: Mapping[str, Any],
    label_counts: Any,
    n_samples: int,
    *,
    k: int = 5,
    reference: tuple[float, float] = (0.55, 1.5),
    a: Any = A_VALUES,
    b: Any = B_VALUES,
) -> Sensitivity:
    """See how the ranking of models by PSP@k changes when the propensity's (A, B) is wrong.

    With ``h_l`` the number of rows in which a model finds label l and ``g_l`` the same for the best ranking of the
    observed labels, PSP@k is ``Σ_l h_l / p_l`` over ``Σ_l g_l / p_l``. The best ranking takes a row's rarest labels
    first whatever A and B are, so h and g are counted once and every (A, B) costs two dot products.

    Parameters
    ----------
    Y_true : (n_rows, n_labels) binary matrix
        The observed test labels.
    predictions : mapping of model names to TopK
        What each model predicted for these rows, at least k labels a row.
    label_counts : (n_labels,) integers
        Training rows of each label.
    n_samples : int
        Training rows.
    reference : (float, float)
        The (A, B) that would have been used.
    a, b : arrays
        The grid to look at, positive and ascending.

    Examples
    --------
    >>> Y = np.array([[1, 0, 0], [0, 1, 1]])
    >>> top = {"head": np.array([[0], [0]]), "tail": np.array([[1], [2]])}
    >>> propensity_sensitivity(Y, top, [50, 20, 1], 100, k=1).winner
    'tail'
    """
    a, b = _check_grid("a", a), _check_grid("b", b)
    k = int(check_number("k", k, integer=True, low=1))
    for name, value in zip(("A", "B"), reference, strict=True):
        check_number(f"reference {name}", value, low=0, open_low=True)
    if not predictions:
        raise InvalidInput("predictions is empty; pass at least one model's predict_topk")
    counts = np.asarray(label_counts)
    models = list(predictions)
    batches = [Batch(Y_true, top, None, k) for top in predictions.values()]
    Y = batches[0].Y
    if counts.shape != (Y.shape[1],):
        raise InvalidInput(f"label_counts has shape {counts.shape} but Y_true has {Y.shape[1]:,} columns")
    hits = [hit_matrix(batch, k) for batch in batches]
    found = np.stack([np.bincount(h.indices, minlength=Y.shape[1]) for h in hits])
    best = rarest_of_rows(Y, counts, k)

    def inverse(a_value: float, b_value: float) -> np.ndarray:
        return jain_inverse(counts, n_samples, a_value, b_value)

    def psp(a_value: float, b_value: float) -> np.ndarray:
        weights = inverse(a_value, b_value)
        return 100 * (found @ weights) / max(float(best @ weights), 1e-300)

    values = np.stack([np.stack([psp(x, y) for y in b], axis=-1) for x in a], axis=1)
    leads = np.array([[_lead(hits, best, inverse(x, y)) for y in b] for x in a])
    lead, error = _lead(hits, best, inverse(*reference))
    winner = int(psp(*reference).argmax())
    return Sensitivity(
        models,
        a,
        b,
        values,
        values.argmax(axis=0),
        leads[..., 0] > _SURE * leads[..., 1],
        (float(reference[0]), float(reference[1])),
        models[winner],
        lead,
        error,
        _stays(lambda x: psp(x, reference[1]).argmax() == winner, reference[0], a),
        _stays(lambda x: psp(reference[0], x).argmax() == winner, reference[1], b),
    )


def hit_matrix(batch: Batch, k: int) -> sparse.csr_array:
    """(n_rows, n_labels): ones where one of the first k labels is right."""
    rows, places = np.nonzero(batch.hits[:, :k])
    return sparse.csr_array((np.ones(len(rows)), (rows, batch.labels[rows, places])), shape=batch.Y.shape)


def rarest_of_rows(Y: sparse.csr_array, counts: np.ndarray, k: int) -> np.ndarray:
    """(n_labels,) how often a label is among the k rarest of a row: what the best ranking puts first."""
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    order = np.lexsort((Y.indices, counts[Y.indices], rows))
    place = np.arange(Y.nnz) - Y.indptr[rows]
    return np.bincount(Y.indices[order][place < k], minlength=Y.shape[1]).astype(np.float64)


def _lead(hits: list[sparse.csr_array], best: np.ndarray, inverse: np.ndarray) -> tuple[float, float]:
    """Lead of the best model over the second, in points, and its standard error over rows."""
    if len(hits) < 2:
        return 0.0, 0.0
    gains = np.stack([h @ inverse for h in hits])
    first, second = np.argsort(-gains.sum(axis=1), kind="stable")[:2]
    difference = gains[first] - gains[second]
    scale = 100 / max(float(best @ inverse), 1e-300)
    return float(scale * difference.sum()), float(scale * difference.std() * np.sqrt(len(difference)))


def _stays(holds: Any, start: float, grid: np.ndarray) -> tuple[float, float]:
    """The interval around ``start``, within the grid's ends, in which ``holds`` is true."""

    def walk(end: float) -> float:
        last = start
        for value in np.geomspace(start, end, _FINE):
            if not holds(float(value)):
                break
            last = float(value)
        else:
            last = end
        return last

    return walk(min(float(grid[0]), start)), walk(max(float(grid[-1]), start))


def _span(limits: tuple[float, float], grid: np.ndarray) -> str:
    low = "≤ " if limits[0] <= grid[0] else ""
    high = "≥ " if limits[1] >= grid[-1] else ""
    return f"[{low}{limits[0]:.3g}, {high}{limits[1]:.3g}]"


def _check_grid(name: str, values: Any) -> np.ndarray:
    grid = np.asarray(values, np.float64)
    if grid.ndim != 1 or grid.size == 0 or not (grid > 0).all() or (np.diff(grid) <= 0).any():
        raise InvalidInput(f"{name}={values!r} must be positive numbers in ascending order")
    return grid
