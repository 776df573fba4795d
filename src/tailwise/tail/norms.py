"""Weight norms against label frequency: why linear models under-score rare labels, before and after a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailwise.base import XMCModel
from tailwise.errors import InvalidInput


def classifier_norms(model: XMCModel) -> np.ndarray:
    """Euclidean norm of each label's weight vector: (n_labels,) float64, 0 for labels without weights.

    Works for models that keep ``weights_`` (n_features, n_labels), and through wrappers, whose ``base_`` is asked.

    >>> from tailwise import Centroid
    >>> classifier_norms(Centroid().fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 0]]))
    array([1., 0.])
    """
    weights = getattr(model, "weights_", None)
    if weights is not None and getattr(weights, "shape", ())[-1:] == (model.n_labels_,):
        squares = np.bincount(weights.indices, weights=weights.data.astype(np.float64) ** 2, minlength=weights.shape[1])
        return np.sqrt(squares)
    if getattr(model, "base_", None) is not None:
        return classifier_norms(model.base_)
    if getattr(model, "tail_", None) is not None:
        norms = np.zeros(model.n_labels_)
        for part, labels in ((model.head_, model.head_labels_), (model.tail_, model.tail_labels_)):
            if part is not None:
                norms[labels] = classifier_norms(part)
        return norms
    raise InvalidInput(
        f"{type(model).__name__} has no linear weights by label; "
        "classifier_norms works for one-vs-rest models such as DiSMEC"
    )


def plot_classifier_norms(models: dict[str, XMCModel], ax: Any = None, n_bins: int = 20) -> Any:
    """Mean norm by label frequency for each named model, in bins of equally many labels. Returns the axes."""
    import matplotlib.pyplot as plt

    ax = ax or plt.subplots(figsize=(5, 4), layout="constrained")[1]
    for name, model in models.items():
        norms = classifier_norms(model)
        seen = np.flatnonzero(model.label_counts_)
        bins = np.array_split(seen[np.argsort(model.label_counts_[seen], kind="stable")], n_bins)
        groups = [b for b in bins if b.size]
        ax.plot(
            [model.label_counts_[b].mean() for b in groups], [norms[b].mean() for b in groups], marker="o", label=name
        )
    ax.set_xscale("log")
    ax.set_xlabel("training rows of a label")
    ax.set_ylabel("mean norm of its weights")
    ax.legend()
    return ax
