"""Weight norms against label frequency: why linear models under-score rare labels, before and after a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailwise.base import XMCModel
from tailwise.errors import import_extra


def classifier_norms(model: XMCModel) -> np.ndarray:
    """Euclidean norm of each label's weight vector: (n_labels,) float64, 0 for labels without weights.

    Works for every model that has :meth:`~tailwise.XMCModel.label_weights`; of label trees, the classifiers that end
    in labels, the mean over the trees.

    >>> from tailwise import Centroid
    >>> classifier_norms(Centroid().fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 0]]))
    array([1., 0.])
    """
    weights = model.label_weights()
    label = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    return np.sqrt(np.bincount(label, weights.data.astype(np.float64) ** 2, minlength=weights.shape[0]))


def plot_classifier_norms(models: dict[str, XMCModel], ax: Any = None, n_bins: int = 20) -> Any:
    """Mean norm by label frequency for each named model, in bins of equally many labels. Returns the axes."""
    plt = import_extra("matplotlib.pyplot", "report", "plot_classifier_norms")
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
