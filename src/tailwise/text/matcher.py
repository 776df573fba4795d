"""Names of labels found in texts, as columns that know their labels: :class:`LabelMatcher`."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from tailwise.data.texts import ONLY_FIELD, Texts, check_texts, in_fields
from tailwise.errors import InvalidInput, MissingExtra
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
from tailwise.rows import smooth_idf
from tailwise.text.rows import Groups, KnownLabels, Language, TextRows, groups_of
from tailwise.text.stemming import LINKS, base_language, stem
from tailwise.text.terms import Folding, blocks_of, into_words, table_size

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

_log = logging.getLogger("tailwise.text")
_CUT = into_words(1, (), Folding(), shortest=1)
_QUALIFIER = re.compile(r"\s+[(<][^()<>]*[)>]\s*$")
_KNOWN_FROM = 3
"""Training texts with a stem, from which on it may be a part of compounds."""


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
        names = _names_of(labels, self.language)
        self.languages_ = sorted({name.language for name in names})
        having, known = self._count_stems(texts)
        self._learn_names(names, having, len(texts))
        self.known_stems_ = known
        self.near_indptr_, self.near_labels_ = _near(labels)
        return self

    def transform(self, texts: Sequence[str]) -> sparse.csr_array:
        """Rows (n_texts, 15 · n_labels), float32: the facts of the labels that each text names."""
        self._check_is_fitted()
        segments = _segments(check_texts(texts), self.fields_)
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

    def _rows(self, segments: list[str], tables: _Tables) -> sparse.csr_array:
        """The rows of a block of whole texts, given segment by segment."""
        cut = _cut_words(segments)
        stems = np.stack([_stem_hashes(cut.spelled, language) for language in self.languages_])
        parts = self._compounds(cut.spelled, tables)
        finds, finds_indptr = _find(cut, stems, self.longest, tables, parts)
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
            (facts[:n].ravel(), columns.ravel().astype(np.int32), indptr * kernels.N_FACTS),
            shape=(n_texts, self.n_columns_),
        )
        made.eliminate_zeros()
        return made

    def _compounds(self, words: list[str], tables: _Tables) -> kernels.Parts:
        """The names that are parts of each word, in any of the languages that have compounds."""
        found = [
            _split(words, language, _salt(place), tables)
            for place, language in enumerate(self.languages_)
            if self.compounds and base_language(language) in LINKS
        ]
        if len(found) == 1:
            return found[0]
        counts = sum((np.diff(part.indptr) for part in found), np.zeros(len(words), np.int64))
        owner = np.concatenate(
            [np.empty(0, np.int64), *(np.repeat(np.arange(len(words)), np.diff(p.indptr)) for p in found)]
        )
        order = np.argsort(owner, kind="stable")
        names = np.concatenate([np.empty(0, np.int32), *(part.names for part in found)])[order]
        place = np.concatenate([np.empty(0, np.int8), *(part.place for part in found)])[order]
        return kernels.Parts(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), names, place)

    def _count_stems(self, texts: Sequence[str]) -> tuple[dict[int, int], np.ndarray]:
        """In how many texts each stem comes, by its salted hash, and the stems that come in a few texts, unsalted."""

        def count(block: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
            cut = _cut_words(block)
            text = np.repeat(np.arange(len(block)), np.diff(cut.indptr))
            pairs = []
            for language in self.languages_:
                hashes = _stem_hashes(cut.spelled, language)
                distinct, number = np.unique(hashes, return_inverse=True)
                once = np.unique(text * distinct.size + number[cut.words]) % max(1, distinct.size)
                pairs.append((distinct, np.bincount(once, minlength=distinct.size)))
            return pairs

        blocks = blocks_of(texts)
        parts = map_blocks(count, blocks, n_jobs=self.n_jobs, description="Learning stems" if len(blocks) > 4 else "")
        having: dict[int, int] = {}
        known: list[np.ndarray] = [np.empty(0, np.uint64)]
        for place, language in enumerate(self.languages_):
            every = np.concatenate([pairs[place][0] for pairs in parts])
            distinct, number = np.unique(every, return_inverse=True)
            counts = np.bincount(number, np.concatenate([pairs[place][1] for pairs in parts]), distinct.size)
            having |= zip((distinct ^ _salt(place)).tolist(), counts.astype(int).tolist(), strict=True)
            if base_language(language) in LINKS:
                known.append(distinct[counts >= _KNOWN_FROM])
        return having, np.unique(np.concatenate(known))

    def _learn_names(self, names: list[_Name], having: dict[int, int], n_texts: int) -> None:
        """``runs_`` and what they lead to, from the names of all labels."""
        cut = _cut_words([name.text for name in names])
        hashes = np.empty(cut.words.size, np.uint64)
        owner = np.repeat(np.arange(len(names)), np.diff(cut.indptr))
        spoken = np.array([self.languages_.index(name.language) for name in names], np.int64)
        characters = np.zeros(cut.words.size, np.float32)
        for place, language in enumerate(self.languages_):
            own = spoken[owner] == place
            hashes[own] = (_stem_hashes(cut.spelled, language) ^ _salt(place))[cut.words[own]]
            characters[own] = np.diff(_spelled(cut.spelled, language)[1])[cut.words[own]]
        runs = np.empty(hashes.size, np.uint64)
        kernels.hash_runs(hashes, cut.indptr, runs)
        sizes = np.diff(cut.indptr)
        taken = np.flatnonzero((sizes > 0) & (sizes <= self.longest))
        whole, name_of = np.unique(runs[cut.indptr[taken + 1] - 1], return_inverse=True)
        ends = np.zeros(runs.size, bool)
        ends[cut.indptr[taken + 1] - 1] = True
        begun = np.setdiff1d(runs[~ends & np.isin(owner, taken)], whole)
        self.runs_ = np.concatenate([whole, begun])
        self.run_names_ = np.concatenate([np.arange(whole.size), np.full(begun.size, -1)]).astype(np.int32)
        idf = smooth_idf(np.array([having.get(value, 0) for value in hashes.tolist()]), n_texts)
        facts = np.zeros((whole.size, 3), np.float32)
        for column, values in enumerate((np.ones(hashes.size), characters, idf)):
            facts[name_of, column] = np.add.reduceat(np.append(values, 0), cut.indptr[:-1])[taken]
        self.name_facts_ = facts
        label = np.array([names[i].label for i in taken], np.int64)
        kind = np.array([names[i].kind for i in taken], np.int8)
        # A label may have one run of stems twice, as name and as synonym: the better kind counts.
        order = np.lexsort((kind, label, name_of))
        first = np.append(True, (np.diff(name_of[order]) != 0) | (np.diff(label[order]) != 0))
        order = order[first]
        self.name_indptr_ = np.searchsorted(name_of[order], np.arange(whole.size + 1)).astype(np.int64)
        self.name_labels_ = label[order].astype(np.int32)
        self.name_kinds_ = kind[order]
        self.qualified_ = np.array([names[i].qualified for i in taken], np.bool_)[order]

    def _tables(self) -> _Tables:
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
        return _Tables(keys, values, known, names)

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


class _Name(NamedTuple):
    label: int
    text: str
    language: str
    kind: int
    qualified: bool


class _Words(NamedTuple):
    """Segments as numbers of distinct words."""

    words: np.ndarray  # (n,) int32
    indptr: np.ndarray  # (segments + 1,) int64
    spelled: list[str]


class _Tables(NamedTuple):
    keys: np.ndarray
    values: np.ndarray
    known: np.ndarray
    names: kernels.Names


def _names_of(labels: KnownLabels, language: str | None) -> list[_Name]:
    """All names of all labels, without qualifiers."""
    found: list[_Name] = []
    named = np.zeros(len(labels.ids), bool)
    vocabulary = labels.vocabulary
    if vocabulary is not None:
        column = np.full(len(vocabulary.ids), -1, np.int64)
        places = vocabulary.places(labels.ids)
        column[places[places >= 0]] = np.flatnonzero(places >= 0)
        terms = vocabulary.terms
        for concept, text, spoken, kind in zip(
            terms.concept.tolist(), terms.text, terms.language.tolist(), terms.kind.tolist(), strict=True
        ):
            if column[concept] >= 0:
                found.append(_name(int(column[concept]), text, vocabulary.languages[spoken], kind + 1))
                named[column[concept]] = True
    found += [
        _name(label, labels.names[label], "", 1)
        for label in np.flatnonzero(~named).tolist()
        if labels.names[label] != labels.ids[label] or vocabulary is None
    ]
    if not found:
        raise InvalidInput("no label has a name that could be found in texts; pass names=, or a vocabulary")
    untold = language or _language_of(name.text for name in found if not name.language)
    return [name if name.language else name._replace(language=untold) for name in found]


def _name(label: int, text: str, language: str, kind: int) -> _Name:
    short = _QUALIFIER.sub("", text)
    return _Name(label, short or text, language, kind, bool(short) and short != text)


def _language_of(names: Iterable[str]) -> str:
    joined = " ".join(names)
    if not joined:
        return ""
    from tailwise.text.language import detect_language

    try:
        return detect_language(joined)
    except MissingExtra:
        _log.warning(
            "names are matched with their endings: pass LabelMatcher(language=), or install tailwise[language]"
        )
        return ""


def _near(labels: KnownLabels) -> tuple[np.ndarray, np.ndarray]:
    """For each label the labels that are broader or narrower: indptr int64, indices int32."""
    n = len(labels.ids)
    pairs = np.empty((0, 2), np.int64)
    if labels.vocabulary is not None and labels.vocabulary.broader.size:
        column = np.full(len(labels.vocabulary.ids), -1, np.int64)
        places = labels.vocabulary.places(labels.ids)
        column[places[places >= 0]] = np.flatnonzero(places >= 0)
        pairs = column[labels.vocabulary.broader]
        pairs = pairs[(pairs >= 0).all(axis=1)]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    near = sparse.csr_array((np.ones(len(both), np.int8), (both[:, 0], both[:, 1])), shape=(n, n))
    near.sum_duplicates()
    return near.indptr.astype(np.int64), near.indices.astype(np.int32)


def _segments(texts: Sequence[str], fields: list[str]) -> list[str]:
    """The fields of each text, one after the other."""
    if len(fields) == 1:
        return list(texts)
    return [text for row in zip(*in_fields(texts, fields).values(), strict=True) for text in row]


def _cut_words(segments: list[str]) -> _Words:
    joined, terms = _CUT(segments)
    _, first, words = np.unique(terms.hashes, return_index=True, return_inverse=True)
    spans = zip(terms.first[first].tolist(), terms.length[first].tolist(), strict=True)
    return _Words(words.astype(np.int32), terms.indptr, [joined[at : at + length] for at, length in spans])


def _stem_hashes(words: list[str], language: str) -> np.ndarray:
    """The hash of the stem of each word: (n_words,) uint64."""
    hashes = np.empty(len(words), np.uint64)
    kernels.hash_each(*_spelled(words, language), hashes)
    return hashes


def _spelled(words: list[str], language: str) -> tuple[np.ndarray, np.ndarray]:
    """The stems of words as code points of all, and where each begins."""
    stems = [stem(word, language) for word in words]
    starts = np.cumsum([0, *map(len, stems)], dtype=np.int64)
    return np.frombuffer("".join(stems).encode("utf-32-le", "surrogatepass"), np.uint32), starts


def _salt(place: int) -> np.uint64:
    """What keeps the stems of one language apart from equal ones of another."""
    return np.uint64((place * 0x9E3779B97F4A7C15) % 2**64)


def _find(
    cut: _Words, stems: np.ndarray, longest: int, tables: _Tables, parts: kernels.Parts
) -> tuple[kernels.Finds, np.ndarray]:
    salted = stems ^ np.array([_salt(place) for place in range(len(stems))], np.uint64)[:, None]
    indptr = np.empty(cut.indptr.size, np.int64)
    room = cut.words.size
    while True:
        out = kernels.Finds(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int8))
        n = kernels.find_names(cut.words, cut.indptr, salted, longest, tables.keys, tables.values, parts, out, indptr)
        if n <= room:
            return kernels.Finds(out.name[:n], out.at[:n], out.place[:n]), indptr
        room = n


def _split(words: list[str], language: str, salt: np.uint64, tables: _Tables) -> kernels.Parts:
    codes, starts = _spelled(words, language)
    known = LINKS[base_language(language)]
    links = np.zeros((len(known), max(map(len, known))), np.uint32)
    for row, link in enumerate(known):
        links[row, : len(link)] = [ord(letter) for letter in link]
    indptr = np.empty(len(words) + 1, np.int64)
    room = len(words)
    while True:
        out = kernels.Parts(indptr, np.empty(room, np.int32), np.empty(room, np.int8))
        n = kernels.split_words(codes, starts, links, tables.known, tables.keys, tables.values, salt, out, indptr)
        if n <= room:
            return kernels.Parts(indptr, out.names[:n], out.place[:n])
        room = n
