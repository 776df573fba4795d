"""AttentionXML: each label looks at the words of the text that matter to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.parameters import Integer, Number
from tailwise.persistence.checks import check_exact, check_indices, check_that
from tailwise.rows import unit_rows
from tailwise.sequence.model import ROWS, SequenceModel
from tailwise.sequence.vectors import token_counts
from tailwise.trees.clustering import split_in_many
from tailwise.trees.representation import represent_labels

_LABELS_A_GROUP = 32


class AttentionXML(SequenceModel):
    """A bidirectional LSTM, and a softmax attention over positions for each label (You et al. 2019).

    ``f_l = v·relu(U Σ_t softmax_t(h_t·a_l) h_t) + b_l``; U and v are shared by the labels. Trained on the binary
    cross-entropy with Adam. Needs the extra ``neural``, for predicting too. A row of T words costs
    ``O(T · hidden · (hidden + word_dim + labels looked at))``.

    Where there are more than ``flat_labels`` labels a tree of two levels is put above them: labels are clustered by the
    words of their rows as :class:`~tailwise.Bonsai` does, groups are scored first, and only the labels of the ``beam``
    best groups of a row after that. Unlike in the paper both levels are trained at once over one LSTM.

    Rows are sequences of tokens: see :class:`XMLCNN`.

    Parameters
    ----------
    hidden : int
        Width of the LSTM in each direction, and of U.
    flat_labels : int
        Up to so many labels all are scored; above, only those of the best groups.
    beam : int
        Groups of labels that are looked at a row.
    word_dropout, dropout : float
        Share of the values that are dropped in training: of word vectors, and of what the attention saw.
    word_dim, word_vectors, batch_size, epochs, learning_rate
        As in :class:`XMLCNN`.
    average_from : int or None
        From this epoch on the weights that count are the mean of those after each epoch, as in the paper; None: those
        of the epoch.
    early_stopping, metric, patience, validation_fraction, propensity, checkpoint, device, random_state, n_jobs
        As in :class:`XMLCNN`.

    Attributes
    ----------
    network_, tokens_, known_, history_, best_epoch_
        As in :class:`XMLCNN`.
    groups_ : ndarray
        The group of each label of ``known_``; empty where all labels are scored.

    Examples
    --------
    >>> model = AttentionXML(8, word_dim=8, epochs=30, learning_rate=0.02, early_stopping=False, random_state=0)
    >>> model.fit([[1.0, 2.0], [3.0, 4.0]] * 8, [[1, 0], [0, 1]] * 8).predict_topk([[3.0, 4.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {
        "hidden": Integer(low=1),
        "flat_labels": Integer(low=1),
        "beam": Integer(low=1),
        "word_dropout": Number(low=0, high=1, open_high=True),
        "dropout": Number(low=0, high=1, open_high=True),
    }

    groups_: np.ndarray

    def __init__(
        self,
        hidden: int = 128,
        *,
        flat_labels: int = 500,
        beam: int = 10,
        word_dropout: float = 0.2,
        dropout: float = 0.5,
        word_dim: int = 128,
        word_vectors: Any = ROWS,
        batch_size: int = 64,
        epochs: int = 20,
        learning_rate: float = 2e-3,
        average_from: int | None = 10,
        early_stopping: bool = True,
        metric: str = "p@5",
        patience: int = 5,
        validation_fraction: float = 0.05,
        propensity: Any = None,
        checkpoint: str | None = None,
        device: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.hidden = hidden
        self.flat_labels = flat_labels
        self.beam = beam
        self.word_dropout = word_dropout
        self.dropout = dropout
        self.word_dim = word_dim
        self.word_vectors = word_vectors
        self.batch_size = batch_size
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.average_from = average_from
        self.early_stopping = early_stopping
        self.metric = metric
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.propensity = propensity
        self.checkpoint = checkpoint
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def build_network(self, n_labels: int) -> Any:
        """LSTM and attention as the parameters say, with ``groups_`` where there are any."""
        import torch

        from tailwise.sequence.attention import Attention

        with torch.device("cpu"):
            members = torch.from_numpy(_members(self.groups_)) if self.groups_.size else None
        return Attention(self, n_labels, members)

    def _prepare(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        self.groups_ = np.empty(0, np.int32)
        if Y.shape[1] > self.flat_labels:
            # The same start for every seed: a resumed run must find its groups again.
            vectors = represent_labels(unit_rows(token_counts(X, self.tokens_)), Y, n_jobs=self.n_jobs)
            found = split_in_many(vectors, max(2, Y.shape[1] // _LABELS_A_GROUP), np.random.default_rng(0))
            self.groups_ = np.unique(found, return_inverse=True)[1].astype(np.int32)

    def _check_state(self) -> None:
        groups = check_exact("groups_", self.groups_, np.int32, (None,))
        check_that(
            groups.size in (0, self.known_.size), f"groups_ has {groups.size:,} labels, not {self.known_.size:,}"
        )
        check_indices("groups_", groups, max(1, groups.size))
        check_that(np.unique(groups).size == groups.max(initial=-1) + 1, "groups_ has an empty group")
        super()._check_state()


def _members(groups: np.ndarray) -> np.ndarray:
    """The labels of each group, (n_groups, largest) int64; ``groups.size`` where there are no more."""
    counts = np.bincount(groups)
    order = np.argsort(groups, kind="stable")
    members = np.full((counts.size, counts.max()), groups.size, np.int64)
    place = np.arange(groups.size) - np.repeat(np.cumsum(counts) - counts, counts)
    members[groups[order], place] = order
    return members
