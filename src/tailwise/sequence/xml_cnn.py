"""XMLCNN: convolutions over word vectors, pooled by parts of the text, through a bottleneck to every label."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.embedding.constraints import Widths
from tailwise.parameters import Integer, Number
from tailwise.persistence.checks import check_that
from tailwise.sequence.model import ROWS, SequenceModel

_POOLING = "normalised by parts of the text"


class XMLCNN(SequenceModel):
    """Filters of several widths over word vectors, pooled and narrowed, then a sigmoid a label (Liu et al. 2017).

    Each filter's responses are pooled by the maximum over ``chunks`` parts of the text: words count by what they say
    and roughly by where. Trained on the binary cross-entropy with Adam. Needs the extra ``neural``, for predicting too.
    A row of T words costs ``O(T · word_dim · Σ widths · n_filters + bottleneck · n_labels)``.

    A row of X holds a token in each column, as a number: what :class:`~tailwise.Sequences` makes of texts, and what
    :class:`~tailwise.Tagger` uses for this model. Values that no training row has are skipped.

    Parameters
    ----------
    widths : tuple of int
        Words that a filter sees at a time.
    n_filters : int
        Filters of each width.
    chunks : int
        Parts of the text that are pooled apart.
    bottleneck : int
        Width of the hidden layer.
    word_dropout, dropout : float
        Share of the values that are dropped in training: of word vectors, and of the hidden layer.
    word_dim : int
        Length of the word vectors.
    word_vectors : "rows", array (n_words, word_dim) or None
        Vectors to start from. "rows": words that come in the same training rows begin alike. An array: row n - 1 is
        that of token n, such as ``learn_word_vectors(sequences, texts, word_dim)`` from more texts, or
        ``read_word_vectors(path, sequences.words)``. None, and rows of zeros, start at random.
    batch_size, epochs, learning_rate
        Of Adam.
    average_from : int or None
        From this epoch on the weights that count are the mean of those after each epoch; None: those of the epoch.
    early_stopping : bool
        Hold out ``validation_fraction`` of the rows (at most 5,000), stop after ``patience`` epochs without a better
        ``metric``, and keep the best epoch's weights. False trains on every row for all epochs.
    metric : str
        Any name that :func:`tailwise.evaluate` knows.
    patience, validation_fraction : int, float
        Of early stopping, see above.
    propensity : Propensity, array or None
        For metrics that begin with "ps"; None is ``JainPropensity()``.
    checkpoint : str or None
        Folder to write after each epoch; where it exists, ``fit`` continues from it, to the same result.
    device : str
        ``"auto"`` (GPU if there is one), ``"cpu"``, ``"cuda"``, ``"cuda:1"``… for training.
    random_state : int, Generator or None
    n_jobs : int or None
        Threads; None uses every core. The weights have the same bits for every number.

    Attributes
    ----------
    network_ : dict of torch tensors
        The weights.
    tokens_ : ndarray
        The distinct values of the training rows, ascending.
    known_ : ndarray
        The labels that have rows.
    history_ : list of dict
        Loss and validation metric of each epoch.
    best_epoch_ : int
        The epoch whose weights were kept.

    Examples
    --------
    >>> model = XMLCNN((2,), n_filters=8, word_dim=8, epochs=20, early_stopping=False, random_state=0)
    >>> model.fit([[1.0, 2.0], [3.0, 4.0]] * 8, [[1, 0], [0, 1]] * 8).predict_topk([[3.0, 4.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {
        "widths": Widths(),
        "n_filters": Integer(low=1),
        "chunks": Integer(low=1, high=32),
        "bottleneck": Integer(low=1),
        "word_dropout": Number(low=0, high=1, open_high=True),
        "dropout": Number(low=0, high=1, open_high=True),
    }

    def __init__(
        self,
        widths: tuple[int, ...] = (2, 4, 8),
        *,
        n_filters: int = 64,
        chunks: int = 4,
        bottleneck: int = 512,
        word_dropout: float = 0.25,
        dropout: float = 0.5,
        word_dim: int = 128,
        word_vectors: Any = ROWS,
        batch_size: int = 64,
        epochs: int = 20,
        learning_rate: float = 1e-2,
        average_from: int | None = None,
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
        self.widths = widths
        self.n_filters = n_filters
        self.chunks = chunks
        self.bottleneck = bottleneck
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
        """Convolutions, pooling, bottleneck and labels as the parameters say."""
        from tailwise.sequence.convolutions import Convolutions

        return Convolutions(self, n_labels)

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        super()._fit(X, Y, weight)
        self.pooling_ = _POOLING

    def _check_state(self) -> None:
        # The weights alone do not tell: an older network has the same shapes, and answers otherwise than it learnt.
        check_that(
            getattr(self, "pooling_", None) == _POOLING, "pooling_ is of an older network; train the model again"
        )
        super()._check_state()
