"""Which names labels have, and what is learnt of each: :func:`names_of` and :func:`learn_names`."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput, MissingExtra
from tailwise.kernels.text import names as kernels
from tailwise.rows import smooth_idf
from tailwise.text.finding import cut_words, salt_of, spell_stems, stem_hashes
from tailwise.text.rows import KnownLabels

_log = logging.getLogger("tailwise.text")
_QUALIFIER = re.compile(r"\s+[(<][^()<>]*[)>]\s*$")


class Name(NamedTuple):
    """One name of a label."""

    label: int
    text: str
    language: str
    kind: int
    """1 for the preferred name, 2 for a synonym, 3 for a hidden name."""
    qualified: bool
    """Whether a qualifier was left out."""


class LearntNames(NamedTuple):
    """Names as runs of stems, each once, and the labels of each; see ``kernels.text.names.Names``."""

    runs: np.ndarray  # (n_runs,) uint64: of names and, after them, of what begins names
    run_names: np.ndarray  # (n_runs,) int32: the name, or -1
    facts: np.ndarray  # (n_names, 3) float32: words, characters, rarity
    indptr: np.ndarray  # (n_names + 1,) int64
    labels: np.ndarray  # int32
    kinds: np.ndarray  # int8
    qualified: np.ndarray  # bool


def names_of(labels: KnownLabels, language: str | None) -> list[Name]:
    """All names of all labels, without qualifiers."""
    found: list[Name] = []
    named = np.zeros(len(labels.ids), bool)
    vocabulary = labels.vocabulary
    if vocabulary is not None:
        column = _columns(labels)
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


def _columns(labels: KnownLabels) -> np.ndarray:
    """The label of each concept of the vocabulary, or -1."""
    column = np.full(len(labels.vocabulary.ids), -1, np.int64)
    places = labels.vocabulary.places(labels.ids)
    column[places[places >= 0]] = np.flatnonzero(places >= 0)
    return column


def _name(label: int, text: str, language: str, kind: int) -> Name:
    short = _QUALIFIER.sub("", text)
    return Name(label, short or text, language, kind, bool(short) and short != text)


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


def near_labels(labels: KnownLabels) -> tuple[np.ndarray, np.ndarray]:
    """For each label the labels that are broader or narrower: indptr int64, indices int32."""
    n = len(labels.ids)
    pairs = np.empty((0, 2), np.int64)
    if labels.vocabulary is not None and labels.vocabulary.broader.size:
        pairs = _columns(labels)[labels.vocabulary.broader]
        pairs = pairs[(pairs >= 0).all(axis=1)]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    near = sparse.csr_array((np.ones(len(both), np.int8), (both[:, 0], both[:, 1])), shape=(n, n))
    near.sum_duplicates()
    return near.indptr.astype(np.int64), near.indices.astype(np.int32)


def learn_names(
    names: list[Name], languages: list[str], longest: int, having: Mapping[int, int], n_texts: int
) -> LearntNames:
    """The runs of stems that are names of at most ``longest`` words, and what they lead to.

    ``having`` tells in how many of ``n_texts`` texts a stem comes, as :func:`~tailwise.text.finding.count_stems` does.
    """
    cut = cut_words([name.text for name in names])
    hashes = np.empty(cut.words.size, np.uint64)
    owner = np.repeat(np.arange(len(names)), np.diff(cut.indptr))
    spoken = np.array([languages.index(name.language) for name in names], np.int64)
    characters = np.zeros(cut.words.size, np.float32)
    for place, language in enumerate(languages):
        own = spoken[owner] == place
        hashes[own] = (stem_hashes(cut.spelled, language) ^ salt_of(place))[cut.words[own]]
        characters[own] = np.diff(spell_stems(cut.spelled, language)[1])[cut.words[own]]
    runs = np.empty(hashes.size, np.uint64)
    kernels.hash_runs(hashes, cut.indptr, runs)
    sizes = np.diff(cut.indptr)
    taken = np.flatnonzero((sizes > 0) & (sizes <= longest))
    if not taken.size:
        raise InvalidInput(f"no name of a label, such as {names[0].text!r}, has 1 to {longest} words; check the names")
    whole, name_of = np.unique(runs[cut.indptr[taken + 1] - 1], return_inverse=True)
    ends = np.zeros(runs.size, bool)
    ends[cut.indptr[taken + 1] - 1] = True
    begun = np.setdiff1d(runs[~ends & np.isin(owner, taken)], whole)
    idf = smooth_idf(np.array([having.get(value, 0) for value in hashes.tolist()]), n_texts)
    facts = np.zeros((whole.size, 3), np.float32)
    for column, values in enumerate((np.ones(hashes.size), characters, idf)):
        facts[name_of, column] = np.add.reduceat(np.append(values, 0), cut.indptr[:-1])[taken]
    label = np.array([names[i].label for i in taken], np.int64)
    kind = np.array([names[i].kind for i in taken], np.int8)
    # A label may have one run of stems twice, as name and as synonym: the better kind counts.
    order = np.lexsort((kind, label, name_of))
    first = np.append(True, (np.diff(name_of[order]) != 0) | (np.diff(label[order]) != 0))
    order = order[first]
    return LearntNames(
        runs=np.concatenate([whole, begun]),
        run_names=np.concatenate([np.arange(whole.size), np.full(begun.size, -1)]).astype(np.int32),
        facts=facts,
        indptr=np.searchsorted(name_of[order], np.arange(whole.size + 1)).astype(np.int64),
        labels=label[order].astype(np.int32),
        kinds=kind[order],
        qualified=np.array([names[i].qualified for i in taken], np.bool_)[order],
    )
