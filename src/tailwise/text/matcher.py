"""Names of labels found in texts, as columns that know their labels: :class:`LabelMatcher`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy import sparse

from tailwise.data.texts import ONLY_FIELD, Texts, check_texts
from tailwise.errors import InvalidInput
from tailwise.kernels.text import names as kernels
from tailwise.kernels.text.terms import build_table
from tailwise.parallel import map_blocks
from tailwise.parameters import Flag, Integer, OrNone, check_parameters
from tailwise.persistence.checks import (
    check_exact,
    check_finite,
    check_indices,
    check_monotone,
    check_offsets,
    check_strings,
    check_that,
)
from tailwise.text.cutting import blocks_of, table_size
from tailwise.text.finding import (
    Tables,
    count_stems,
    cut_segments,
    cut_words,
    find_names,
    locate_names,
    split_compounds,
    stem_hashes,
)
from tailwise.text.label_names import learn_names, names_of, near_labels
from tailwise.text.places import field_places
from tailwise.text.rows import Groups, KnownLabels, Language, Spans, TextRows, groups_of

FACTS = (
    "words of the name",
    "characters of the name",
    "rarity of its words",
    "times found",
    "times found outside longer names",
    "times found in the title",
    "times found at the end of compounds",
    "times found at the beginning of compounds",
    "first found at word",
    "last found at this share of the text",
    "labels of this name",
    "kind of name",
    "qualifier left out",
    "words of the text",
    "near labels found too",
)
"""What is known of a label that was found in a text: the columns that each label has, in this order."""


class LabelMatcher(TextRows):
    """Finds the names of labels in texts: for each label that is found, a few columns that say how.

    Names are the preferred ones and the synonyms of the vocabulary, or the labels' names. They are matched word by
    word, without endings (Snowball, by the language of the name), the longest first; a qualifier in brackets at the
    end of a name is left out. In languages that write compounds as one word a name is also found at their beginning and
    end. Label l has the columns ``l · 15`` to ``l · 15 + 14``, whose meaning is :data:`FACTS`; a label that is not
    found has none but zeros. All columns are the group ``"names"``, which :class:`~tailwise.MatchedNames` reads.

    Costs: 100,000 names in 10,000 records take a few seconds. Words of training texts are looked up once each.

    Parameters
    ----------
    language : str or None, default=None
        Of names whose vocabulary does not tell it, such as ``"de"``; None detects it from the names together.
    compounds : bool, default=True
        Look into compounds.
    longest : int, default=6
        Names of more words are left out.
    n_jobs : int or None, default=None
        Threads; None is every core.

    Examples
    --------
    >>> from scipy import sparse
    >>> labels = KnownLabels(["u:1", "u:2"], ["Sea law", "Fish (food)"], sparse.csr_array((1, 2)))
    >>> matcher = LabelMatcher(language="en").fit(["Laws of fishes"], labels=labels)
    >>> matcher.transform(["Sea laws and fishes, fishes"]).toarray().reshape(2, 15)[:, [0, 3]]
    array([[2., 1.],
           [1., 2.]], dtype=float32)
    """

    finds_labels = True

    _parameters = {"language": OrNone(Language()), "compounds": Flag(), "longest": Integer(low=1, high=20)}

    fields_: list[str]
    languages_: list[str]
    runs_: np.ndarray
    run_names_: np.ndarray
    name_facts_: np.ndarray
    name_indptr_: np.ndarray
    name_labels_: np.ndarray
    name_kinds_: np.ndarray
    qualified_: np.ndarray
    near_indptr_: np.ndarray
    near_labels_: np.ndarray
    known_stems_: np.ndarray
    _kept: tuple[np.ndarray, Tables] | None = None

    def __init__(
        self, language: str | None = None, *, compounds: bool = True, longest: int = 6, n_jobs: int | None = None
    ) -> None:
        self.language = language
        self.compounds = compounds
        self.longest = longest
        self.n_jobs = n_jobs

    @property
    def groups_(self) -> Groups:  # type: ignore[override]
        """One group, of 15 columns for each label."""
        return groups_of([("names", (self.near_indptr_.size - 1) * len(FACTS))])

    def fit(self, texts: Sequence[str], y: Any = None, *, labels: KnownLabels | None = None) -> Self:
        """Learn the names of ``labels``, and from ``texts`` how rare their words are and which words there are."""
        del y
        check_parameters(self)
        if labels is None:
            raise InvalidInput(
                "labels=None leaves nothing to look for; pass KnownLabels(ids, names, Y), or fit a Tagger"
            )
        texts = check_texts(texts)
        self.fields_ = list(texts.fields) if isinstance(texts, Texts) else [ONLY_FIELD]
        names = names_of(labels, self.language)
        self.languages_ = sorted({name.language for name in names})
        having, known = count_stems(texts, self.languages_, self.n_jobs)
        learnt = learn_names(names, self.languages_, self.longest, having, len(texts))
        self.runs_, self.run_names_ = learnt.runs, learnt.run_names
        self.name_facts_, self.name_indptr_, self.name_labels_ = learnt.facts, learnt.indptr, learnt.labels
        self.name_kinds_, self.qualified_ = learnt.kinds, learnt.qualified
        self.known_stems_ = known
        self.near_indptr_, self.near_labels_ = near_labels(labels)
        return self

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows (n_texts, 15 · n_labels), float32: the facts of the labels that each text names."""
        self._check_is_fitted()
        segments = cut_segments(check_texts(texts), self.fields_)
        tables = self._tables()
        width = len(self.fields_)
        blocks = [block for block in blocks_of(segments, whole=width) if block]
        parts = map_blocks(
            lambda block: self._rows(block, tables),
            blocks,
            n_jobs=self.n_jobs,
            description="Finding names" if len(blocks) > 4 else "",
        )
        if not parts:
            return sparse.csr_array((0, self.n_columns_), dtype=np.float32)
        return sparse.csr_array(sparse.vstack(parts, format="csr")) if len(parts) > 1 else parts[0]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The facts of each label, by the label's number."""
        del input_features
        self._check_is_fitted()
        n_labels = self.near_indptr_.size - 1
        return np.array([f"name of label {label}: {fact}" for label in range(n_labels) for fact in FACTS], dtype=object)

    def _rows(self, segments: list[str], tables: Tables) -> sparse.csr_array:
        """The rows of a block of whole texts, given segment by segment."""
        cut = cut_words(segments)
        stems = np.stack([stem_hashes(cut.spelled, language) for language in self.languages_])
        parts = split_compounds(cut.spelled, self.languages_ if self.compounds else [], tables)
        finds, finds_indptr = find_names(cut, stems, self.longest, tables, parts)
        n_texts = len(segments) // len(self.fields_)
        room = int(np.diff(self.name_indptr_)[finds.name].sum())
        labels, facts = np.empty(room, np.int32), np.empty((room, kernels.N_FACTS), np.float32)
        indptr = np.empty(n_texts + 1, np.int64)
        seen = np.full(self.near_indptr_.size - 1, -1, np.int32)
        n = kernels.describe_finds(
            finds, finds_indptr, cut.indptr, len(self.fields_), tables.names, seen, labels, facts, indptr
        )
        columns = labels[:n, None].astype(np.int64) * kernels.N_FACTS + np.arange(kernels.N_FACTS)
        made = sparse.csr_array(
            (facts[:n].ravel(), columns.ravel().astype(np.int32), (indptr * kernels.N_FACTS).astype(np.int32)),
            shape=(n_texts, self.n_columns_),
        )
        made.eliminate_zeros()
        return made

    def column_names(self, columns: Sequence[int]) -> list[str]:
        """The facts that columns are, by the label's number."""
        return [f"name of label {column // len(FACTS)}: {FACTS[column % len(FACTS)]}" for column in columns]

    def spans(self, text: Sequence[str], columns: Sequence[int]) -> Spans:
        """Where the names of labels stand: the same places for each of a label's columns; compounds are whole words."""
        self._check_is_fitted()
        tables = self._tables()
        pieces = field_places(text, [] if self.fields_ == [ONLY_FIELD] else self.fields_)
        wanted = {column // len(FACTS) for column in columns}
        places: dict[int, list[tuple[int, int]]] = {}
        for piece, start in pieces.values():
            for name, (first, last) in locate_names(piece, self.languages_, self.longest, self.compounds, tables):
                for label in self.name_labels_[self.name_indptr_[name] : self.name_indptr_[name + 1]].tolist():
                    if label in wanted:
                        places.setdefault(label, []).append((start + first, start + last))
        return {c: sorted(set(places[c // len(FACTS)])) for c in columns if c // len(FACTS) in places}

    @property
    def field_names(self) -> list[str]:
        """The fields that texts had when names were learnt."""
        return [] if self.fields_ == [ONLY_FIELD] else self.fields_

    def _tables(self) -> Tables:
        """What names are looked up in; kept until other names are learnt, as it takes longer than one text."""
        if self._kept is None or self._kept[0] is not self.runs_:
            self._kept = (self.runs_, self._build_tables())
        return self._kept[1]

    def _build_tables(self) -> Tables:
        keys = np.zeros(table_size(self.runs_.size), np.uint64)
        places = np.empty(keys.size, np.int32)
        build_table(self.runs_, keys, places)
        values = np.where(keys != 0, self.run_names_[np.where(keys != 0, places, 0)], -1).astype(np.int32)
        known = np.zeros(table_size(self.known_stems_.size), np.uint64)
        build_table(self.known_stems_, known, np.empty(known.size, np.int32))
        names = kernels.Names(
            self.name_indptr_,
            self.name_labels_,
            self.name_kinds_.astype(np.float32),
            self.qualified_.astype(np.float32),
            self.name_facts_,
            self.near_indptr_,
            self.near_labels_,
        )
        return Tables(keys, values, known, names)

    def _check_state(self) -> None:
        super()._check_state()
        check_that(check_strings("fields_", self.fields_), "fields_ is empty")
        check_that(check_strings("languages_", self.languages_), "languages_ is empty")
        check_exact("runs_", self.runs_, np.uint64, (None,))
        check_that(self.runs_.size and self.runs_.all(), "runs_ is empty, or a hash is 0")
        n_names = check_exact("name_facts_", self.name_facts_, np.float32, (None, 3)).shape[0]
        check_finite("name_facts_", self.name_facts_)
        names = check_exact("run_names_", self.run_names_, np.int32, self.runs_.shape)
        check_indices("run_names_", names, n_names, missing=True)
        n_pairs = check_exact("name_labels_", self.name_labels_, np.int32, (None,)).size
        check_exact("name_indptr_", self.name_indptr_, np.int64, (n_names + 1,))
        check_offsets("name_indptr_", self.name_indptr_, n_names, n_pairs)
        n_near = check_exact("near_labels_", self.near_labels_, np.int32, (None,)).size
        n_labels = check_exact("near_indptr_", self.near_indptr_, np.int64, (None,)).size - 1
        check_that(n_labels > 0, "near_indptr_ is empty")
        check_offsets("near_indptr_", self.near_indptr_, n_labels, n_near)
        check_indices("near_labels_", self.near_labels_, n_labels)
        check_indices("name_labels_", self.name_labels_, n_labels)
        check_exact("name_kinds_", self.name_kinds_, np.int8, (n_pairs,))
        check_exact("qualified_", self.qualified_, np.bool_, (n_pairs,))
        known = check_exact("known_stems_", self.known_stems_, np.uint64, (None,))
        check_monotone("known_stems_", known, strict=True)
