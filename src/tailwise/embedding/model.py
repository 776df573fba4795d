"""What the embedding models that torch trains share: their parameters, and how they train."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.embedding.constraints import INDEX, TRAINING, Widths, layer_widths
from tailwise.embedding.index import ExactIndex
from tailwise.embedding.runtime import Processes, one_thread_an_operation, require_torch, resolve_device
from tailwise.embedding.tower import Shape
from tailwise.embedding.vectors import VectorModel
from tailwise.parameters import Choice, Integer, Number
from tailwise.propensity import resolve_propensity
from tailwise.rows import UNIT_LENGTH, RowView

if TYPE_CHECKING:
    from tailwise.embedding.plan import Objective
    from tailwise.embedding.run import TwoTowerRun

_SAMPLE_QUERIES = 256


class TwoTowerModel(VectorModel):
    """Row and label vectors that a torch network learns.

    Rows are scaled to unit length first. A subclass says in ``on_sphere`` where its vectors lie and builds its loss in
    ``build_objective``.
    """

    _parameters = {
        "dim": Integer(low=1),
        "hidden": Widths(or_one=True),
        "activation": Choice("relu", "linear"),
        "input_keep_probability": Number(low=0, high=1, open_low=True),
        "index": INDEX,
        **TRAINING,
    }

    dim: int
    hidden: Any
    activation: str
    input_keep_probability: float
    batch_size: int
    epochs: int
    learning_rate: float
    early_stopping: bool
    metric: str
    patience: int
    validation_fraction: float
    propensity: Any
    index: Any
    checkpoint: str | None
    device: str
    random_state: Any

    history_: list[dict[str, float]]
    best_epoch_: int

    @property
    @abstractmethod
    def on_sphere(self) -> bool:
        """Whether vectors have unit length; a score is then a cosine times a scale that is learned."""

    @property
    def starts_at_rows(self) -> bool:
        """Whether each label's vector starts at the mean of its rows' first vectors, else in a random direction."""
        return True

    @abstractmethod
    def build_objective(self, Y: sparse.csr_array) -> Objective[Any]:
        """What training minimises, for the labels ``Y`` of the rows that are trained on."""

    def build_shape(self, n_features: int, n_labels: int) -> Shape:
        """Sizes and form of the network, for that many features and labels."""
        return Shape(n_features, n_labels, (*layer_widths(self.hidden), self.dim), self.activation, self.on_sphere)

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        return UNIT_LENGTH

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        require_torch(type(self).__name__)
        # Not at the top, because it imports torch, and predicting does without.
        from tailwise.embedding.run import TwoTowerRun

        known = np.flatnonzero(self.label_counts_ > 0)
        propensity = resolve_propensity(self.propensity, Y)[known] if self.early_stopping else None
        Y = sparse.csr_array(Y[:, known])
        with one_thread_an_operation(), Processes(resolve_device(self.device)) as processes:
            run = TwoTowerRun(self, processes, X, Y, propensity, weight)
            self._describe(run)
            run.train()
            self.history_, self.best_epoch_ = run.history, run.stopping.best_epoch
            self.tower_, vectors = run.result()
        if self.index is None:
            self.index_ = ExactIndex(n_jobs=self.n_jobs).build(vectors, known)
        else:
            queries = self.tower_.encode(run.some_rows(_SAMPLE_QUERIES), n_jobs=self.n_jobs)
            self.index_ = clone(self.index).build(vectors, known, queries)

    def _describe(self, run: TwoTowerRun) -> None:
        """Set what can be told of a run before it starts."""
