"""RankNet: residual blocks that lift rare labels in any model's ranking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.changes import Change
from tailwise.errors import InvalidInput
from tailwise.explanation import Explanation, Part, not_ranked
from tailwise.kernels.arrays import frozen
from tailwise.kernels.networks.ranknet import Layers, TrainingCandidates, TrainingOptions, apply_blocks, train_epoch
from tailwise.parallel import map_blocks, progress, row_blocks
from tailwise.parameters import Choice, Flag, Integer, Number, OrNone
from tailwise.persistence.checks import check_exact, check_finite, check_kind, check_range
from tailwise.propensity import PropensityLike, resolve_propensity
from tailwise.ranges import Range, Ranges
from tailwise.runs import share
from tailwise.tail.calibrated import Curve, fit_curve
from tailwise.tail.candidates import is_hit
from tailwise.tail.folds import N_FOLDS, out_of_fold, split_folds
from tailwise.tail.linear_block import as_matrix, check_size, rank_by_linear_block, train_linear_block
from tailwise.tail.ranking import N_CANDIDATES, rank_candidates
from tailwise.tail.wrapper import Wrapper, as_probabilities
from tailwise.validation import as_rng

_ROWS_A_BLOCK = 512
AS_PUBLISHED: dict[str, Any] = {
    "bottleneck": None,
    "tail": 0.0,
    "pairs": "sum",
    "scores": "train",
    "calibrate": False,
}
"""What the paper says of its first form."""
UNSTATED: dict[str, Any] = {
    "margin": 0.0,
    "balance": 0.01,
    "n_negatives": 300,
    "epochs": 6,
    "learning_rate": 0.003,
    "n_candidates": 50,
}
"""What it does not: chosen on validation rows of EURLex-4K (``python -m benchmarks ranknet_linear``)."""


class RankNet(Wrapper):
    """Re-rank a model's best labels by a small residual network trained for the tail.

    A block adds a correction that is seen through a bottleneck: ``F = ŷ + W2 relu(W1 ŷ + b)``, and blocks stack. They
    start from W2 = 0, the order of ŷ: the wrapped model's calibrated probability times ``(1/p)^tail``. ``tail=1`` is
    the untrained simple form (:class:`PropensityReranker`), ``tail=0`` the wrapped model's own order. The
    blocks are trained on
    ``Σ_{i,j ∈ y} [(n_i - n_j)/(n_i + n_j) (F_i - F_j)]+ + λ Σ_{i ∈ y, k ∉ y} [F_k - F_i + c]+``: a rarer relevant
    label must outrank a more frequent one, and relevant labels must outrank irrelevant ones. Both sums are means over
    their pairs unless ``pairs="sum"``.

    The scores come from out-of-fold predictions: on its own training rows a model is far surer than on new ones,
    and a re-ranker trained there learns to trust it (``scores="train"`` shows that). Only candidates are read and
    written, so time does not depend on the number of labels; memory is 2 · blocks · n_labels · bottleneck floats,
    twice that while training.

    ``bottleneck=None`` is the paper's first form, one linear map ``F = ŷ + W ŷ`` from the candidates to *all* labels: a
    label that the wrapped model did not name is ranked where F is positive. Memory is n_labels² floats, twice that
    while training; more than 16,384 labels are refused. :meth:`as_published` has the paper's setting.

    Parameters
    ----------
    base : XMCModel
        The model to re-rank; it is cloned.
    tail : float
        Where the ranking starts, see above.
    propensity : Propensity, array or None
        For ``tail``; None is ``JainPropensity()``.
    blocks : int
        Number of blocks. Linear ones do not stack: two of them are one linear map again.
    bottleneck : int or None
        Width V of each block; None is one linear map without bottleneck and activation.
    margin, balance : float
        c and λ of the loss.
    pairs : {"mean", "sum"}
        Whether each sum of the loss is divided by its number of pairs, so that rows with many labels do not outweigh
        others; "sum" is the formula as the paper has it, where a pair counts in both orders.
    n_negatives : int
        Irrelevant candidates drawn for each row and epoch; without bottleneck drawn from all irrelevant labels.
    n_candidates : int
        Labels of the wrapped model that take part.
    epochs, learning_rate : int, float
        Passes over the rows, and Adagrad's step.
    scores : "out-of-fold" or "train"
        Which scores of the wrapped model to train on.
    calibrate : bool
        Whether ŷ is calibrated on these scores; otherwise it is the wrapped model's score on the scale [0, 1].
    n_folds : int
        Folds for out-of-fold scores.
    random_state : int, Generator or None
        Draws folds, start values, order of rows and negatives.
    n_jobs : int or None
        Threads for re-ranking, and of the wrapped model; None is every core, and leaves the wrapped model its own. The
        blocks are trained in sequence.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> X, Y = [[1.0, 0.1], [0.9, 0], [0.2, 1.0]] * 4, [[1, 0], [1, 0], [0, 1]] * 4
    >>> RankNet(Centroid(), epochs=2, random_state=0).fit(X, Y).predict_topk([[0.0, 1.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {
        "tail": Number(low=0),
        "propensity": PropensityLike(),
        "blocks": Integer(low=1),
        "bottleneck": OrNone(Integer(low=1)),
        "margin": Number(low=0),
        "balance": Number(low=0),
        "pairs": Choice("mean", "sum"),
        "n_negatives": Integer(low=1),
        "n_candidates": N_CANDIDATES,
        "epochs": Integer(low=1),
        "learning_rate": Number(low=0, open_low=True),
        "scores": Choice("out-of-fold", "train"),
        "calibrate": Flag(),
        "n_folds": N_FOLDS,
    }

    W1_: Any
    W2_: Any
    b1_: Any
    """the weights of blocks with a bottleneck, else None"""
    W_: np.ndarray | None = None
    """(n_labels, n_labels), from the label read to the label written, where there is no bottleneck"""
    curve_: Curve | None

    def __init__(
        self,
        base: XMCModel,
        *,
        tail: float = 1.0,
        propensity: object = None,
        blocks: int = 1,
        bottleneck: int | None = 16,
        margin: float = 0.02,
        balance: float = 2.0,
        pairs: str = "mean",
        n_negatives: int = 20,
        n_candidates: int = 50,
        epochs: int = 3,
        learning_rate: float = 0.0003,
        scores: str = "out-of-fold",
        calibrate: bool = True,
        n_folds: int = 3,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.base = base
        self.tail = tail
        self.propensity = propensity
        self.blocks = blocks
        self.bottleneck = bottleneck
        self.margin = margin
        self.balance = balance
        self.pairs = pairs
        self.n_negatives = n_negatives
        self.n_candidates = n_candidates
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.scores = scores
        self.calibrate = calibrate
        self.n_folds = n_folds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"tail": Range(0.0, 1.0, self.tail)}

    @classmethod
    def as_published(cls, base: XMCModel, **params: Any) -> Self:
        """As the paper defines it: one linear block on the wrapped model's own scores of its training rows.

        ``F = ŷ + W ŷ`` with W of n_labels × n_labels, the loss as sums over pairs, irrelevant labels drawn from all, no
        calibration and no propensities. The paper does not say c, λ, the rate, the number of passes and of draws;
        these were chosen on validation rows of EURLex-4K. ``params`` change any of it.

        >>> from tailwise import Centroid
        >>> RankNet.as_published(Centroid()).bottleneck is None
        True
        """
        return cls(base, **{**AS_PUBLISHED, **UNSTATED, **params})

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        if self.bottleneck is None:
            check_size(self.n_labels_)
            if self.blocks > 1:
                raise InvalidInput(
                    f"blocks={self.blocks} with bottleneck=None: linear blocks in a row are one linear block; "
                    "pass blocks=1, or a bottleneck"
                )
        rng = as_rng(self.random_state)
        gains = resolve_propensity(self.propensity, Y) ** -self.tail
        self.gains_ = (gains / gains.max()).astype(np.float32)
        width = min(self.n_candidates, self.n_labels_)
        with share(1.0 if self.scores == "train" else 1 / (self.n_folds + 1)):
            self.base_ = self._fresh_base().fit(X, Y, weight)
        if self.scores == "train":
            top = self.base_.predict_topk(X, width)
        else:
            folds = split_folds(Y, self.n_folds, rng)
            top = out_of_fold(self.base_, X, Y, width, folds, weight, knows_all=True)
        relevant, present = is_hit(top.labels, Y), top.labels >= 0
        counted = np.ones(X.shape[0]) if weight is None else weight
        each = np.broadcast_to(counted[:, None], present.shape)[present]
        scores = top.scores[present]
        self.curve_ = fit_curve(scores, relevant[present], "isotonic", each) if self.calibrate else None
        with progress("Training RankNet", total=self.epochs) as advance:
            if self.bottleneck is None:
                self.W1_ = self.W2_ = self.b1_ = None
                self.W_, self.losses_ = train_linear_block(
                    as_matrix(top.labels, self._inputs(top), self.n_labels_),
                    Y,
                    self.label_counts_.astype(np.float64),
                    counted.astype(np.float32),
                    self._options(),
                    self.epochs,
                    rng,
                    advance,
                )
            else:
                self.W_ = None
                self._train(top, relevant, counted.astype(np.float32), self.bottleneck, rng, advance)

    def _update(self, change: Change) -> int:
        # A label that the blocks have not seen is ranked by ŷ alone.
        gains = resolve_propensity(self.propensity, change.Y) ** -self.tail
        self.gains_ = (gains / gains.max()).astype(np.float32)
        if self.W_ is not None:
            check_size(self.n_labels_)
            self.W_ = np.pad(self.W_, (0, self.n_labels_ - self.W_.shape[0]))
        else:
            more = ((0, 0), (0, self.n_labels_ - self.W1_.shape[1]), (0, 0))
            self.W1_, self.W2_ = (np.pad(part, more) for part in (self.W1_, self.W2_))
        return self._update_base(change)

    def _inputs(self, top: TopK) -> np.ndarray:
        """ŷ of the candidates, in [0, 1]."""
        scores = as_probabilities(top.scores, self.base_) if self.curve_ is None else self.curve_(top.scores)
        return np.where(top.labels >= 0, scores * self.gains_[top.labels], np.float32(0))

    def _options(self) -> TrainingOptions:
        return TrainingOptions(
            float(self.learning_rate),
            float(self.margin),
            float(self.balance),
            int(self.n_negatives),
            self.pairs == "sum",
        )

    def _train(
        self,
        top: TopK,
        relevant: np.ndarray,
        weight: np.ndarray,
        width: int,
        rng: np.random.Generator,
        advance: Callable[..., None],
    ) -> None:
        shape = (self.blocks, self.n_labels_, width)
        scale = np.float32(1.0 / np.sqrt(width))
        W1 = rng.standard_normal(shape, dtype=np.float32) * scale
        layers = Layers(W1, np.zeros(shape, np.float32), np.zeros((self.blocks, width), np.float32))
        memories = Layers(*(np.full(part.shape, 1e-3, np.float32) for part in layers))
        counts = self.label_counts_.astype(np.float64)
        options = self._options()
        candidates = TrainingCandidates(top.labels, self._inputs(top), relevant, weight)
        state = rng.integers(2**63, size=1, dtype=np.uint64)
        self.losses_ = []
        for _ in range(self.epochs):
            order = rng.permutation(relevant.shape[0])
            loss = train_epoch(candidates, counts, order, state, layers, memories, options)
            self.losses_.append(float(loss))
            advance(note=f"loss {loss:.4f}")
        self.W1_, self.W2_, self.b1_ = layers

    def _check_state(self) -> None:
        super()._check_state()
        check_range("gains_", check_exact("gains_", self.gains_, np.float32, (self.n_labels_,)), 0, 1)
        if self.curve_ is not None:
            check_kind("curve_", self.curve_, Curve).check()
        if self.W_ is not None:
            check_finite("W_", check_exact("W_", self.W_, np.float32, (self.n_labels_, self.n_labels_)))
            return
        n_blocks, width = check_exact("b1_", self.b1_, np.float32, (None, None)).shape
        check_finite("b1_", self.b1_)
        for name, part in (("W1_", self.W1_), ("W2_", self.W2_)):
            check_finite(name, check_exact(name, part, np.float32, (n_blocks, self.n_labels_, width)))

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        width = min(self.n_candidates, self.n_labels_)
        if self.W_ is not None:
            top = self.base_.predict_topk(X, width)
            inputs = as_matrix(top.labels, self._inputs(top), self.n_labels_)
            return rank_by_linear_block(inputs, self.W_, k, self.n_jobs)
        top = self.base_.predict_topk(X, max(k, width))
        return rank_candidates(top.labels, self._rescore(top), self.n_candidates, k)

    def _rescore(self, top: TopK) -> np.ndarray:
        """F of the candidates, of which the blocks see the first ``n_candidates``; beyond them it is ŷ."""
        final = self._inputs(top)
        first = slice(None, self.n_candidates)
        labels, inputs = np.ascontiguousarray(top.labels[:, first]), np.ascontiguousarray(final[:, first])
        out, layers = np.empty(labels.shape, np.float32), frozen(Layers(self.W1_, self.W2_, self.b1_))

        def rerank(block: tuple[int, int]) -> None:
            apply_blocks(labels, inputs, block, layers, out)

        map_blocks(rerank, row_blocks(top.labels.shape[0], _ROWS_A_BLOCK), n_jobs=self.n_jobs)
        final[:, : self.n_candidates] = out
        return final

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        top = self.base_.predict_topk(x, min(self.n_candidates, self.n_labels_))
        (place,) = np.nonzero(top.labels[0] == label)
        inputs = self._inputs(top)
        start = float(inputs[0, place].sum())
        if self.W_ is not None:
            present = top.labels[0] >= 0
            correction = float(inputs[0, present] @ self.W_[top.labels[0, present], label])
        else:
            correction = float(self._rescore(top)[0, place].sum()) - start
        if not place.size and correction <= 0:
            return not_ranked(label, f"the wrapped model has it not among its {self.n_candidates} candidates")
        kind = "probability" if self.curve_ is None else "calibrated probability"
        of = self.base_.explain(x, label) if place.size else None
        parts = (Part(f"{kind} × (1/p)^tail", start, of=of), Part("correction by the blocks", correction))
        return Explanation(label, start + correction, parts)
