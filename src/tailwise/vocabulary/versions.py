"""One version of a vocabulary after another: what changed, and how columns keep their meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tailwise.vocabulary.building import pairs
from tailwise.vocabulary.vocabulary import Groups, Terms, Vocabulary


class Renamed(NamedTuple):
    """A concept that is called otherwise in a language; ``""`` is no name."""

    id: str
    language: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.old or '–'} → {self.new or '–'} ({self.language or 'no language'})"


class Changes(NamedTuple):
    """What a later version of a vocabulary has otherwise; ids in the order of the vocabularies."""

    added: list[str]
    removed: list[str]
    renamed: list[Renamed]
    deprecated: list[str]
    """Concepts that were given and are no longer."""
    moved: list[str]
    """Concepts with other broader ones."""
    synonyms: list[str]
    """Concepts with other synonyms."""
    kept: int
    """Concepts of both versions."""

    def counts(self) -> dict[str, int]:
        """How many of each kind."""
        return {field: value if isinstance(value, int) else len(value) for field, value in self._asdict().items()}


def column_map(old: Sequence[str], new: Sequence[str]) -> np.ndarray:
    """Where each column of ``old`` is in ``new``, by id: (len(old),) int64, -1 for what is gone.

    >>> column_map(["a", "b", "c"], ["c", "a", "d"]).tolist()
    [1, -1, 0]
    """
    place = {label: number for number, label in enumerate(new)}
    return np.fromiter((place.get(label, -1) for label in old), np.int64, len(old))


def changes(old: Vocabulary, new: Vocabulary) -> Changes:
    """What is different in ``new``. O(names)."""
    both = [label for label in old.ids if label in new]
    names, new_names = (_preferred(vocabulary) for vocabulary in (old, new))
    renamed = [
        Renamed(label, language, before.get(language, ""), after.get(language, ""))
        for label in both
        for before, after in [(names.get(label, {}), new_names.get(label, {}))]
        for language in sorted(before.keys() | after.keys())
        if before.get(language) != after.get(language)
    ]
    parents, new_parents = (_parents(vocabulary) for vocabulary in (old, new))
    others, new_others = (_synonyms(vocabulary) for vocabulary in (old, new))
    gone, new_gone = (_deprecated(vocabulary) for vocabulary in (old, new))
    return Changes(
        [label for label in new.ids if label not in old],
        [label for label in old.ids if label not in new],
        renamed,
        [label for label in both if label in new_gone and label not in gone],
        [label for label in both if parents.get(label) != new_parents.get(label)],
        [label for label in both if others.get(label) != new_others.get(label)],
        len(both),
    )


def updated(old: Vocabulary, new: Vocabulary) -> Vocabulary:
    """``new`` in the columns of ``old``: see :meth:`Vocabulary.updated`."""
    gone = [label for label in old.ids if label not in new]
    ids = old.ids + [label for label in new.ids if label not in old]
    languages = new.languages + [language for language in old.languages if language not in new.languages]
    of_new, of_old = (column_map(vocabulary.ids, ids) for vocabulary in (new, old))
    kept = np.isin(np.arange(len(old)), old.places(gone))  # of the old version, what only it has
    notations = [""] * len(ids)
    deprecated = np.ones(len(ids), bool)
    for vocabulary, place in ((old, of_old), (new, of_new)):
        for number, notation in zip(place.tolist(), vocabulary.notations, strict=True):
            notations[number] = notation
    deprecated[of_new] = new.deprecated
    both = [link for link in old.broader.tolist() if kept[link[0]]]
    broader = pairs([tuple(of_new[pair]) for pair in new.broader] + [tuple(of_old[pair]) for pair in both])
    return Vocabulary(
        ids,
        terms=_joined_terms(new, of_new, old, of_old, kept, languages),
        languages=languages,
        notations=notations,
        broader=broader,
        deprecated=deprecated,
        schemes=_joined_groups(new.schemes, of_new, old.schemes, of_old, kept),
        collections=_joined_groups(new.collections, of_new, old.collections, of_old, kept),
    )


def _joined_terms(
    new: Vocabulary, of_new: np.ndarray, old: Vocabulary, of_old: np.ndarray, kept: np.ndarray, languages: list[str]
) -> Terms:
    own = np.flatnonzero(kept[old.terms.concept])
    concept = np.concatenate([of_new[new.terms.concept], of_old[old.terms.concept[own]]])
    codes = np.concatenate(
        [
            column_map(new.languages, languages)[new.terms.language],
            column_map(old.languages, languages)[old.terms.language[own]],
        ]
    )
    texts = new.terms.text + [old.terms.text[i] for i in own.tolist()]
    kind = np.concatenate([new.terms.kind, old.terms.kind[own]])
    order = np.argsort(concept, kind="stable")
    return Terms(
        concept[order].astype(np.int32),
        [texts[i] for i in order.tolist()],
        codes[order].astype(np.int16),
        kind[order].astype(np.int8),
    )


def _joined_groups(new: Groups, of_new: np.ndarray, old: Groups, of_old: np.ndarray, kept: np.ndarray) -> Groups:
    ids = new.ids + [group for group in old.ids if group not in new.ids]
    names = dict(zip(old.ids + new.ids, old.names + new.names, strict=True))
    place = column_map(old.ids, ids)
    members = [(int(of_new[c]), g) for c, g in new.members.tolist()]
    members += [(int(of_old[c]), int(place[g])) for c, g in old.members.tolist() if kept[c]]
    return Groups(ids, [names[group] for group in ids], pairs(members))


def _preferred(vocabulary: Vocabulary) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for place, language, text in _terms(vocabulary, preferred=True):
        found.setdefault(vocabulary.ids[place], {})[language] = text
    return found


def _synonyms(vocabulary: Vocabulary) -> dict[str, set[tuple[str, str]]]:
    found: dict[str, set[tuple[str, str]]] = {}
    for place, language, text in _terms(vocabulary, preferred=False):
        found.setdefault(vocabulary.ids[place], set()).add((language, text))
    return found


def _terms(vocabulary: Vocabulary, *, preferred: bool) -> list[tuple[int, str, str]]:
    terms = vocabulary.terms
    chosen = np.flatnonzero(terms.preferred == preferred).tolist()
    return [(int(terms.concept[i]), vocabulary.languages[terms.language[i]], terms.text[i]) for i in chosen]


def _parents(vocabulary: Vocabulary) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for child, parent in vocabulary.broader.tolist():
        found.setdefault(vocabulary.ids[child], set()).add(vocabulary.ids[parent])
    return found


def _deprecated(vocabulary: Vocabulary) -> set[str]:
    return {vocabulary.ids[place] for place in np.flatnonzero(vocabulary.deprecated).tolist()}
