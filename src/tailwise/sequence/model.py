"""What the networks on sequences share: their parameters, training with early stopping, and predicting."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.embedding.checkpoint import forms_of
from tailwise.embedding.constraints import TRAINING
from tailwise.embedding.runtime import Processes, one_thread_an_operation, require_torch, resolve_device
from tailwise.errors import InvalidInput
from tailwise.kernels.sparse.topk import topk_dense
from tailwise.parallel import map_blocks
from tailwise.parameters import Constraint, Integer, OrNone
from tailwise.persistence.checks import check_exact, check_finite, check_indices, check_monotone, check_that
from tailwise.propensity import resolve_propensity
from tailwise.sequence.tokens import Tokens
from tailwise.sequence.vectors import token_vectors
from tailwise.validation import check_number

if TYPE_CHECKING:
    from tailwise.sequence.networks import Network

_ROWS_A_BLOCK = 32
_ALIGNMENT = 64


ROWS = "rows"
"""Word vectors that are made of the training rows."""


class WordVectors(Constraint):
    """A matrix of numbers, a row a word, or the word that says where they come from."""

    def check(self, name: str, value: Any) -> Any:
        """The value, a matrix of finite numbers unless it is :data:`ROWS`."""
        if isinstance(value, str) and value == ROWS:
            return value
        made = value if isinstance(value, np.ndarray) else np.empty(0)
        if made.ndim != 2 or made.dtype.kind not in "fiu" or not np.isfinite(made).all():
            shown = f"an array of shape {made.shape}" if isinstance(value, np.ndarray) else repr(value)
            raise InvalidInput(
                f"{name}={shown}; pass {ROWS!r}, or finite numbers, a row a word: read_word_vectors(path, words)"
            )
        return value

    def __str__(self) -> str:
        return f"{ROWS!r} or an array (n_words, word_dim)"


class SequenceModel(XMCModel):
    """A network over the tokens of a row in their order, with a probability a label.

    A row of X holds a token in each column, as a number: what :class:`~tailwise.Sequences` makes of texts. The distinct
    values of the training rows are the tokens; other values, and zeros, are skipped. A subclass builds its network.
    """

    reads = "sequences"
    scores_are_probabilities = True

    _parameters = {
        "word_dim": Integer(low=1),
        "word_vectors": OrNone(WordVectors()),
        "average_from": OrNone(Integer(low=1)),
        **TRAINING,
    }

    word_dim: int
    word_vectors: Any
    average_from: int | None
    batch_size: int
    epochs: int
    learning_rate: float
    early_stopping: bool
    metric: str
    patience: int
    validation_fraction: float
    propensity: Any
    checkpoint: str | None
    device: str
    random_state: Any
    n_jobs: int | None

    tokens_: np.ndarray
    known_: np.ndarray
    network_: dict[str, Any]
    history_: list[dict[str, float]]
    best_epoch_: int

    @abstractmethod
    def build_network(self, n_labels: int) -> Network:
        """The network for that many labels; its form follows from the parameters."""

    def _prepare(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        """Set what the network needs besides parameters."""

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        require_torch(type(self).__name__)
        # Not at the top, because it imports torch, and reading the help needs none.
        from tailwise.sequence.run import SequenceRun

        self.tokens_ = np.unique(X.data[X.data != 0])
        self.known_ = np.flatnonzero(self.label_counts_ > 0)
        propensity = resolve_propensity(self.propensity, Y)[self.known_] if self.early_stopping else None
        Y = sparse.csr_array(Y[:, self.known_])
        self._prepare(X, Y)
        with one_thread_an_operation(), Processes(resolve_device(self.device)) as processes:
            run = SequenceRun(self, processes, X, Y, propensity, weight)
            run.train()
            self.history_, self.best_epoch_ = run.history, run.stopping.best_epoch
            self.network_ = {name: value.cpu() for name, value in run.stopping.best.items()}

    def first_vectors(self, X: sparse.csr_array) -> np.ndarray | None:
        """Word vectors of the tokens to start from, (n_tokens, word_dim) float32; zeros for those that have none."""
        if self.word_vectors is None:
            return None
        if isinstance(self.word_vectors, str):
            return token_vectors(X, self.tokens_, self.word_dim)
        if self.word_vectors.shape[1] != self.word_dim:
            raise InvalidInput(
                f"word_vectors has {self.word_vectors.shape[1]} columns but word_dim={self.word_dim}; "
                "make them the same"
            )
        vectors = np.zeros((self.tokens_.size, self.word_dim), np.float32)
        number = self.tokens_.astype(np.int64)
        given = (number == self.tokens_) & (number >= 1) & (number <= len(self.word_vectors))
        vectors[given] = self.word_vectors[number[given] - 1]
        return vectors

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        # Weights of a mapped file may begin anywhere, and a product's rounding depends on where they begin.
        aligned = {name: w.clone() if w.data_ptr() % _ALIGNMENT else w for name, w in self.network_.items()}
        return self._predict_with(self.build_network(self.known_.size), aligned, X, k)

    def _predict_with(self, network: Network, parameters: Any, X: sparse.csr_array, k: int) -> TopK:
        torch = require_torch(type(self).__name__)
        tokens = Tokens.of(X, self.tokens_)
        labels = np.full((X.shape[0], k), -1, np.int32)
        scores = np.full((X.shape[0], k), -np.inf, np.float32)

        def predict(rows: np.ndarray) -> None:
            # One row at a time: a product's rounding depends on its shape and on a row's place in it.
            with one_thread_an_operation(), torch.no_grad():
                passes = [
                    network.probabilities(parameters, torch.from_numpy(tokens.padded(rows[i : i + 1]))).numpy()
                    for i in range(rows.size)
                ]
            found = np.concatenate(passes)
            best = np.full((rows.size, k), -1, np.int32), np.full((rows.size, k), -np.inf, np.float32)
            topk_dense(found, 0, *best)
            labels[rows] = np.where(best[0] >= 0, self.known_[best[0]] if self.known_.size else -1, -1)
            scores[rows] = best[1]

        if self.known_.size:
            map_blocks(predict, tokens.buckets(np.arange(X.shape[0]), _ROWS_A_BLOCK), n_jobs=self.n_jobs)
        return TopK(labels, scores)

    def _check_state(self) -> None:
        super()._check_state()
        check_that(self.rows_.keeps_values and self.rows_.columns is None, "rows_ changes what the tokens are")
        check_finite(
            "tokens_", check_monotone("tokens_", check_exact("tokens_", self.tokens_, np.float32, (None,)), strict=True)
        )
        check_monotone("known_", check_indices("known_", self.known_, self.n_labels_), strict=True)
        check_number("best_epoch_", self.best_epoch_, integer=True, low=0, high=self.epochs)
        torch = require_torch(type(self).__name__)
        with torch.device("meta"):
            expected = self.build_network(self.known_.size).initial(self.tokens_.size, torch.Generator())
        check_that(
            forms_of(self.network_) == forms_of(expected), "network_ has other layers than the parameters ask for"
        )
        for name, weight in self.network_.items():
            check_that(torch.isfinite(weight).all(), f"{name} of network_ is not finite")
