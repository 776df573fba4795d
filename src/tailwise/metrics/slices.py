"""Head, torso and tail: labels by their training frequency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tailwise.errors import InvalidInput

DEFAULT_SLICES = "counts"
COUNT_THRESHOLDS = (20, 100)
QUANTILES = (0.33, 0.66)
N_DECILES = 10
UNSEEN = "unseen"
"""The slice of labels without training rows, which also belong to the tail."""


def label_slices(label_counts: Any, slices: Any = DEFAULT_SLICES) -> dict[str, np.ndarray]:
    """Which labels belong to each slice: name → (n_labels,) bool.

    Parameters
    ----------
    label_counts : array of shape (n_labels,)
        How many *training* rows carry each label.
    slices : "counts", "quantiles", "deciles", (low, high), or a mapping of names to boolean masks
        "counts" (the default): head has 100 training rows or more, torso 20 to 99, tail fewer than 20, so that a
        slice means the same on every dataset. "quantiles": head lies above the 66 % quantile of the frequencies
        of the labels seen in training, torso above the 33 % quantile, tail is the rest; about a third of the
        labels each, whatever the dataset. ``(low, high)``: head has at least high rows, tail fewer than low.
        Labels never seen in training are tail. "deciles": ``decile1`` holds the most frequent tenth of the labels
        seen in training, ``decile10`` the rarest; labels never seen are in none.

    Examples
    --------
    >>> {name: mask.tolist() for name, mask in label_slices([100, 99, 3]).items()}
    {'head': [True, False, False], 'torso': [False, True, False], 'tail': [False, False, True]}
    >>> label_slices([0, 7, 5], "deciles")["decile1"]
    array([False,  True, False])
    """
    if isinstance(slices, Mapping):
        return {str(name): _check_mask(name, mask, label_counts) for name, mask in slices.items()}
    if label_counts is None:
        raise InvalidInput(
            "slices need label_counts, the number of training rows of each label; pass "
            "label_counts=model.label_counts_ or a propensity that was fitted on the training labels"
        )
    counts = np.asarray(label_counts)
    if counts.ndim != 1 or not np.issubdtype(counts.dtype, np.number):
        raise InvalidInput(f"label_counts has shape {counts.shape} and dtype {counts.dtype}; pass one number a label")
    if isinstance(slices, str) and slices == "deciles":
        return _deciles(counts)
    if isinstance(slices, str) and slices == "counts":
        low, high = COUNT_THRESHOLDS
        head, above_tail = counts >= high, counts >= low
    elif isinstance(slices, str) and slices == "quantiles":
        seen = counts[counts > 0]
        low, high = np.quantile(seen, QUANTILES) if seen.size else (0, 0)
        head, above_tail = counts > high, counts > low
    elif _is_pair(slices):
        low, high = slices
        head, above_tail = counts >= high, counts >= low
    else:
        raise InvalidInput(
            f"slices={slices!r}; pass 'counts', 'quantiles', 'deciles', a pair of frequencies low <= high, "
            "or a mapping of names to masks"
        )
    return {"head": head, "torso": above_tail & ~head, "tail": ~above_tail}


def _deciles(counts: np.ndarray) -> dict[str, np.ndarray]:
    order = np.argsort(-counts, kind="stable")
    seen = order[counts[order] > 0]
    decile = np.zeros(counts.size, np.int64)
    decile[seen] = 1 + np.arange(seen.size) * N_DECILES // max(seen.size, 1)
    return {f"decile{d}": decile == d for d in range(1, N_DECILES + 1)}


def _is_pair(slices: Any) -> bool:
    try:
        low, high = slices
        return not isinstance(slices, str) and bool(0 <= low <= high)
    except (TypeError, ValueError):
        return False


def _check_mask(name: Any, mask: Any, label_counts: Any) -> np.ndarray:
    mask = np.asarray(mask)
    if mask.ndim != 1 or mask.dtype != bool:
        raise InvalidInput(f"slices[{name!r}] has shape {mask.shape} and dtype {mask.dtype}; pass one bool a label")
    return mask
