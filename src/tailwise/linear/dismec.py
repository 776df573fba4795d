"""DiSMEC and its propensity-weighted form: L2-regularised linear models, one a label, pruned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.explanation import Explanation
from tailwise.kernels.solvers.problems import (
    BYTES_A_VALUE,
    NO_START,
    FarRows,
    Labels,
    Options,
    Rows,
    Standing,
    Start,
    Weights,
)
from tailwise.kernels.solvers.solve import DEFAULT_C, DEFAULT_DECAY, costs_by_rows, solve_block
from tailwise.linear.one_vs_rest import OneVsRest
from tailwise.memory import free_memory, memory_apart
from tailwise.parallel import count_jobs
from tailwise.parameters import Choice, Number, OrNone
from tailwise.propensity import WEIGHTING, PropensityLike, propensity_weights, resolve_propensity
from tailwise.propensity.models import check_kept_propensity
from tailwise.runs import kept

_LARGE = 1 << 27
"""Rows of fewer bytes are taken as if they were in memory."""
_LABELS_A_PASS = 512
"""Solved together where rows are on disk: a pass over the rows then serves them all."""


class DiSMEC(OneVsRest):
    """One L2-regularised linear classifier a label, all other rows as negatives, small weights dropped.

    For each label ``min ½|w|² + ½(b + 1)²/s² + C Σ_i c_i loss(z_i (w·x_i + b))``, z = ±1, ``c = positive_weight`` on
    rows with the label and 1 on others, and s = ``bias_scale`` (Babbar & Schölkopf 2017). The bias is drawn to -1
    ("not this label") where LIBLINEAR draws it to 0: negatives that look like no positive then cost nothing.
    With the logistic loss it is drawn to the log-odds of the label's frequency and scores are probabilities; with the
    hinge losses scores are margins.

    Cost: about three scans of X for every sixteen labels, plus descent over each label's support vectors.

    Parameters
    ----------
    C : float or None
        Weight of the loss against the penalty (LIBLINEAR's C) for a label that one row carries. None is 1 for the hinge
        losses and 16 for the logistic loss; ``C_`` tells what was used.
    C_decay : float or None
        A label that n rows carry has ``C · n^-C_decay``: more rows have more noise to fit. 0 gives all the same C; None
        is 0.2 for the squared hinge and 0 for the other losses.
    loss : {"squared_hinge", "hinge", "logistic"}
        The loss of a margin s: ``max(0, 1 - s)²``, ``max(0, 1 - s)`` or ``ln(1 + exp(-s))``.
    prune : float
        Weights of smaller magnitude are dropped.
    positive_weight : float or array of n_labels
        Factor on C for the rows that carry the label.
    normalize : bool
        Scale rows to unit length, in training and in prediction.
    bias_scale : float
        How freely the bias moves: 0 fixes it, a large value leaves it without penalty.
    tol : float
        Accuracy: the largest error of a dual gradient, as LIBLINEAR's ``-e``.
    random_state : int, Generator or None
        Seeds the order of coordinates.
    n_jobs : int or None
        Threads; None uses every core. The fitted bits do not depend on it.

    Examples
    --------
    >>> model = DiSMEC().fit([[1.0, 0], [0, 1.0], [0, 0.9]], [[1, 0], [0, 1], [0, 1]])
    >>> model.predict_topk([[0.2, 0.8]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {
        "C": OrNone(Number(low=0, open_low=True)),
        "loss": Choice(*DEFAULT_C),
        "C_decay": OrNone(Number(low=0)),
        "bias_scale": Number(low=0),
    }

    def __init__(
        self,
        C: float | None = None,
        *,
        C_decay: float | None = None,
        loss: str = "squared_hinge",
        prune: float = 0.01,
        positive_weight: Any = 1.0,
        normalize: bool = True,
        bias_scale: float = 1.0,
        tol: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.C_decay = C_decay
        self.loss = loss
        self.prune = prune
        self.positive_weight = positive_weight
        self.normalize = normalize
        self.bias_scale = bias_scale
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def scores_are_probabilities(self) -> bool:  # type: ignore[override]
        """True with the logistic loss."""
        return self.loss == "logistic"

    def _cost(self) -> float:
        return DEFAULT_C[self.loss] if self.C is None else self.C

    def _prepare(self, rows: Rows) -> int | None:
        """The memory of a thread where rows stay on disk; None where they are in memory."""
        if BYTES_A_VALUE * rows.data.size < _LARGE:
            return None
        n_jobs = count_jobs(self.n_jobs)
        memory = memory_apart(rows, n_jobs)
        # Blocks of labels follow from it, and processes of a run may have other memories.
        if not kept(lambda: memory is not None):
            return None
        return memory or (free_memory() or _LARGE) // n_jobs

    def _blocks(self, labels: np.ndarray, costs: np.ndarray, prepared: int | None) -> list[np.ndarray]:
        if prepared is None:
            return super()._blocks(labels, costs, prepared)
        return [labels[start : start + _LABELS_A_PASS] for start in range(0, labels.size, _LABELS_A_PASS)]

    def _solve(self, rows: Rows, labels: Labels, seed: int, prepared: Any, start: Start | Standing) -> Weights:
        if self.loss == "logistic":
            start = NO_START  # it begins anew whatever there was, and then needs all of its rounds
        labels = costs_by_rows(rows, labels, DEFAULT_DECAY[self.loss] if self.C_decay is None else self.C_decay)
        options = Options(
            loss=self.loss,
            tol=self.tol,
            bias_scale=self.bias_scale,
            prune=self.prune,
            seed=seed,
            **self._effort(start),
        )
        if prepared is None:
            return solve_block(rows, labels, options, start)
        return solve_block(FarRows(rows, rows.indptr[:-1], prepared), labels, options, start)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        top = super()._predict_topk(X, k)
        if self.loss != "logistic":
            return top
        scores = np.where(top.labels >= 0, _sigmoid(top.scores.astype(np.float64)), -np.inf)
        return TopK(top.labels, scores.astype(np.float32))

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        margin = super()._explain(x, label)
        if self.loss != "logistic" or np.isneginf(margin.score):
            return margin
        return margin.then("probability 1/(1 + e^-s) of the log-odds s", float(_sigmoid(margin.score)))


def _sigmoid(logits: Any) -> Any:
    return 1 / (1 + np.exp(-logits))


class PWDiSMEC(DiSMEC):
    """DiSMEC for incomplete labels: an observed positive of propensity p weighs more (Qaraei et al. 2021).

    ``weighting`` says how much: "convex" is ``2/p - 1``, the convex bound of the unbiased 0-1 loss (with p = 1 this is
    DiSMEC); "tail" is ``1/p - 1``, which the paper found best for rare labels, and which leaves frequent ones next to
    no weight; "mild" is its square root, which keeps most of the gain and of the precision; "steep" is
    ``(1/p - 1)^1.5``, which trades precision for rare labels at the top of the list (PSP@1). The paper writes ``|w|²``
    where DiSMEC writes ``½|w|²``: its setting is ``C = 0.5, C_decay = 0, weighting = "tail"``.

    Parameters
    ----------
    weighting : {"mild", "tail", "convex", "steep", "none"} or callable
        From the propensities (n_labels,) to the weights of the positives.
    propensity : Propensity, array of n_labels or None
        None is ``JainPropensity()``; an estimator is fitted on the training labels.
    C, C_decay, loss, prune, positive_weight, normalize, bias_scale, tol, random_state, n_jobs
        As in :class:`DiSMEC`; ``positive_weight`` multiplies.

    Examples
    --------
    >>> model = PWDiSMEC(propensity=[0.5, 0.9]).fit([[1.0, 0], [0, 1.0], [0, 0.9]], [[1, 0], [0, 1], [0, 1]])
    >>> model.propensity_
    array([0.5, 0.9])
    """

    _parameters = {"weighting": WEIGHTING, "propensity": PropensityLike()}

    def __init__(
        self,
        C: float | None = None,
        *,
        C_decay: float | None = None,
        weighting: str | Callable[[np.ndarray], np.ndarray] = "mild",
        propensity: Any = None,
        loss: str = "squared_hinge",
        prune: float = 0.01,
        positive_weight: Any = 1.0,
        normalize: bool = True,
        bias_scale: float = 1.0,
        tol: float = 0.1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            C,
            C_decay=C_decay,
            loss=loss,
            prune=prune,
            positive_weight=positive_weight,
            normalize=normalize,
            bias_scale=bias_scale,
            tol=tol,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.weighting = weighting
        self.propensity = propensity

    def _check_state(self) -> None:
        super()._check_state()
        check_kept_propensity(self.propensity_, self.n_labels_)

    def _positive_costs(self, Y: sparse.csr_array) -> np.ndarray:
        self.propensity_ = resolve_propensity(self.propensity, Y)
        return super()._positive_costs(Y) * propensity_weights(self.weighting, self.propensity_)
