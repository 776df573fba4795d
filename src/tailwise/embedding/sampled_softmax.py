"""SampledSoftmax: a linear network trained on drawn negatives, whose weighting decides between head and tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from tailwise.embedding.label_loss import LabelLoss
from tailwise.embedding.model import TwoTowerModel
from tailwise.embedding.sampling import Weighting
from tailwise.parameters import Choice
from tailwise.ranges import Range, Ranges

if TYPE_CHECKING:
    from tailwise.embedding.run import TwoTowerRun


class SampledSoftmax(LabelLoss, TwoTowerModel):
    """Learn from each label of each row against ``n_negatives`` drawn labels.

    A row with t labels becomes t examples (x, y). ``m`` negatives are drawn from q and weighted by w:
    ``ℓ = ln(1 + Σ_{y' in N} w_yy' e^(f_y' - f_y))``. This minimises the softmax with margins ``ρ_yy' = m q_y' w_yy'``
    (Lemma 2 of "Disentangling Labeling and Sampling Bias for Learning in Large-output Spaces"), so the pair
    (sampler, weighting) decides whether frequent or rare labels gain: see :func:`implicit_margin`, and
    :func:`weights_for` for the weighting that gives a wanted ρ.

    Needs the extra ``neural`` for training; predicting uses plain arrays. A batch costs
    ``O(nnz · dim + B · m · dim)``; with ``sampler="model"`` or None it scores every label.

    Parameters
    ----------
    sampler : {"uniform", "within_batch", "model", None}
        Where negatives come from: all labels alike; the labels of the batch's other rows (their share is π); the
        softmax of the row's current scores. None sums over every label.
    weighting : {"constant", "importance", "relative", "tail"} or callable
        1/m; 1/(m q_y'); q_y/q_y'; π_y'/(m q_y' π_y); or a function of a :class:`~tailwise.embedding.Draw`. A model
        with a callable cannot be saved.
    loss : {"softmax", "contrastive", "adaptive", "equalised", "logit_adjusted"}
        ``"contrastive"`` is ``(1 - f_y)² + Σ w_yy' [f_y']+²`` on cosines. The last three are softmaxes with the margins
        ``π_y^(-1/4)``, ``π_y'`` and ``π_y'/π_y`` over every label: they want ``sampler=None``.
    n_negatives : int
        m.
    start : {"rows", "random"}
        Where label vectors start: at the mean of their rows' first vectors, so that the untrained network ranks by
        nearest mean, which helps labels that few steps touch; or in random directions, as the paper's do. The sampling
        experiments start at random: a start at the rows hides what samplers and weightings do to rare labels.
    dim : int
        Length of the vectors: the width of the one hidden layer.
    hidden : int, sequence of int or None
        Widths of further layers before it.
    activation : {"linear", "relu"}
        After each hidden layer, or after the only layer.
    input_keep_probability : float
        With what probability each feature of a row stays in a batch; those that stay are divided by it. 1 keeps all.
    batch_size : int
        Rows a batch, at most: small data sets take fewer (but 64), so that an epoch has 16 batches.
    epochs, learning_rate
        Of Adam, with a cosine schedule to zero over ``epochs``.
    early_stopping, metric, patience, validation_fraction, propensity, index, checkpoint, device
        As in :class:`GLaS`.
    random_state : int, Generator or None
    n_jobs : int or None
        Threads; None uses every core. The weights have the same bits for every number.

    Attributes
    ----------
    tower_, index_, history_, best_epoch_
        As in :class:`GLaS`.
    margin_ : dict
        What the pair minimises: ``"name"``, ``"tilt"`` and ``"favours"`` ("head", "tail" or "-"); empty where ρ depends
        on the row.

    Examples
    --------
    >>> model = SampledSoftmax(dim=8, epochs=40, n_negatives=4, early_stopping=False, random_state=0)
    >>> model.fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 1]]).predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    _parameters = {"start": Choice("rows", "random")}

    margin_: dict[str, Any]

    def __init__(
        self,
        sampler: str | None = "uniform",
        *,
        weighting: str | Weighting = "constant",
        loss: str = "softmax",
        n_negatives: int = 256,
        start: str = "rows",
        dim: int = 512,
        hidden: Any = None,
        activation: str = "linear",
        input_keep_probability: float = 1.0,
        batch_size: int = 1024,
        epochs: int = 20,
        learning_rate: float = 0.02,
        early_stopping: bool = True,
        metric: str = "psp@5",
        patience: int = 3,
        validation_fraction: float = 0.05,
        propensity: Any = None,
        index: Any = None,
        checkpoint: str | None = None,
        device: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.sampler = sampler
        self.weighting = weighting
        self.loss = loss
        self.n_negatives = n_negatives
        self.start = start
        self.dim = dim
        self.hidden = hidden
        self.activation = activation
        self.input_keep_probability = input_keep_probability
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.early_stopping = early_stopping
        self.metric = metric
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.propensity = propensity
        self.index = index
        self.checkpoint = checkpoint
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _ranges(self) -> Ranges:
        return {"learning_rate": Range.around(self.learning_rate, 4)}

    @property
    def starts_at_rows(self) -> bool:
        """Whether label vectors start at the means of their rows."""
        return self.start == "rows"

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        self._check_loss()
        super()._fit(X, Y, weight)

    def _describe(self, run: TwoTowerRun) -> None:
        self.margin_ = self._describe_margin(run.Y)
