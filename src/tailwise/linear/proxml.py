"""ProXML: L1-regularised linear models, one a label, that stay sparse by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.kernels.solvers.problems import Labels, Options, Rows, Standing, Start, Weights
from tailwise.kernels.solvers.solve import solve_l1_block
from tailwise.kernels.sparse.columns import Columns, to_columns
from tailwise.linear.one_vs_rest import OneVsRest
from tailwise.propensity import WEIGHTING, PropensityLike, propensity_weights, resolve_propensity
from tailwise.propensity.models import check_kept_propensity


class ProXML(OneVsRest):
    """One L1-regularised squared-hinge classifier a label.

    For each label ``min |w|₁ + |b + 1| + C Σ_i c_i max(0, 1 - z_i (w·x_i + b))²``, z = ±1, ``c_i`` the weight of a
    positive, 1 for a negative. L1 is the dual of robustness to a change of any one feature, which is what a
    label of a few rows needs (Babbar & Schölkopf 2019). Its authors weigh all rows alike, and so does the default;
    ``weighting="tail"`` finds more rare labels. Scores are margins.

    Cost: for each label about ten passes over the columns of its features in use, which are few.

    Parameters
    ----------
    C : float
        Weight of the loss against the penalty.
    weighting : {"none", "mild", "tail", "convex", "steep"} or callable
        Weight of a positive of propensity p: 1, ``(1/p - 1)^0.5``, ``1/p - 1``, ``2/p - 1``, ``(1/p - 1)^1.5``, or a
        function of all p.
    propensity : Propensity, array of n_labels or None
        None is ``JainPropensity()``; an estimator is fitted on the training labels.
    prune, positive_weight, normalize, tol, random_state, n_jobs
        As in :class:`DiSMEC`; ``tol`` is in units of the penalty, what L1 leaves is kept by default.

    Examples
    --------
    >>> model = ProXML(C=10).fit([[1.0, 0], [0, 1.0], [0, 0.9]], [[1, 0], [0, 1], [0, 1]])
    >>> model.predict_topk([[0.2, 0.8]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {"weighting": WEIGHTING, "propensity": PropensityLike()}
    # Small blocks: a frequent label takes long, and Ctrl-C waits for the block.
    _labels_a_block = 16

    def __init__(
        self,
        C: float = 1.0,
        *,
        weighting: str | Callable[[np.ndarray], np.ndarray] = "none",
        propensity: Any = None,
        prune: float = 0.0,
        positive_weight: Any = 1.0,
        normalize: bool = True,
        tol: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.weighting = weighting
        self.propensity = propensity
        self.prune = prune
        self.positive_weight = positive_weight
        self.normalize = normalize
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _check_state(self) -> None:
        super()._check_state()
        check_kept_propensity(self.propensity_, self.n_labels_)

    def _positive_costs(self, Y: sparse.csr_array) -> np.ndarray:
        self.propensity_ = resolve_propensity(self.propensity, Y)
        return super()._positive_costs(Y) * propensity_weights(self.weighting, self.propensity_)

    def _prepare(self, rows: Rows) -> Columns:
        return to_columns(rows, rows.features.size)

    def _solve(self, rows: Rows, labels: Labels, seed: int, prepared: Any, start: Start | Standing) -> Weights:
        assert not isinstance(start, Standing)  # its solver has no dual
        options = Options(tol=self.tol, prune=self.prune, seed=seed, **self._effort(start))
        return solve_l1_block(rows, prepared, labels, options, start)
