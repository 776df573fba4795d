"""TF-IDF of words and pieces of words: what turns texts into rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from tailwise.data.texts import ONLY_FIELD, check_texts, in_fields
from tailwise.errors import InvalidInput, argument
from tailwise.parameters import Flag, Integer, OrNone, check_parameters
from tailwise.persistence.checks import check_exact, check_finite, check_strings, check_that
from tailwise.rows import smooth_idf, unit_rows
from tailwise.text.cutting import Cut, Folding, into_pieces, into_words
from tailwise.text.fields import FieldChoice, check_weights, weigh_fields
from tailwise.text.places import field_places, find_terms
from tailwise.text.rows import (
    CountOrShare,
    KnownLabels,
    Lengths,
    Spans,
    TextRows,
    Words,
    check_groups,
    groups_of,
    more_of,
    more_ranges,
    placed,
    without_more,
)
from tailwise.text.terms import Fields, KnownTerms, Learnt, Limits, Weighing, learn_terms, terms_in_order


class TextFeatures(TextRows):
    """TF-IDF rows of unit length from texts, for words and, if asked, for pieces of words.

    The values are those of scikit-learn's ``TfidfVectorizer`` (smooth idf, L2 norm), computed by compiled code on
    every core: about 40 MB of text a second and core, where scikit-learn does about 11. Words are runs of two or more
    letters, digits and underscores. With ``char_ngrams`` the words' part and the pieces' part weigh the same.
    Saved without pickle: the terms as text, their idf as numbers. The groups of columns are ``"words"`` and
    ``"pieces"``; where a field has columns of its own ``"title words"`` and so on.

    Parameters
    ----------
    word_ngrams : int, default=1
        Runs of up to so many words are terms too.
    char_ngrams : (int, int) or None, default=None
        Also use pieces of words of so many characters, as ``analyzer="char_wb"`` does: (3, 5) finds word stems and
        stands misspellings.
    fields : {"balanced", "joined", "separate"} or dict, default="balanced"
        What becomes of title and abstract (see :class:`~tailwise.Texts`). Joined they are one text. A dict such as
        ``{"title": 1, "abstract": 2}`` makes a row of each field that it names, of unit length however long the field,
        and adds them up with these weights; balanced ones come from the fields' lengths (``fields_``, see
        :func:`~tailwise.text.fields.weigh_fields`), and texts of one field are read as they are. Separate fields have
        columns of their own, so that a word of the title is another feature than the same word of the abstract, and
        weigh the same. Of a plain string the first line is the first field and all others are the second.
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
    fields_: dict[str, float]
    _tables: tuple[np.ndarray, dict[str, KnownTerms]] | None = None

    _parameters = {
        "word_ngrams": Integer(low=1, high=10),
        "char_ngrams": OrNone(Lengths()),
        "fields": FieldChoice(),
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
        fields: str | dict[str, float] = "balanced",
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
        self.fields = fields
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.stop_words = stop_words
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        self.sublinear_tf = sublinear_tf
        self.n_jobs = n_jobs

    def fit(self, texts: Sequence[str], y: Any = None, *, labels: KnownLabels | None = None) -> Self:
        """Learn the terms and their idf from ``texts``."""
        del y, labels
        self._learn(texts)
        return self

    def fit_transform(  # type: ignore[override]
        self, texts: Sequence[str], y: Any = None, *, labels: KnownLabels | None = None
    ) -> sparse.csr_array:
        """``fit`` and the rows of ``texts``, which are cut into terms once."""
        del y, labels
        learnt = self._learn(texts)
        blocks = self._blocks(self.fields_)
        return self._beside(
            [self._weighing(block).weigh_learnt(part, self.n_jobs) for block, part in zip(blocks, learnt, strict=True)]
        )

    def _learn(self, texts: Sequence[str]) -> list[Learnt]:
        check_parameters(self)
        texts = check_texts(texts)
        fields = weigh_fields(self.fields, texts)
        limits = Limits(self.min_df, self.max_df, self.max_features)
        by_field, blocks = _by_field(texts, fields), self._blocks(fields)
        parts = [learn_terms(block.read(by_field), block.cut, limits, self.n_jobs) for block in blocks]
        terms = [term for part in parts for term in part.terms]
        if not terms:
            raise InvalidInput(
                f"no term is left of {len(texts):,} texts with {argument('min_df', self.min_df)} and "
                f"{argument('max_df', self.max_df)}; lower min_df or raise max_df"
            )
        self.fields_ = fields
        self.vocabulary_ = terms
        self.hashes_ = np.concatenate([part.hashes for part in parts])
        self.idf_ = np.concatenate([part.idf for part in parts])
        self.groups_ = groups_of((block.group, part.idf.size) for block, part in zip(blocks, parts, strict=True))
        return parts

    def update(self, texts: Sequence[str], n_known: int) -> Self:
        """Take in the words of more ``texts`` than the first ``n_known``, in new columns at the end.

        Old columns keep their place and idf, so that rows made before stay valid. A new word comes in as many of the
        new texts as ``min_df`` says. Where there is more than one group of columns, the new words of a group are a
        group of their own, ``"words +1"``. Pieces of words stand for new words already, and get no column.

        >>> features = TextFeatures(min_df=1).fit(["law of the sea"]).update(["tax law"], n_known=1)
        >>> list(features.get_feature_names_out())
        ['law', 'of', 'sea', 'the', 'tax']
        """
        self._check_is_fitted()
        texts = check_texts(texts)
        blocks = self._blocks(self.fields_)
        if not len(texts):
            return self
        by_field = _by_field(texts, self.fields_)
        for block in blocks:
            if block.kind == "words":
                self._grow(block, block.read(by_field), n_known, alone=len(blocks) == 1)
        return self

    def _grow(self, block: _Block, texts: Fields, n_known: int, *, alone: bool) -> None:
        """New columns for the words of a block that it does not have."""
        own, n_new = self._columns(block), len(texts[0])
        found = learn_terms(texts, block.cut, Limits(self.min_df, self.max_df, None), self.n_jobs)
        new = np.flatnonzero(~np.isin(found.hashes, self.hashes_[own]))
        if self.max_features is not None:
            new = new[: max(0, self.max_features - own.size)]
        if not new.size:
            return
        # learn_terms weighs by the new texts alone: 1 + n_having of them is (1 + n_new) / e^(idf - 1).
        having = (1.0 + n_new) / np.exp(found.idf[new].astype(np.float64) - 1.0) - 1.0
        self.vocabulary_ = self.vocabulary_ + [found.terms[i] for i in new]
        self.hashes_ = np.concatenate([self.hashes_, found.hashes[new]])
        self.idf_ = np.concatenate([self.idf_, smooth_idf(having, n_known + n_new)])
        sizes = [(name, last - first) for name, (first, last) in self.groups_.items()]
        more = (more_of(block.group, self.groups_), new.size)
        self.groups_ = groups_of([(block.group, len(self.vocabulary_))] if alone else [*sizes, more])

    def _columns(self, block: _Block) -> np.ndarray:
        """The columns of a block: those it had at first, then those that came later."""
        ranges = [self.groups_[block.group], *more_ranges(self.groups_).get(block.group, ())]
        return np.concatenate([np.arange(first, last) for first, last in ranges])

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows (n_texts, n_features), float32, of unit length; a text without known terms is an empty row."""
        self._check_is_fitted()
        by_field = _by_field(check_texts(texts), self.fields_)
        blocks = self._blocks(self.fields_)
        return self._beside(
            [
                self._weighing(block).weigh(block.read(by_field), block.cut, self._known(block), self.n_jobs)
                for block in blocks
            ]
        )

    def _beside(self, parts: list[sparse.csr_array]) -> sparse.csr_array:
        """Rows from those of each block of columns, all of unit length."""
        if len(parts) == 1:
            return parts[0]
        X = unit_rows(sparse.csr_array(sparse.hstack(parts, format="csr")))
        return placed(X, np.concatenate([self._columns(block) for block in self._blocks(self.fields_)]))

    @property
    def field_names(self) -> list[str]:
        """The fields that are told apart."""
        return list(self.fields_)

    def _weighing(self, block: _Block) -> Weighing:
        return Weighing(tuple(block.weights.values()), self.sublinear_tf)

    def _known(self, block: _Block) -> KnownTerms:
        """The terms of a block of columns, to be looked up; kept until other terms are learnt."""
        # Compared by identity: a copy that learns more shares what was kept here, and has other hashes.
        if self._tables is None or self._tables[0] is not self.hashes_:
            self._tables = (self.hashes_, {})
        tables = self._tables[1]
        if block.group not in tables:
            own = self._columns(block)
            tables[block.group] = KnownTerms.of(self.hashes_[own], self.idf_[own])
        return tables[block.group]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The terms, one a column; pieces of words stand between bars, and separate fields before their terms."""
        del input_features
        self._check_is_fitted()
        names = np.array(self.vocabulary_, dtype=object)
        for block in self._blocks(self.fields_):
            own = self._columns(block)
            names[own] = [block.named(term) for term in names[own]]
        return names

    def column_names(self, columns: Sequence[int]) -> list[str]:
        """The names of some columns, as ``get_feature_names_out`` has them."""
        self._check_is_fitted()
        groups = {block.group: block for block in self._blocks(self.fields_)}
        named = []
        for column in columns:
            group = next(name for name, (first, last) in self.groups_.items() if first <= column < last)
            named.append(groups[without_more(group)].named(self.vocabulary_[column]))
        return named

    def spans(self, text: Sequence[str], columns: Sequence[int]) -> Spans:
        """Every place of the terms that ``columns`` are, runs of words from the first to the last of them.

        >>> features = TextFeatures(2, min_df=1).fit(["law of the sea"])
        >>> features.spans(["The Sea, the sea!"], [features.vocabulary_.index("the sea")])
        {6: [(0, 7), (9, 16)]}
        """
        self._check_is_fitted()
        found: Spans = {}
        pieces = field_places(text, list(self.fields_))
        for block in self._blocks(self.fields_):
            own = np.intersect1d(columns, self._columns(block)).tolist()
            wanted = {int(self.hashes_[column]): column for column in own}
            for field in block.weights if wanted else ():
                for column, place in find_terms(*pieces[field], block.cut, wanted):
                    found.setdefault(column, []).append(place)
        return {column: sorted(places) for column, places in found.items()}

    def words_in_order(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The columns of the words of each text in their order, unknown ones left out, and where each text begins."""
        self._check_is_fitted()
        cut, own = self._blocks(self.fields_)[0].cut, slice(*self.groups_["words"])
        return terms_in_order(check_texts(texts), cut, self.hashes_[own])

    def _restore(self, state: dict[str, Any]) -> None:
        if "n_words_" in state:  # of folders that were written before there were fields and groups
            n_words, n_terms = state.pop("n_words_"), len(state["vocabulary_"])
            sizes = [("words", n_words), ("pieces", n_terms - n_words)]
            state |= {"groups_": groups_of(sizes if self.char_ngrams else sizes[:1]), "fields_": {}}
        super()._restore(state)

    def _check_state(self) -> None:
        super()._check_state()
        n = len(check_strings("vocabulary_", self.vocabulary_))
        check_that(n, "vocabulary_ is empty")
        check_exact("hashes_", self.hashes_, np.uint64, (n,))
        check_finite("idf_", check_exact("idf_", self.idf_, np.float32, (n,)))
        check_groups(self.groups_, n)
        check_weights(self.fields, self.fields_)
        check_strings("stop_words", list(self.stop_words or ()))
        expected = [block.group for block in self._blocks(self.fields_)]
        first, later = list(self.groups_)[: len(expected)], list(self.groups_)[len(expected) :]
        check_that(first == expected, f"groups_ begin with {first}, not {expected}")
        known = sum(len(more_ranges(self.groups_).get(name, ())) for name in expected)
        check_that(known == len(later), f"groups_ end with {later}, which are none of {expected}")

    def _blocks(self, fields: dict[str, float]) -> list[_Block]:
        """The blocks of columns: words of each field, then pieces of words if asked."""
        folding = Folding(self.lowercase, self.strip_accents)
        cuts = {"words": into_words(self.word_ngrams, tuple(self.stop_words or ()), folding)}
        if self.char_ngrams is not None:
            cuts["pieces"] = into_pieces(*self.char_ngrams, folding)
        apart = [{field: weight} for field, weight in fields.items()] if self.fields == "separate" else [fields]
        return [_Block(kind, cut, each or _JOINED) for kind, cut in cuts.items() for each in apart]


_JOINED = {ONLY_FIELD: 1.0}


def _by_field(texts: Sequence[str], fields: dict[str, float]) -> dict[str, Sequence[str]]:
    """The texts of each field; where fields are joined they are one."""
    return {**in_fields(texts, list(fields))} if fields else {ONLY_FIELD: texts}


class _Block(NamedTuple):
    """Columns of the terms that fields are cut into, and what each field weighs in them."""

    kind: str
    cut: Cut
    weights: dict[str, float]

    @property
    def field(self) -> str | None:
        """The one field whose columns these are."""
        return next(iter(self.weights)) if len(self.weights) == 1 and self.weights is not _JOINED else None

    def read(self, by_field: dict[str, Sequence[str]]) -> Fields:
        """The texts of its fields."""
        return [by_field[field] for field in self.weights]

    def named(self, term: str) -> str:
        """The column of a term: pieces of words stand between bars, and a separate field before its terms."""
        before = "" if self.field is None else f"{self.field}: "
        bar = "|" if self.kind == "pieces" else ""
        return f"{before}{bar}{term}{bar}"

    @property
    def group(self) -> str:
        """What the columns are called."""
        return self.kind if self.field is None else f"{self.field} {self.kind}"
