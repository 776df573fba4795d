"""PDSparse: one max-margin problem over all labels at once, sparse in its weights and in its dual variables."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.early_stopping import EarlyStopping, Parameters, split_off
from tailwise.linear.max_margin import MaxMargin
from tailwise.linear.model import LinearModel
from tailwise.metrics.names import METRIC
from tailwise.parallel import progress
from tailwise.parameters import Flag, Integer, Number
from tailwise.propensity import PropensityLike, resolve_propensity
from tailwise.ranges import Range, Ranges
from tailwise.scoring import predict_topk_linear
from tailwise.validation import as_rng, check_number


class PDSparse(LinearModel):
    """Every label of a row above every other label by a margin, with L1 and L2 penalties (Yen et al. 2016).

    ``min ½|W|² + l1 |W|₁ + C Σ_i max_{k∉y_i, l∈y_i} [1 + w_k·x_i - w_l·x_i]+``. The dual has a variable for each pair
    of a row and a label, of which few are not 0: block coordinate Frank–Wolfe visits a row's active labels only, and
    all labels are searched for new ones with the sparse weights. Unlike one-vs-rest models it ranks the labels of
    a row against each other; it has no bias. Scores are margins.

    Where rows have many labels the best weights by this loss rank badly, because only the worst pair of a row counts:
    then the first rounds are better than the last, and rows that are held out say which (as in the authors' code).

    Cost: a round searches once (non-zeros of the rows × weights a feature, on threads) and sweeps five times over
    active labels × non-zeros of their rows (on one thread, because each row changes what the next one sees).

    Parameters
    ----------
    C : float
        Weight of the loss against the penalties.
    l1 : float
        Strength of the L1 penalty: larger gives sparser weights.
    tol : float
        Stop when the duality gap is at most this share of the objective.
    max_rounds : int
        Stop after so many rounds in any case.
    early_stopping : bool
        Hold out ``validation_fraction`` of the rows (at most 5,000), stop after ``patience`` rounds without a better
        ``metric``, and keep the best round's weights. False trains on every row until ``tol`` or ``max_rounds``.
    metric : str
        Any name that :func:`tailwise.evaluate` knows.
    patience, validation_fraction : int, float
        Of early stopping, see above.
    propensity : Propensity, array or None
        For metrics that begin with "ps"; None is ``JainPropensity()``.
    normalize : bool
        Scale rows to unit length, in training and in prediction.
    random_state : int, Generator or None
        Seeds the order of rows, and which are held out.
    n_jobs : int or None
        Threads; None uses every core. The fitted bits do not depend on it.

    Attributes
    ----------
    weights_ : csr_array (n_features, n_labels)
        float32.
    bias_ : ndarray (n_labels,)
        0; -inf for a label without rows, which is never predicted.
    gap_ : float
        The duality gap of the weights as a share of the objective: how far from the best they can be.
    n_rounds_, best_round_ : int
        Rounds that were made, and the one whose weights were kept.

    Examples
    --------
    >>> model = PDSparse().fit([[1.0, 0], [0, 1.0], [0, 0.9]], [[1, 0], [0, 1], [0, 1]])
    >>> model.predict_topk([[0.2, 0.8]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {
        "C": Number(low=0, open_low=True),
        "l1": Number(low=0),
        "tol": Number(low=0, open_low=True),
        "max_rounds": Integer(low=1),
        "early_stopping": Flag(),
        "metric": METRIC,
        "patience": Integer(low=1),
        "validation_fraction": Number(low=0, high=1, open_low=True, open_high=True),
        "propensity": PropensityLike(),
    }

    gap_: float
    n_rounds_: int
    best_round_: int

    def __init__(
        self,
        C: float = 3.0,
        *,
        l1: float = 0.1,
        tol: float = 0.005,
        max_rounds: int = 50,
        early_stopping: bool = True,
        metric: str = "ndcg@5",
        patience: int = 3,
        validation_fraction: float = 0.1,
        propensity: Any = None,
        normalize: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.l1 = l1
        self.tol = tol
        self.max_rounds = max_rounds
        self.early_stopping = early_stopping
        self.metric = metric
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.propensity = propensity
        self.normalize = normalize
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"C": Range.around(self.C, 16)}

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        rng = as_rng(self.random_state)
        fraction = self.validation_fraction if self.early_stopping else 0.0
        propensity = resolve_propensity(self.propensity, Y) if self.early_stopping else None
        rows, held_out = split_off(X, Y, fraction, rng, metric=self.metric, propensity=propensity)
        C = np.full(rows.size, float(self.C)) if weight is None else self.C * weight[rows]
        problem = MaxMargin(X[rows], Y[rows], C=C, l1=self.l1, rng=rng, n_jobs=self.n_jobs)

        def measure(found: Parameters) -> float:
            return held_out.measure(
                lambda X, k: predict_topk_linear(X, found["weights"], problem.bias, k, n_jobs=self.n_jobs)
            )

        stopping = EarlyStopping(self.metric, patience=self.patience, measure=measure if held_out.Y.shape[0] else None)
        with progress(f"Training {type(self).__name__}", self.max_rounds) as advance:
            found, bounds = problem.search()
            stopping.keep(0, {"weights": problem.weights, "gap": bounds.gap})
            while bounds.gap > self.tol and stopping.epoch < self.max_rounds and not stopping.should_stop:
                problem.improve(found)
                found, bounds = problem.search()
                stopping.judge(stopping.epoch + 1, {"weights": problem.weights, "gap": bounds.gap})
                advance(note=f"gap {bounds.gap:.2g}")
        self.n_rounds_, self.best_round_ = stopping.epoch, stopping.best_epoch
        self.weights_, self.bias_, self.gap_ = stopping.best["weights"], problem.bias, stopping.best["gap"]

    def _check_state(self) -> None:
        super()._check_state()
        check_number("gap_", self.gap_)
        check_number("n_rounds_", self.n_rounds_, integer=True, low=0)
        check_number("best_round_", self.best_round_, integer=True, low=0, high=self.n_rounds_)
