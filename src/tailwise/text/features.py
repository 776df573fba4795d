"""TF-IDF of words and pieces of words: what turns texts into rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from tailwise.data.texts import check_texts
from tailwise.errors import InvalidInput, argument
from tailwise.parameters import Flag, Integer, OrNone, check_parameters
from tailwise.persistence.checks import check_exact, check_finite, check_strings, check_that
from tailwise.rows import smooth_idf, unit_rows
from tailwise.text.rows import CountOrShare, Lengths, TextRows, Words
from tailwise.text.terms import (
    Cut,
    Folding,
    Limits,
    into_pieces,
    into_words,
    learn_terms,
    terms_in_order,
    weigh_terms,
)
from tailwise.validation import check_number


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
        texts = check_texts(texts)
        limits = Limits(self.min_df, self.max_df, self.max_features)
        parts = [learn_terms(texts, cut, limits, self.n_jobs) for cut in self._cuts()]
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

    def update(self, texts: Sequence[str], n_known: int) -> Self:
        """Take in the words of more ``texts`` than the first ``n_known``, in new columns at the end.

        Old columns keep their place and idf, so that rows made before stay valid. A new word comes in as many of the
        new texts as ``min_df`` says. With ``char_ngrams`` no column is added: pieces of words stand for new words.

        >>> features = TextFeatures(min_df=1).fit(["law of the sea"]).update(["tax law"], n_known=1)
        >>> list(features.get_feature_names_out())
        ['law', 'of', 'sea', 'the', 'tax']
        """
        self._check_is_fitted()
        texts = check_texts(texts)
        if self.char_ngrams is not None or not len(texts):
            return self
        found = learn_terms(texts, self._cuts()[0], Limits(self.min_df, self.max_df, None), self.n_jobs)
        new = np.flatnonzero(~np.isin(found.hashes, self.hashes_))
        if self.max_features is not None:
            new = new[: max(0, self.max_features - len(self.vocabulary_))]
        # learn_terms weighs by the new texts alone: 1 + n_having of them is (1 + n_new) / e^(idf - 1).
        having = (1.0 + len(texts)) / np.exp(found.idf[new].astype(np.float64) - 1.0) - 1.0
        self.vocabulary_ = self.vocabulary_ + [found.terms[i] for i in new]
        self.hashes_ = np.concatenate([self.hashes_, found.hashes[new]])
        self.idf_ = np.concatenate([self.idf_, smooth_idf(having, n_known + len(texts))])
        self.n_words_ = len(self.vocabulary_)
        return self

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows (n_texts, n_features), float32, of unit length; a text without known terms is an empty row."""
        self._check_is_fitted()
        texts = check_texts(texts)
        n_words, n_terms = self.n_words_, len(self.vocabulary_)
        ranges = [slice(0, n_words)] if self.char_ngrams is None else [slice(0, n_words), slice(n_words, n_terms)]
        parts = [
            weigh_terms(texts, cut, self.hashes_[own], self.idf_[own], sublinear=self.sublinear_tf, n_jobs=self.n_jobs)
            for cut, own in zip(self._cuts(), ranges, strict=True)
        ]
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

    def words_in_order(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The columns of the words of each text in their order, unknown ones left out, and where each text begins."""
        self._check_is_fitted()
        return terms_in_order(check_texts(texts), self._cuts()[0], self.hashes_[: self.n_words_])

    def _cuts(self) -> list[Cut]:
        """How texts are cut into terms: into words, and into pieces of words if asked."""
        folding = Folding(self.lowercase, self.strip_accents)
        cuts = [into_words(self.word_ngrams, tuple(self.stop_words or ()), folding)]
        return cuts if self.char_ngrams is None else [*cuts, into_pieces(*self.char_ngrams, folding)]
