"""SampledSoftmax: a linear network trained on drawn negatives, whose weighting decides between head and tail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from tailwise.embedding.model import TwoTowerModel
from tailwise.embedding.sampling import SAMPLERS, WEIGHTINGS, Weighting, get_weighting, implicit_margin
from tailwise.errors import InvalidInput
from tailwise.losses.margins import MARGINS, Margin, get_margin, label_prior
from tailwise.parameters import Choice, Integer, OrFunction
from tailwise.validation import label_counts

if TYPE_CHECKING:
    from tailwise.embedding.run import TwoTowerRun


class SampledSoftmax(TwoTowerModel):
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

    _parameters = {
        "sampler": Choice(*SAMPLERS, None),
        "weighting": OrFunction(Choice(*WEIGHTINGS)),
        "loss": Choice(*MARGINS, "contrastive"),
        "n_negatives": Integer(low=1),
    }

    margin_: dict[str, Any]

    def __init__(
        self,
        sampler: str | None = "uniform",
        *,
        weighting: str | Weighting = "constant",
        loss: str = "softmax",
        n_negatives: int = 256,
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

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        if self.sampler is not None and self.loss not in ("softmax", "contrastive"):
            raise InvalidInput(
                f"loss={self.loss!r} sums over every label, but sampler={self.sampler!r} draws some; pass "
                f"sampler=None, or loss='softmax' with weighting=weights_for({self.loss!r}, {self.sampler!r}, prior)"
            )
        super()._fit(X, Y, weight)

    @property
    def on_sphere(self) -> bool:
        """Only with the contrastive loss, which is one of cosines."""
        return self.loss == "contrastive"

    def build_objective(self, Y: sparse.csr_array) -> Any:
        """The loss that the parameters name, on drawn labels or on all of them."""
        from tailwise.embedding.negatives import SampledObjective, get_negatives
        from tailwise.embedding.objectives import FullObjective

        prior = label_prior(label_counts(Y))
        if self.sampler is None:
            return FullObjective(self._margin(prior))
        return SampledObjective(
            negatives=get_negatives(self.sampler, prior, self.n_negatives),
            weighting=get_weighting(self.weighting),
            contrastive=self.loss == "contrastive",
        )

    def _describe(self, run: TwoTowerRun) -> None:
        margin = self._margin(label_prior(label_counts(run.Y)))
        self.margin_ = {} if margin is None else {"name": margin.name, "tilt": margin.tilt, "favours": margin.favours}

    def _margin(self, prior: np.ndarray) -> Margin | None:
        """The margin that is minimised; None where there is none, or where it depends on the row."""
        if self.sampler is None:
            return None if self.loss == "contrastive" else get_margin(self.loss, prior)
        if SAMPLERS[self.sampler].distribution is None:
            return None
        return implicit_margin(self.sampler, self.weighting, prior, self.n_negatives)
