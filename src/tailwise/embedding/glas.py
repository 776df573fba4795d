"""GLaS: unit-sphere embeddings of rows and labels, with label vectors shaped by co-occurrence."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from tailwise.embedding.model import TwoTowerModel
from tailwise.losses.margins import label_prior
from tailwise.losses.regularizers import LABEL_REGULARIZERS, REGULARIZERS
from tailwise.parameters import Choice, Flag, Integer, Number
from tailwise.ranges import Range, Ranges
from tailwise.validation import label_counts

_EVERY_LABEL_BELOW = 4

AS_PUBLISHED: dict[str, Any] = {
    "dim": 1024,
    "hidden": None,
    "activation": "relu",
    "weight_normalization": True,
    "start": "random",
    "loss": "margin",
    "negatives": "all",
    "regularizer": "glas",
    "reg_weight": 10.0,
    "input_keep_probability": 0.8,
    "batch_size": 4096,
    "min_batches": 1,
    "epochs": 10,
    "early_stopping": True,
    "metric": "p@1",
}
"""What the paper states of its base setting (section 4), as parameters of :class:`GLaS`."""

UNSTATED: dict[str, Any] = {"margin": 0.3, "learning_rate": 0.02}
"""What the paper does not state and its setting needs; chosen on validation rows of EURLex-4K."""


class GLaS(TwoTowerModel):
    """Embed rows and labels on the unit sphere; regularise label vectors towards their co-occurrence (GLaS).

    ``h(x)_y = s · φ(x)·v_y`` with ``|φ(x)| = |v_y| = 1`` and a trainable scale s. Minimises the loss plus
    ``λ/B² ‖VVᵀ - U‖²_F`` over the labels of the batch, ``U = ½ (A Z⁻¹ + Z⁻¹ A)``, ``A = YᵀY``, ``Z = diag(A)``
    ("Breaking the Glass Ceiling for Embedding-Based Classifiers for Large Output Spaces", Algorithm 2, equation 3).
    ``U = I`` would be the spread-out regulariser, which pushes apart even labels that belong together.

    Needs the extra ``neural`` for training; predicting uses plain arrays. A batch costs
    ``O(nnz · dim + B · n_batch_labels · dim)``; a prediction is one search of ``index_``.

    The defaults are not the paper's: :meth:`as_published` is its setting, and the method's page lists what differs.

    Under ``torchrun`` every process computes a share of each batch; the data must be the same in all of them.

    Parameters
    ----------
    dim : int
        Length of the vectors.
    hidden : int, sequence of int or None
        Widths of hidden layers between the sparse input and the vectors; None maps straight to the vectors.
    activation : {"linear", "relu"}
        After each hidden layer, or after the only layer.
    weight_normalization : bool
        The weight vectors of a layer's neurons share one trainable length, and each learns its direction (section 3.1).
        A batch then costs ``O(n_features · dim)`` besides.
    start : {"rows", "random"}
        Where label vectors begin: at the mean of their rows' first vectors, or anywhere.
    loss : {"softmax", "negative_mining", "margin"}
        ``"margin"``: ``Σ_{y'} [h_y' - h_y + c]+`` for one label y drawn from each row (equation 1), on cosines.
        ``"negative_mining"``: the same over the ``n_mined`` best-scoring negatives, for every label of the row.
        ``"softmax"``: ``ln(1 + Σ_{y'} (π_y'/π_y)^τ e^(h_y' - h_y))`` for every label of the row. Negatives y' are
        labels that the row does not have.
    margin : float
        c, on the scale of cosines.
    n_mined : int
        Negatives a row of ``"negative_mining"``.
    logit_adjustment : float
        τ of ``"softmax"``, how far rare labels are favoured: from 0 (as frequent as they come) to 1 (all alike).
    negatives : {"auto", "all", "batch"}
        Labels that a batch is scored against: every label, or those of its rows. "auto" takes every label as long as
        there are at most four times ``batch_size``.
    regularizer : {"glas", "spreadout", "laplacian", "gravity", None}
        What label vectors are held to.
    reg_weight : float
        λ.
    input_keep_probability : float
        With what probability each feature of a row stays in a batch; those that stay are divided by it. 1 keeps all.
    batch_size : int
        Rows a batch, at most: small data sets take fewer (but 64), so that an epoch has ``min_batches``.
    min_batches : int
        Batches an epoch, at least; 1 takes ``batch_size`` as it is.
    epochs, learning_rate
        Of Adam, with a cosine schedule to zero over ``epochs``.
    early_stopping : bool
        Hold out ``validation_fraction`` of the rows (at most 5,000), stop after ``patience`` epochs without a better
        ``metric``, and keep the best epoch's weights. False trains on every row for all epochs.
    metric : str
        Any name that :func:`tailwise.evaluate` knows.
    patience, validation_fraction : int, float
        Of early stopping, see above.
    propensity : Propensity, array or None
        For metrics that begin with "ps"; None is ``JainPropensity()``.
    index : LabelIndex or None
        How labels are searched; None is exact. ``FaissIndex()`` for label sets too large to scan.
    checkpoint : str or None
        Folder to write after each epoch; where it exists, ``fit`` continues from it, to the same result.
    device : str
        ``"auto"`` (GPU if there is one), ``"cpu"``, ``"cuda"``, ``"cuda:1"``…
    random_state : int, Generator or None
    n_jobs : int or None
        Threads; None uses every core. The weights have the same bits for every number.

    Attributes
    ----------
    tower_ : Tower
        The row side, as arrays.
    index_ : LabelIndex
        The label vectors, times the scale.
    history_ : list of dict
        Loss and validation metric of each epoch.
    best_epoch_ : int
        The epoch whose weights were kept.

    Examples
    --------
    >>> model = GLaS(dim=8, epochs=20, batch_size=2, early_stopping=False, random_state=0)
    >>> model.fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 1]]).predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    _parameters = {
        "weight_normalization": Flag(),
        "start": Choice("rows", "random"),
        "min_batches": Integer(low=1),
        "loss": Choice("margin", "negative_mining", "softmax"),
        "margin": Number(low=0),
        "n_mined": Integer(low=1),
        "logit_adjustment": Number(),
        "negatives": Choice("auto", "all", "batch"),
        "regularizer": Choice(*REGULARIZERS),
        "reg_weight": Number(low=0),
    }

    def __init__(
        self,
        dim: int = 1024,
        *,
        hidden: Any = None,
        activation: str = "linear",
        weight_normalization: bool = False,
        start: str = "rows",
        loss: str = "softmax",
        margin: float = 0.3,
        n_mined: int = 50,
        logit_adjustment: float = 0.3,
        negatives: str = "auto",
        regularizer: str | None = "glas",
        reg_weight: float = 10.0,
        input_keep_probability: float = 0.8,
        batch_size: int = 4096,
        min_batches: int = 16,
        epochs: int = 10,
        learning_rate: float = 5e-3,
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
        self.dim = dim
        self.hidden = hidden
        self.activation = activation
        self.weight_normalization = weight_normalization
        self.start = start
        self.loss = loss
        self.margin = margin
        self.n_mined = n_mined
        self.logit_adjustment = logit_adjustment
        self.negatives = negatives
        self.regularizer = regularizer
        self.reg_weight = reg_weight
        self.input_keep_probability = input_keep_probability
        self.batch_size = batch_size
        self.min_batches = min_batches
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
        return {
            "learning_rate": Range.around(self.learning_rate, 4),
            "logit_adjustment": Range(0.0, 1.0, self.logit_adjustment),
        }

    @classmethod
    def as_published(cls, **params: Any) -> Self:
        """The estimator in the paper's base setting; ``params`` change or add to it.

        The margin loss on a ReLU layer with weight normalisation, d = 1024, B = 4096, λ = 10, four of five features
        kept, at most 10 epochs by P@1 on held-out rows. The margin c and the learning rate, which the paper does not
        state, were chosen on validation rows.

        >>> model = GLaS.as_published(random_state=0)
        >>> model.loss, model.dim, model.batch_size, model.reg_weight
        ('margin', 1024, 4096, 10.0)
        """
        return cls(**{**AS_PUBLISHED, **UNSTATED, **params})

    @property
    def on_sphere(self) -> bool:
        """Always: scores are cosines times a scale."""
        return True

    @property
    def starts_at_rows(self) -> bool:
        """As ``start`` says."""
        return self.start == "rows"

    def build_objective(self, Y: sparse.csr_array) -> Any:
        """The loss and the regulariser that the parameters name."""
        from tailwise.embedding.objectives import GlasObjective, LabelRegularizer

        few = Y.shape[1] <= _EVERY_LABEL_BELOW * self.batch_size
        regularizer = None
        if self.regularizer in LABEL_REGULARIZERS:
            transposed = sparse.csr_array(Y.T.tocsr())
            regularizer = LabelRegularizer(name=self.regularizer, weight=self.reg_weight, Y_transposed=transposed)
        return GlasObjective(
            loss=self._loss(Y),
            every_label=self.negatives == "all" or (self.negatives == "auto" and few),
            regularizer=regularizer,
            gravity_weight=self.reg_weight if self.regularizer == "gravity" else None,
        )

    def _loss(self, Y: sparse.csr_array) -> Any:
        from tailwise.embedding.objectives import MinedMargin, SummedMargin, TiltedSoftmax

        if self.loss == "margin":
            return SummedMargin(margin=self.margin)
        if self.loss == "negative_mining":
            return MinedMargin(margin=self.margin, n_mined=self.n_mined)
        return TiltedSoftmax(log_tilt=self.logit_adjustment * np.log(label_prior(label_counts(Y))))
