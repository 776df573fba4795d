"""A small network with one output a label, trained with any loss, plain or corrected for missing labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.embedding.checkpoint import forms_of
from tailwise.embedding.constraints import Widths
from tailwise.embedding.runtime import one_thread_an_operation, require_torch, seeded
from tailwise.kernels.sparse.topk import topk_dense
from tailwise.losses import CORRECTIONS, LOSSES, Loss, correct
from tailwise.parallel import map_blocks, progress, row_blocks
from tailwise.parameters import Choice, Integer, Number
from tailwise.persistence.checks import check_that
from tailwise.propensity import PropensityLike, resolve_propensity
from tailwise.validation import as_rng

_DENSE_ABOVE = 0.1
"""Rows with more non-zeros than this share train faster as a dense matrix."""

_ROWS_A_PASS = 32
_PASSES_A_BLOCK = 8


class BinaryNetwork(XMCModel):
    """Train a feed-forward network to give one score a label, with any of the losses of ``tailwise.losses``.

    ``scores = W_m a(… a(W_1 x + b_1) …) + b_m``, minimising the mean over rows of the sum over labels of the loss, with
    Adam. A batch of scores is dense (batch_size × n_labels): meant for up to some ten thousand labels. A step costs
    ``O(batch nnz · width + batch · width · n_labels)``. Training uses one thread, so that the same seed gives the same
    bits on any number of cores; train several networks at once to use more. Override :meth:`build_network` for another
    architecture.

    Parameters
    ----------
    loss : str
        "cross_entropy", "hinge", "squared_hinge" or "squared_error".
    correction : str
        For missing labels: "none", "unbiased", "convex" (the convex surrogate) or "tail" (weight 1/p - 1).
    propensity : Propensity, array of n_labels values in (0, 1] or None
        Used by the corrections; None is ``JainPropensity()`` fitted on the training labels.
    hidden : tuple of int
        Widths of the hidden ReLU layers; () is a linear model.
    epochs, batch_size, learning_rate, weight_decay
        Of Adam.
    random_state : int, Generator or None
        Initial weights and the order of rows.
    n_jobs : int or None
        Threads for prediction; None uses every core.

    Attributes
    ----------
    network_ : dict of torch tensors
        The weights.
    losses_ : list of float
        Mean training loss a row in each epoch.

    Examples
    --------
    >>> model = BinaryNetwork(hidden=(), epochs=50, learning_rate=0.1, random_state=0)
    >>> model.fit([[1.0, 0], [0, 1.0]], [[1, 0], [0, 1]]).predict_topk([[0.9, 0.1]], k=1).labels
    array([[0]], dtype=int32)
    """

    _parameters = {
        "loss": Choice(*(name for name, loss in LOSSES.items() if loss.trainable)),
        "correction": Choice(*CORRECTIONS),
        "propensity": PropensityLike(),
        "hidden": Widths(),
        "epochs": Integer(low=1),
        "batch_size": Integer(low=1),
        "learning_rate": Number(low=0, open_low=True),
        "weight_decay": Number(low=0),
    }

    network_: dict[str, Any]
    losses_: list[float]

    def __init__(
        self,
        loss: str = "cross_entropy",
        *,
        correction: str = "none",
        propensity: Any = None,
        hidden: tuple[int, ...] = (256,),
        epochs: int = 10,
        batch_size: int = 256,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.correction = correction
        self.propensity = propensity
        self.hidden = hidden
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def scores_are_probabilities(self) -> bool:  # type: ignore[override]
        """Cross-entropy gives the probability that a label is observed; unbiased, that it is relevant."""
        return self.loss == "cross_entropy" and self.correction in ("none", "unbiased")

    def build_network(self, n_features: int, n_labels: int) -> Any:
        """An untrained ``torch.nn.Sequential`` that starts with a ``torch.nn.Linear``; that one takes sparse rows."""
        torch = _torch()
        widths = [n_features, *self.hidden, n_labels]
        layers: list[Any] = []
        for i in range(1, len(widths)):
            layers += [torch.nn.ReLU()] * (i > 1) + [torch.nn.Linear(widths[i - 1], widths[i])]
        return torch.nn.Sequential(*layers)

    def raw_scores(self, X: Any) -> np.ndarray:
        """The network's raw scores, (n_samples, n_labels) float32; a label is there from the threshold on."""
        self._check_is_fitted()
        blocks = self._map_scores(self._seen(X), lambda scores, start: scores)
        return np.concatenate([np.empty((0, self.n_labels_), np.float32), *blocks])

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        rng = as_rng(self.random_state)
        needed = self.correction != "none"
        loss = correct(self.loss, self.correction, resolve_propensity(self.propensity, Y) if needed else 1.0)
        network = self._new_network(int(rng.integers(2**62)))
        with one_thread_an_operation():
            self.losses_ = self._train(network, loss, X, Y, weight, rng)
        self.network_ = {name: weight.detach() for name, weight in network.state_dict().items()}

    def _check_state(self) -> None:
        super()._check_state()
        check_that(self.rows_.columns is None, "rows_ sees other columns than the network")
        torch = _torch()
        with torch.device("meta"):
            expected = self.build_network(self.n_features_in_, self.n_labels_).state_dict()
        check_that(
            forms_of(self.network_) == forms_of(expected), "network_ has other layers than the parameters ask for"
        )
        for name, weight in self.network_.items():
            check_that(torch.isfinite(weight).all(), f"{name} of network_ is not finite")

    def _new_network(self, seed: int) -> Any:
        torch = _torch()
        with seeded(seed):
            network = self.build_network(self.n_features_in_, self.n_labels_)
        if isinstance(network[0], torch.nn.Linear):
            # A sparse row adds up whole columns of this matrix: let each lie in one piece.
            network[0].weight.data = network[0].weight.data.T.contiguous().T
        return network

    def _train(
        self,
        network: Any,
        loss: Loss,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        weight: np.ndarray | None,
        rng: np.random.Generator,
    ) -> list[float]:
        torch = _torch()
        optimiser = torch.optim.Adam(
            network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )
        whole = torch.from_numpy(X.toarray()) if X.nnz > _DENSE_ABOVE * X.shape[0] * X.shape[1] else None
        counted = None if weight is None else torch.from_numpy(weight.astype(np.float32))
        means = []
        with progress("Training BinaryNetwork", self.epochs) as advance:
            for _ in range(self.epochs):
                order, total = rng.permutation(X.shape[0]), 0.0
                for start, stop in row_blocks(X.shape[0], self.batch_size):
                    batch = order[start:stop]
                    rows, seen = _to_torch(X[batch]) if whole is None else whole[batch], Y[batch].tocoo()
                    optimiser.zero_grad(set_to_none=True)
                    scores = _forward(network, rows)
                    each = None if counted is None else counted[batch]
                    value = loss.total(scores, seen.row, seen.col, each)
                    (value / (stop - start)).backward()
                    optimiser.step()
                    total += value.item()
                means.append(total / X.shape[0])
                advance(note=f"loss {means[-1]:.4g}")
        return means

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        labels = np.full((X.shape[0], k), -1, np.int32)
        best = np.full((X.shape[0], k), -np.inf, np.float32)
        unseen = self.label_counts_ == 0

        def keep_best(scores: np.ndarray, start: int) -> None:
            if self.scores_are_probabilities:
                scores = np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * scores))
            scores[:, unseen] = -np.inf
            topk_dense(scores, 0, labels[start : start + len(scores)], best[start : start + len(scores)])

        self._map_scores(X, keep_best)
        return TopK(labels, best)

    def _map_scores(self, X: sparse.csr_array, use: Any) -> list[Any]:
        """``use(scores, first row)`` on blocks of rows, on threads."""
        torch = _torch()
        network = self._new_network(0)
        network.load_state_dict(self.network_)

        def score_block(block: tuple[int, int]) -> Any:
            start, stop = block
            with one_thread_an_operation(), torch.no_grad():
                passes = [
                    _score_rows(network, X[i : min(i + _ROWS_A_PASS, stop)]) for i in range(start, stop, _ROWS_A_PASS)
                ]
            return use(np.concatenate(passes), start)

        return map_blocks(score_block, row_blocks(X.shape[0], _ROWS_A_PASS * _PASSES_A_BLOCK), n_jobs=self.n_jobs)


def _score_rows(network: Any, rows: sparse.csr_array) -> np.ndarray:
    """Scores of at most ``_ROWS_A_PASS`` rows, padded to just as many: a product's rounding depends on its shape."""
    indptr = np.append(rows.indptr, np.full(_ROWS_A_PASS - rows.shape[0], rows.indptr[-1], rows.indptr.dtype))
    padded = sparse.csr_array((rows.data, rows.indices, indptr), shape=(_ROWS_A_PASS, rows.shape[1]))
    return _forward(network, _to_torch(padded)).numpy()[: rows.shape[0]]


def _forward(network: Any, rows: Any) -> Any:
    """``network(rows)``, where ``rows`` may be sparse if the network starts with a Linear layer."""
    torch = _torch()
    if not rows.is_sparse:
        return network(rows)
    first = network[0]
    if not isinstance(first, torch.nn.Linear):
        return network(rows.to_dense())
    return network[1:](torch.sparse.mm(rows, first.weight.T) + first.bias)


def _to_torch(rows: sparse.csr_array) -> Any:
    torch = _torch()
    coo = rows.tocoo()
    where = torch.from_numpy(np.stack([coo.row.astype(np.int64), coo.col.astype(np.int64)]))
    values = torch.from_numpy(np.array(coo.data, np.float32))
    return torch.sparse_coo_tensor(where, values, coo.shape, is_coalesced=True, check_invariants=False)


def _torch() -> Any:
    return require_torch("BinaryNetwork")
