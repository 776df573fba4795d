"""TF-IDF of words and pieces of words, compiled: what turns texts into rows."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import strip_accents_unicode

from tailwise import persistence
from tailwise.errors import InvalidInput, NotFitted, argument
from tailwise.kernels.text import terms as kernels
from tailwise.parallel import map_blocks
from tailwise.parameters import Constraint, Flag, Integer, OrNone, check_parameters
from tailwise.persistence.checks import check_exact, check_finite, check_strings, check_that
from tailwise.rows import smooth_idf, unit_rows
from tailwise.validation import check_number

_CHARACTERS_A_BLOCK = 2_000_000


class CountOrShare(Constraint):
    """A number of texts as an integer, or a share of them as a float."""

    def check(self, name: str, value: Any) -> Any:
        """The value, at least 0; as a float at most 1."""
        return check_number(name, value, low=0, high=1.0 if isinstance(value, float) else np.inf)

    def __str__(self) -> str:
        return "a number of texts as an integer, or a share of them in [0, 1] as a float"


class Lengths(Constraint):
    """A pair (shortest, longest) of lengths of pieces of words."""

    def check(self, name: str, value: Any) -> Any:
        """The value, a pair in order."""
        if not isinstance(value, tuple | list) or len(value) != 2:
            raise InvalidInput(f"{name}={value!r} must be a pair (shortest, longest) or None")
        check_number(f"{name}[0]", value[0], integer=True, low=1)
        check_number(f"{name}[1]", value[1], integer=True, low=value[0], high=20)
        return value

    def __str__(self) -> str:
        return "a pair (shortest, longest)"


class Words(Constraint):
    """A list of words."""

    def check(self, name: str, value: Any) -> Any:
        """The value, anything that lists words."""
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InvalidInput(f"{name}={value!r} must be a list of words")
        return value

    def __str__(self) -> str:
        return "a list of words"


class TextRows(persistence.Saveable, TransformerMixin, BaseEstimator):
    """How texts become rows: learnt from training texts, kept beside the model that reads the rows."""

    @property
    @abstractmethod
    def n_columns_(self) -> int:
        """How many columns the rows have."""

    @abstractmethod
    def fit(self, texts: Sequence[str], y: Any = None) -> Self:
        """Learn from training texts."""

    @abstractmethod
    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows of texts, float32."""

    @abstractmethod
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """A name for each column."""

    def _check_state(self) -> None:
        check_parameters(self)

    def save(self, path: str | Path) -> None:
        """Write what was learnt as a folder that :func:`tailwise.load` opens; atomic, no pickle."""
        self._check_is_fitted()
        persistence.save(self, path)

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFitted(f"this {name} is not fitted yet; call {name}.fit(texts) first")

    def __sklearn_is_fitted__(self) -> bool:
        return any(name.endswith("_") for name in vars(self))


class TextFeatures(TextRows):
    """TF-IDF rows of unit length from texts, for words and, if asked, for pieces of words.

    The values are those of scikit-learn's ``TfidfVectorizer`` (smooth idf, L2 norm), computed by compiled code on
    every core: about 25 MB of text a second and core, where scikit-learn does about 7. Words are runs of two or more
    letters, digits and underscores. With ``char_ngrams`` the words' part and the pieces' part weigh the same.
    Saved without pickle: the terms as text, their idf as numbers.

    Parameters
    ----------
    word_ngrams : int, default=1
        Runs of up to so many words are terms too.
    char_ngrams : (int, int) or None, default=None
        Also use pieces of words of so many characters, as ``analyzer="char_wb"`` does: (3, 5) finds word stems and
        stands misspellings.
    min_df : int or float, default=2
        Leave out terms that come in fewer training texts (a float is a share of the texts).
    max_df : int or float, default=1.0
        Leave out terms that come in more training texts.
    max_features : int or None, default=None
        Keep only the most frequent terms, for words and for pieces each.
    stop_words : list of str or None, default=None
        Words that are left out.
    lowercase : bool, default=True
        Fold the case.
    strip_accents : bool, default=False
        Turn é into e.
    sublinear_tf : bool, default=True
        Use 1 + ln(count) in place of the count.
    n_jobs : int or None, default=None
        Threads; None is every core.

    Examples
    --------
    >>> features = TextFeatures(min_df=1).fit(["the law of the sea", "sea trade"])
    >>> list(features.get_feature_names_out())
    ['law', 'of', 'sea', 'the', 'trade']
    >>> features.transform(["sea and sea"]).toarray()
    array([[0., 0., 1., 0., 0.]], dtype=float32)
    """

    vocabulary_: list[str]
    hashes_: np.ndarray
    idf_: np.ndarray
    n_words_: int

    _parameters = {
        "word_ngrams": Integer(low=1, high=10),
        "char_ngrams": OrNone(Lengths()),
        "min_df": CountOrShare(),
        "max_df": CountOrShare(),
        "max_features": OrNone(Integer(low=1)),
        "stop_words": OrNone(Words()),
        "lowercase": Flag(),
        "strip_accents": Flag(),
        "sublinear_tf": Flag(),
    }

    def __init__(
        self,
        word_ngrams: int = 1,
        *,
        char_ngrams: tuple[int, int] | None = None,
        min_df: int | float = 2,
        max_df: int | float = 1.0,
        max_features: int | None = None,
        stop_words: Sequence[str] | None = None,
        lowercase: bool = True,
        strip_accents: bool = False,
        sublinear_tf: bool = True,
        n_jobs: int | None = None,
    ) -> None:
        self.word_ngrams = word_ngrams
        self.char_ngrams = char_ngrams
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.stop_words = stop_words
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.sublinear_tf = sublinear_tf
        self.n_jobs = n_jobs

    def fit(self, texts: Sequence[str], y: Any = None) -> Self:
        """Learn the terms and their idf from ``texts``."""
        del y
        check_parameters(self)
        blocks = self._blocks(_check_texts(texts))
        parts = [self._learn(blocks, cut, len(texts)) for cut in self._cuts()]
        self.n_words_ = len(parts[0].terms)
        self.vocabulary_ = [term for part in parts for term in part.terms]
        self.hashes_ = np.concatenate([part.hashes for part in parts])
        self.idf_ = np.concatenate([part.idf for part in parts])
        if not self.vocabulary_:
            raise InvalidInput(
                f"no term is left of {len(texts):,} texts with {argument('min_df', self.min_df)} and "
                f"{argument('max_df', self.max_df)}; lower min_df or raise max_df"
            )
        return self

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows (n_texts, n_features), float32, of unit length; a text without known terms is an empty row."""
        self._check_is_fitted()
        blocks = self._blocks(_check_texts(texts))
        n_words, n_terms = self.n_words_, len(self.vocabulary_)
        ranges = [(0, n_words)] if self.char_ngrams is None else [(0, n_words), (n_words, n_terms)]
        parts = [self._count(blocks, cut, first, last) for cut, (first, last) in zip(self._cuts(), ranges, strict=True)]
        if len(parts) == 1:
            return parts[0]
        return unit_rows(sparse.csr_array(sparse.hstack(parts, format="csr")))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The terms, one a column; pieces of words stand between bars."""
        del input_features
        self._check_is_fitted()
        pieces = [f"|{term}|" for term in self.vocabulary_[self.n_words_ :]]
        return np.array(self.vocabulary_[: self.n_words_] + pieces, dtype=object)

    def _check_state(self) -> None:
        super()._check_state()
        n = len(check_strings("vocabulary_", self.vocabulary_))
        check_that(n, "vocabulary_ is empty")
        check_exact("hashes_", self.hashes_, np.uint64, (n,))
        check_finite("idf_", check_exact("idf_", self.idf_, np.float32, (n,)))
        check_number("n_words_", self.n_words_, integer=True, low=n if self.char_ngrams is None else 0, high=n)
        check_strings("stop_words", list(self.stop_words or ()))

    @property
    def n_columns_(self) -> int:
        """One a term."""
        return len(self.vocabulary_)

    def word_columns(self, texts: Sequence[str]) -> sparse.csr_array:
        """The words of each text in their order: row i of ``indptr`` holds columns of words, unknown ones left out.

        No matrix to compute with: a CSR's three arrays, ``data`` being ones, whose indices may repeat.
        """
        self._check_is_fitted()
        words = self.hashes_[: self.n_words_]
        order = np.argsort(words)
        columns: list[np.ndarray] = []
        counts: list[np.ndarray] = []
        for block in self._blocks(_check_texts(texts)):
            terms = self._terms(block, self._cuts()[0])[1]
            place = np.minimum(np.searchsorted(words, terms.hashes, sorter=order), words.size - 1)
            known = words[order[place]] == terms.hashes
            columns.append(order[place][known])
            counts.append(np.diff(np.append(0, np.cumsum(known))[terms.indptr]))
        indices = np.concatenate(columns)
        indptr = np.append(0, np.cumsum(np.concatenate(counts)))
        made = sparse.csr_array((indptr.size - 1, self.n_columns_), dtype=np.float32)
        made.data, made.indices, made.indptr = np.ones(indices.size, np.float32), indices, indptr
        return made

    def _cuts(self) -> list[_Cut]:
        """How texts are cut into terms: into words, and into pieces of words if asked."""
        runs = self.word_ngrams
        cuts = [_Cut(kernels.hash_words, (runs, self._stop_table()), lambda size, texts: runs * (size // 3 + texts))]
        if self.char_ngrams is not None:
            shortest, longest = self.char_ngrams
            room = 2 * (longest - shortest + 1)
            cuts.append(_Cut(kernels.hash_pieces, (shortest, longest), lambda size, texts: room * (size + texts)))
        return cuts

    def _stop_table(self) -> np.ndarray:
        words = list(self.stop_words or ())
        keys = np.zeros(_table_size(len(words)), np.uint64)
        if words:
            nothing = np.zeros(16, np.uint64)
            cut = _Cut(kernels.hash_words, (1, nothing), lambda size, texts: size // 3 + texts)
            kernels.build_table(self._terms(words, cut)[1].hashes, keys, np.empty(keys.size, np.int32))
        return keys

    def _blocks(self, texts: Sequence[str]) -> list[list[str]]:
        blocks: list[list[str]] = [[]]
        size = 0
        for text in texts:
            if size > _CHARACTERS_A_BLOCK:
                blocks.append([])
                size = 0
            blocks[-1].append(text)
            size += len(text)
        return blocks

    def _normalised(self, block: list[str]) -> tuple[str, np.ndarray, np.ndarray]:
        if self.lowercase:
            block = [text.lower() for text in block]
        if self.strip_accents:
            block = [strip_accents_unicode(text) for text in block]
        # A newline around each text: no word touches that of another text, and every word has neighbours.
        starts = np.cumsum([1, *(len(text) + 1 for text in block)], dtype=np.int64)
        joined = "\n" + "\n".join(block) + "\n"
        return joined, np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32), starts

    def _terms(self, block: list[str], cut: _Cut) -> tuple[str, kernels.Terms]:
        joined, codes, starts = self._normalised(block)
        room = cut.room(codes.size, len(block))
        out = kernels.Terms(
            np.empty(room, np.uint64),
            np.empty(room, np.int64),
            np.empty(room, np.int32),
            np.empty(starts.size, np.int64),
        )
        size = cut.kernel(codes, starts, _word_characters(), *cut.arguments, out)
        return joined, kernels.Terms(out.hashes[:size], out.first[:size], out.length[:size], out.indptr)

    def _learn(self, blocks: list[list[str]], cut: _Cut, n_texts: int) -> _Learned:
        def count_block(block: list[str]) -> tuple[str, kernels.Terms, np.ndarray, np.ndarray]:
            joined, terms = self._terms(block, cut)
            keys = np.zeros(_table_size(terms.hashes.size), np.uint64)
            facts = np.empty((keys.size, 4), np.int64)
            kernels.count_distinct(terms, keys, facts)
            used = np.flatnonzero(keys)
            first = facts[used, 0]
            spans = kernels.Terms(terms.hashes[first], terms.first[first], terms.length[first], terms.indptr)
            return joined, spans, facts[used, 1], facts[used, 2]

        parts = map_blocks(
            count_block, blocks, n_jobs=self.n_jobs, description="Learning terms" if len(blocks) > 4 else ""
        )
        hashes, where, group = np.unique(
            np.concatenate([spans.hashes for _, spans, _, _ in parts]), return_index=True, return_inverse=True
        )
        counts, texts = (
            np.bincount(group, np.concatenate([part[i] for part in parts]), hashes.size).astype(np.int64)
            for i in (2, 3)
        )
        kept = np.flatnonzero((texts >= _limit(self.min_df, n_texts)) & (texts <= _limit(self.max_df, n_texts)))
        names = self._spell(parts, where[kept], is_word=cut.kernel is kernels.hash_words)
        order = sorted(range(len(names)), key=names.__getitem__)
        if self.max_features is not None and len(order) > self.max_features:
            order = sorted(order, key=lambda i: -counts[kept[i]])[: self.max_features]
            order.sort(key=names.__getitem__)
        chosen = kept[order]
        return _Learned([names[i] for i in order], hashes[chosen], smooth_idf(texts[chosen], n_texts))

    def _spell(self, parts: list[Any], places: np.ndarray, is_word: bool) -> list[str]:
        """The text of terms, given by their places among the distinct terms of all blocks."""
        sizes = np.cumsum([0, *(spans.hashes.size for _, spans, _, _ in parts)])
        block = np.searchsorted(sizes, places, side="right") - 1
        stop = {word.lower() if self.lowercase else word for word in self.stop_words or ()}
        names = []
        for part, place in zip(block.tolist(), (places - sizes[block]).tolist(), strict=True):
            joined, spans, _, _ = parts[part]
            first = int(spans.first[place])
            name = joined[first : first + int(spans.length[place])]
            if not is_word:
                name = re.sub(r"\W", " ", name)
            elif self.word_ngrams > 1:
                name = " ".join(word for word in re.findall(r"\w\w+", name) if word not in stop)
            names.append(name)
        return names

    def _count(self, blocks: list[list[str]], cut: _Cut, first: int, last: int) -> sparse.csr_array:
        keys = np.zeros(_table_size(last - first), np.uint64)
        values = np.empty(keys.size, np.int32)
        kernels.build_table(self.hashes_[first:last], keys, values)
        idf = self.idf_[first:last]

        def count_block(block: list[str]) -> sparse.csr_array:
            _, terms = self._terms(block, cut)
            indptr = np.empty(len(block) + 1, np.int64)
            indices, counts = np.empty(terms.hashes.size, np.int32), np.empty(terms.hashes.size, np.float32)
            size = kernels.count_known(terms, keys, values, last - first, indptr, indices, counts)
            weights = 1.0 + np.log(counts[:size]) if self.sublinear_tf else counts[:size]
            data = (weights * idf[indices[:size]]).astype(np.float32)
            rows = sparse.csr_array((data, indices[:size], indptr.astype(np.int32)), shape=(len(block), last - first))
            return unit_rows(rows)

        description = "Weighing terms" if len(blocks) > 4 else ""
        parts = map_blocks(count_block, blocks, n_jobs=self.n_jobs, description=description)
        return sparse.csr_array(sparse.vstack(parts, format="csr")) if len(parts) > 1 else parts[0]


class _Cut(NamedTuple):
    kernel: Any
    arguments: tuple[Any, ...]
    room: Callable[[int, int], int]


class _Learned(NamedTuple):
    terms: list[str]
    hashes: np.ndarray
    idf: np.ndarray


@lru_cache(maxsize=1)
def _word_characters() -> np.ndarray:
    """For each code point whether it belongs to words, as ``\\w`` of Python's re has it."""
    table = np.fromiter((chr(code).isalnum() for code in range(0x110000)), np.bool_, 0x110000)
    table[ord("_")] = True
    return table


def _table_size(entries: int) -> int:
    return 1 << max(4, int(2 * entries + 1).bit_length())


def _limit(limit: int | float, n_texts: int) -> float:
    return limit * n_texts if isinstance(limit, float) else limit


def _check_texts(texts: Any) -> Sequence[str]:
    if isinstance(texts, str):
        raise InvalidInput(f"texts={texts[:40]!r} is one text; pass a list of texts")
    texts = list(texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise InvalidInput(f"texts[{row}]={text!r} is not a str; replace missing texts by ''")
    return texts
