"""Texts as sequences of words: rows whose columns are positions and whose values are word numbers."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from tailwise.data.files import check_file, line_blocks, read_text, shown, split_lines
from tailwise.data.vectors import read_array
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.parameters import Flag, Integer, OrNone, check_parameters
from tailwise.persistence.checks import check_kind
from tailwise.text.features import TextFeatures
from tailwise.text.rows import CountOrShare, Groups, KnownLabels, TextRows

_LONGEST = 1 << 16
_BLOCK_BYTES = 1 << 22
_NUMBER = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Sequences(TextRows):
    """The first words of each text in their order, for models that read sequences (:class:`~tailwise.XMLCNN`).

    Column t of a row is the t-th known word, as its number in ``words`` from 1 on; a row ends where its entries end.
    Words are cut as :class:`TextFeatures` cuts them; those that it would leave out are skipped.

    Parameters
    ----------
    max_length : int, default=256
        Words a text at most; no more than 65,536.
    min_df : int or float, default=2
        Leave out words that come in fewer training texts (a float is a share of the texts).
    max_words : int or None, default=50000
        Keep only the most frequent words. float32 tells up to 2^24 of them apart.
    lowercase : bool, default=True
        Fold the case.
    strip_accents : bool, default=False
        Turn é into e.
    n_jobs : int or None, default=None
        Threads; None is every core.

    Examples
    --------
    >>> sequences = Sequences(4, min_df=1).fit(["the law of the sea"])
    >>> sequences.words
    ['law', 'of', 'sea', 'the']
    >>> sequences.transform(["the unknown sea"]).toarray()
    array([[4., 3., 0., 0.]], dtype=float32)
    """

    _parameters = {
        "max_length": Integer(low=1, high=_LONGEST),
        "min_df": CountOrShare(),
        "max_words": OrNone(Integer(low=1, high=2**24)),
        "lowercase": Flag(),
        "strip_accents": Flag(),
    }

    makes = "sequences"
    terms_: TextFeatures

    def __init__(
        self,
        max_length: int = 256,
        *,
        min_df: int | float = 2,
        max_words: int | None = 50_000,
        lowercase: bool = True,
        strip_accents: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.max_length = max_length
        self.min_df = min_df
        self.max_words = max_words
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.n_jobs = n_jobs

    def fit(self, texts: Sequence[str], y: Any = None, *, labels: KnownLabels | None = None) -> Self:
        """Learn the words from ``texts``."""
        del y, labels
        check_parameters(self)
        self.terms_ = TextFeatures(
            fields="joined",
            min_df=self.min_df,
            max_features=self.max_words,
            lowercase=self.lowercase,
            strip_accents=self.strip_accents,
            n_jobs=self.n_jobs,
        ).fit(texts)
        return self

    @property
    def words(self) -> list[str]:
        """The known words; that of number n is ``words[n - 1]``."""
        self._check_is_fitted()
        return self.terms_.vocabulary_

    @property
    def groups_(self) -> Groups:  # type: ignore[override]
        """One group: a column a position."""
        return {"positions": (0, self.max_length)}

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows (n_texts, max_length), float32: word numbers by position."""
        self._check_is_fitted()
        words, starts = self.terms_.words_in_order(texts)
        counts = np.diff(starts)
        position = np.arange(words.size) - np.repeat(starts[:-1], counts)
        kept = position < self.max_length
        indptr = np.append(0, np.cumsum(np.minimum(counts, self.max_length)))
        rows = (words[kept] + 1).astype(np.float32), position[kept].astype(np.int32), indptr.astype(np.int32)
        return sparse.csr_array(rows, shape=(counts.size, self.max_length))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """What the columns are: positions."""
        del input_features
        return np.array([f"position {t}" for t in range(self.max_length)], dtype=object)

    def _check_state(self) -> None:
        super()._check_state()
        check_kind("terms_", self.terms_, TextFeatures)._check_is_fitted()


def learn_word_vectors(sequences: Sequences, texts: Sequence[str], dim: int) -> np.ndarray:
    """Vectors of ``sequences.words``, (n_words, dim) float32, from texts that need no labels: the more the better.

    For ``word_vectors`` of :class:`~tailwise.XMLCNN` and :class:`~tailwise.AttentionXML`, whose training rows are only
    some of the texts at hand.

    >>> texts = ["ships at sea", "ships on the sea", "stars at night", "stars of the night"]
    >>> learn_word_vectors(Sequences(8, min_df=2).fit(texts), texts, 2).shape
    (6, 2)
    """
    # Not at the top: reading texts needs no networks.
    from tailwise.sequence.vectors import token_vectors

    X = sequences.transform(texts)
    return token_vectors(X, np.arange(1, len(sequences.words) + 1, dtype=np.float32), dim)


def read_word_vectors(path: str | Path, words: Sequence[str]) -> np.ndarray:
    """The vectors of ``words``, (n_words, dim) float32, from a file; a word that it has not gets zeros.

    ``path`` is a text file in the ``.vec`` format (a word and its numbers a line, an optional first line with two
    counts), or an ``.npy`` array beside a ``.txt`` file of the same name with a word a line.
    """
    path = check_file(path)
    number = {word: n for n, word in enumerate(words)}
    found: dict[int, np.ndarray] = {}
    for line, word, vector in _vectors_in(path, number):
        first = next(iter(found.values()), vector)
        if vector.size != first.size:
            raise DataFormatError(path, line, f"{vector.size} numbers", f"{first.size}, as in lines before")
        if not np.isfinite(vector).all():
            found_there = f"NaN, infinity or a number beyond float32 for {word!r}"
            raise DataFormatError(path, line, found_there, "finite numbers")
        found[number[word]] = vector
    if not found:
        raise InvalidInput(f"{path} has none of the {len(words):,} words; pass vectors of the texts' language")
    vectors = np.zeros((len(words), next(iter(found.values())).size), np.float32)
    for n, row in found.items():
        vectors[n] = row
    return vectors


def _vectors_in(path: Path, wanted: Container[str]) -> Iterator[tuple[int, str, np.ndarray]]:
    """Line, word and vector of the words that are wanted."""
    if path.suffix == ".npy":
        table = read_array(path)
        names = split_lines(read_text(path.with_suffix(".txt")))
        if table.ndim != 2 or table.dtype.kind not in "fiu" or len(names) != len(table):
            of = f"{table.dtype} of shape {table.shape} beside {len(names):,} words"
            raise DataFormatError(path, None, of, f"numbers, a row for each word of {path.stem}.txt")
        for place in [place for place, name in enumerate(names) if name in wanted]:
            yield place + 1, names[place], _as_float32(table[place])
        return
    for block in line_blocks(path, _BLOCK_BYTES):
        for line, text in enumerate(block.data.tobytes().split(b"\n")[:-1], start=block.line):
            word, *values = text.rstrip().split(b" ")
            try:
                name = word.decode()
            except UnicodeDecodeError as error:
                raise DataFormatError(path, line, shown(word), "text in UTF-8") from error
            if name not in wanted or (line == 1 and len(values) == 1):
                continue
            if not values or not all(map(_NUMBER.fullmatch, values)):
                raise DataFormatError(path, line, shown(text), "a word and numbers")
            yield line, name, _as_float32([float(value) for value in values])


def _as_float32(values: Any) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(np.float32)
