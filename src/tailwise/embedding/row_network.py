"""RowNetwork: any torch network of rows, trained with the losses, samplers and weightings of SampledSoftmax."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from tailwise.base import TopK
from tailwise.embedding.label_loss import LabelLoss
from tailwise.embedding.runtime import one_thread_an_operation, require_torch, seeded
from tailwise.embedding.sampling import Weighting
from tailwise.errors import InvalidInput, NotFitted
from tailwise.kernels.sparse.topk import topk_dense
from tailwise.parallel import progress, row_blocks
from tailwise.parameters import Function, Integer, Number, OrNone, check_parameters
from tailwise.validation import as_rng, check_labels, check_number, label_counts

_ROWS_A_PASS = 256

Augment = Callable[[Any, np.random.Generator], Any]
"""From a batch of rows, a tensor, and random numbers to the batch that is trained on."""


class RowNetwork(LabelLoss, BaseEstimator):
    """Train any torch network of rows, such as one of images, against drawn labels.

    ``f_y(x) = φ(x)·v_y``, where ``body`` makes φ and v is a table of label vectors, which start in random directions.
    It minimises what :class:`SampledSoftmax` minimises, by the same code; there φ is a linear map of sparse rows. The
    optimiser is SGD with momentum and weight decay, its rate falling to zero along a cosine.

    Needs the extra ``neural``. Training and predicting use one thread, so that the same seed gives the same bits on any
    number of cores; train several networks at once to use more. A step costs what ``body`` costs plus
    ``O(B · m · dim)``. It holds a torch module and is not saved by tailwise: keep ``body_.state_dict()`` and
    ``label_vectors_``.

    Parameters
    ----------
    body : callable
        Makes an untrained ``torch.nn.Module`` that turns a batch of rows (n, …) into vectors (n, dim).
    sampler, weighting, loss, n_negatives
        As in :class:`SampledSoftmax`; with ``loss="contrastive"`` both sides are scaled to unit length.
    epochs, batch_size, learning_rate, momentum, weight_decay
        Of SGD.
    augment : callable or None
        ``augment(rows, rng)`` changes a batch of rows (a tensor) before it is trained on, with numbers from ``rng``.
    random_state : int, Generator or None
        Initial weights, the order of rows and the draws.

    Attributes
    ----------
    body_ : torch.nn.Module
        The trained network.
    label_vectors_ : (n_labels, dim) array of float32
        Zeros for labels that no training row has.
    losses_ : list of float
        Mean training loss of each epoch.
    margin_ : dict
        As in :class:`SampledSoftmax`.
    n_labels_, label_counts_
        As in every model.

    Examples
    --------
    >>> import torch
    >>> model = RowNetwork(lambda: torch.nn.Linear(2, 4), sampler=None, epochs=30, random_state=0)
    >>> model.fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 1]]).predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    _parameters = {
        "body": Function(),
        "epochs": Integer(low=1),
        "batch_size": Integer(low=1),
        "learning_rate": Number(low=0, open_low=True),
        "momentum": Number(low=0, high=1, open_high=True),
        "weight_decay": Number(low=0),
        "augment": OrNone(Function()),
    }

    body_: Any
    label_vectors_: np.ndarray
    losses_: list[float]
    margin_: dict[str, Any]

    def __init__(
        self,
        body: Callable[[], Any],
        *,
        sampler: str | None = "uniform",
        weighting: str | Weighting = "constant",
        loss: str = "softmax",
        n_negatives: int = 32,
        epochs: int = 20,
        batch_size: int = 128,
        learning_rate: float = 0.1,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        augment: Augment | None = None,
        random_state: Any = None,
    ) -> None:
        self.body = body
        self.sampler = sampler
        self.weighting = weighting
        self.loss = loss
        self.n_negatives = n_negatives
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.augment = augment
        self.random_state = random_state

    def fit(self, rows: Any, Y: Any) -> Self:
        """Learn from ``rows`` (n_samples, …), numbers, and the observed binary labels ``Y`` (n_samples, n_labels)."""
        require_torch(type(self).__name__)
        check_parameters(self)
        self._check_loss()
        rows = _as_rows(rows)
        Y = check_labels(Y, n_rows=rows.shape[0])
        counts = label_counts(Y)
        known, labelled = np.flatnonzero(counts), np.flatnonzero(np.diff(Y.indptr))
        if not labelled.size:
            raise InvalidInput("no row of Y has a label, so there is nothing to learn from; check how Y was made")
        rng = as_rng(self.random_state)
        with one_thread_an_operation():
            trained = self._train(rows[labelled], sparse.csr_array(Y[labelled][:, known]), rng)
        self.body_, vectors, self.losses_, self.margin_ = trained
        self.n_labels_, self.label_counts_ = Y.shape[1], counts
        self.label_vectors_ = np.zeros((self.n_labels_, vectors.shape[1]), np.float32)
        self.label_vectors_[known] = vectors
        return self

    def raw_scores(self, rows: Any) -> np.ndarray:
        """The scores of every label, (n_samples, n_labels) float32; ``-inf`` for labels that no training row has."""
        if not hasattr(self, "body_"):
            raise NotFitted("this RowNetwork is not fitted yet; call fit(rows, Y) first")
        torch = require_torch(type(self).__name__)
        rows = _as_rows(rows)
        scores = np.empty((rows.shape[0], self.n_labels_), np.float32)
        table = torch.from_numpy(self.label_vectors_)
        self.body_.eval()
        with one_thread_an_operation(), torch.no_grad():
            for start, stop in row_blocks(rows.shape[0], _ROWS_A_PASS):
                vectors = self._on_its_sphere(self.body_(torch.from_numpy(rows[start:stop])))
                scores[start:stop] = (vectors @ table.T).numpy()
        scores[:, self.label_counts_ == 0] = -np.inf
        return scores

    def predict_topk(self, rows: Any, k: int = 5) -> TopK:
        """The ``k`` best labels of each row with their scores; ties break by label index."""
        scores = self.raw_scores(rows)
        k = int(check_number("k", k, integer=True, low=1))
        labels = np.full((scores.shape[0], k), -1, np.int32)
        best = np.full((scores.shape[0], k), -np.inf, np.float32)
        topk_dense(scores, 0, labels, best)
        return TopK(labels, best)

    def _train(
        self, rows: np.ndarray, Y: sparse.csr_array, rng: np.random.Generator
    ) -> tuple[Any, np.ndarray, list[float], dict[str, Any]]:
        """The body, the label vectors, the loss of each epoch and what is minimised; every row has a label."""
        torch = require_torch(type(self).__name__)
        from tailwise.embedding.plan import as_index

        with seeded(int(rng.integers(2**62))):
            body = self.body()
            with torch.no_grad():
                vectors = body.eval()(torch.from_numpy(rows[:1]))
            if vectors.ndim != 2:
                raise InvalidInput(f"body gives {tuple(vectors.shape[1:])} values a row; let it give one vector each")
            labels = torch.randn(Y.shape[1], vectors.shape[1]) * vectors.shape[1] ** -0.5
        labels.requires_grad_()
        body.train()
        objective = self.build_objective(Y)
        optimiser = torch.optim.SGD(
            [*body.parameters(), labels], self.learning_rate, momentum=self.momentum, weight_decay=self.weight_decay
        )
        steps, losses = -(-rows.shape[0] // self.batch_size), []
        with progress(f"Training {type(self).__name__}", self.epochs) as advance:
            for epoch in range(self.epochs):
                total = 0.0
                for step, batch in enumerate(np.array_split(rng.permutation(rows.shape[0]), steps)):
                    done = (epoch * steps + step) / (self.epochs * steps)
                    for group in optimiser.param_groups:
                        group["lr"] = self.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
                    plan = objective.plan(Y[batch], rng)
                    seen = torch.from_numpy(rows[batch])
                    vectors = self._on_its_sphere(body(seen if self.augment is None else self.augment(seen, rng)))
                    table = labels if plan.labels is None else labels[as_index(plan.labels, labels)]
                    loss = objective.row_loss(plan, slice(0, batch.size), vectors, self._on_its_sphere(table), None)
                    optimiser.zero_grad(set_to_none=True)
                    loss.backward()
                    optimiser.step()
                    total += float(loss.detach()) * batch.size
                losses.append(total / rows.shape[0])
                advance(note=f"loss {losses[-1]:.4g}")
        learnt = self._on_its_sphere(labels.detach()).numpy()
        return body.eval(), learnt, losses, self._describe_margin(Y)

    def _on_its_sphere(self, vectors: Any) -> Any:
        return require_torch("training").nn.functional.normalize(vectors, dim=1) if self.on_sphere else vectors


def _as_rows(rows: Any) -> np.ndarray:
    rows = np.ascontiguousarray(rows, dtype=np.float32)
    if rows.ndim < 2:
        raise InvalidInput(f"rows has shape {rows.shape}; pass an array of one entry a row, such as (n, 3, 32, 32)")
    if not np.isfinite(rows).all():
        raise InvalidInput("rows holds values that are not finite; pass finite numbers")
    return rows
