"""What a vocabulary is: concepts with ids, names and synonyms by language, notations, a hierarchy and groups."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tailwise import persistence
from tailwise.errors import InvalidInput
from tailwise.parameters import Constraint
from tailwise.persistence.checks import (
    check_exact,
    check_indices,
    check_monotone,
    check_range,
    check_strings,
    check_that,
)

if TYPE_CHECKING:
    from tailwise.propensity import EstimatedPropensity
    from tailwise.vocabulary.versions import Changes

PREFERRED, SYNONYM, HIDDEN = 0, 1, 2
"""Kinds of names, as SKOS has them: prefLabel, altLabel, hiddenLabel."""


class Terms(NamedTuple):
    """All names of all concepts, column by column, in the order of the concepts; a concept's preferred ones come first.

    ``concept`` (n,) int32 are places in ``Vocabulary.ids``, never falling; ``language`` (n,) int16 are places in
    ``Vocabulary.languages``; ``kind`` (n,) int8 is 0 preferred, 1 synonym, 2 hidden.
    """

    concept: np.ndarray
    text: list[str]
    language: np.ndarray
    kind: np.ndarray

    @property
    def preferred(self) -> np.ndarray:
        """(n,) bool: whether this is what its concept is called in its language."""
        return self.kind == PREFERRED


class Groups(NamedTuple):
    """Concept schemes or collections: their ids and names, and (n, 2) int32 pairs (concept, group), sorted."""

    ids: list[str]
    names: list[str]
    members: np.ndarray


def no_groups() -> Groups:
    """No schemes, or no collections."""
    return Groups([], [], np.empty((0, 2), np.int32))


class Vocabulary(persistence.Saveable):
    """The labels that there are, with names and synonyms by language, notation, hierarchy, schemes and collections.

    Made by :meth:`read` from a file, by :meth:`from_names`, or column by column. Everything is lists and arrays, a few
    of them however many concepts there are: 100,000 concepts with three names each take about 40 MB. It is kept in the
    folder of a :class:`~tailwise.Tagger`, whose labels are some of its concepts.

    Parameters
    ----------
    ids : list of str
        What identifies each concept, such as its URI; the place in this list is the concept's number.
    terms : Terms
        The names of the concepts.
    languages : list of str
        What ``terms.language`` counts, the one with most preferred names first; ``""`` stands for no language.
    notations : list of str
        Such as ``"004.8"``; ``""`` where a concept has none.
    broader : (n, 2) int32
        Pairs (concept, broader concept), sorted: what :func:`~tailwise.propensity_from_hierarchy` takes.
    deprecated : (n_concepts,) bool
        Concepts that are no longer given.
    schemes, collections : Groups
        Which concepts belong to which concept scheme, and to which collection.

    Examples
    --------
    >>> vocab = Vocabulary.from_names({"u:1": "Fische", "u:2": "Recht"}, language="de")
    >>> vocab.ids, vocab.name("u:2"), vocab.find("fische")
    (['u:1', 'u:2'], 'Recht', 'u:1')
    """

    _FIELDS = ("ids", "terms", "languages", "notations", "broader", "deprecated", "schemes", "collections")
    _parameters = dict.fromkeys(_FIELDS, Constraint())

    def __init__(
        self,
        ids: Sequence[str] = (),
        *,
        terms: Terms | None = None,
        languages: Sequence[str] = (),
        notations: Sequence[str] | None = None,
        broader: np.ndarray | None = None,
        deprecated: np.ndarray | None = None,
        schemes: Groups | None = None,
        collections: Groups | None = None,
    ) -> None:
        n, none = len(ids), np.empty(0, np.int32)
        self.ids = list(ids)
        self.terms = Terms(none, [], none.astype(np.int16), none.astype(np.int8)) if terms is None else terms
        self.languages = list(languages)
        self.notations = [""] * n if notations is None else list(notations)
        self.broader = np.empty((0, 2), np.int32) if broader is None else broader
        self.deprecated = np.zeros(n, bool) if deprecated is None else deprecated
        self.schemes = no_groups() if schemes is None else schemes
        self.collections = no_groups() if collections is None else collections

    @classmethod
    def read(cls, path: str | Path, *, format: str | None = None, language: str | None = None) -> Vocabulary:
        """The vocabulary in a file: SKOS (.ttl, .rdf, .nt, .jsonld), CSV, TSV, or JSON from id to name.

        ``format`` is told by the name of the file; ``language`` is that of names in TSV and JSON, which do not say it.
        """
        from tailwise.vocabulary.reading import read_vocabulary

        return read_vocabulary(path, format=format, language=language)

    @classmethod
    def from_names(cls, names: Mapping[str, str], language: str | None = None) -> Vocabulary:
        """A name for each id, and nothing else."""
        from tailwise.vocabulary.building import Builder

        builder = Builder()
        for label, name in names.items():
            builder.add_name(builder.concept(label), name, language)
        return builder.build()

    def write(self, path: str | Path, *, format: str | None = None, language: str | None = None) -> list[str]:
        """Write as Turtle, CSV, TSV or JSON, by suffix; returns what the format cannot hold, in words. Atomic."""
        from tailwise.vocabulary.reading import write_vocabulary

        return write_vocabulary(self, path, format=format, language=language)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, label: object) -> bool:
        return label in self._place

    def __repr__(self) -> str:
        return (
            f"Vocabulary({len(self):,} concepts, {len(self.terms.text):,} names in {', '.join(self.languages) or '–'})"
        )

    def summary(self) -> str:
        """What there is, in a line."""
        parts = {
            "synonyms": int((~self.terms.preferred).sum()),
            "notations": sum(map(bool, self.notations)),
            "steps of the hierarchy": len(self.broader),
            "schemes": len(self.schemes.ids),
            "collections": len(self.collections.ids),
            "deprecated": int(self.deprecated.sum()),
        }
        said = [f"{count:,} {what}" for what, count in parts.items() if count]
        languages = [language for language in self.languages if language]
        named = f" named in {', '.join(languages)}" if languages else ""
        return "; ".join([f"{len(self):,} concepts{named}", *said])

    def place(self, label: str) -> int:
        """The number of a concept, by id."""
        if label not in self._place:
            near = difflib.get_close_matches(label, self.ids[:100_000], 3, 0.8) if len(label) < 200 else []
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise InvalidInput(f"the vocabulary has no {label!r} among its {len(self):,} concepts{hint}")
        return self._place[label]

    def places(self, labels: Sequence[str]) -> np.ndarray:
        """The numbers of concepts by id: (n,) int32, -1 for what the vocabulary does not have."""
        return np.fromiter((self._place.get(label, -1) for label in labels), np.int32, len(labels))

    def name(self, label: str, language: str | None = None) -> str:
        """What a concept is called: in ``language``, else in the first of ``languages`` that names it, else its id."""
        return self.preferred_names(language)[self.place(label)]

    def names(self, label: str) -> list[tuple[str, str, bool]]:
        """All names of a concept: text, language, and whether it is the preferred one there."""
        place = self.place(label)
        first, last = np.searchsorted(self.terms.concept, [place, place + 1]).tolist()
        return [
            (self.terms.text[i], self.languages[self.terms.language[i]], bool(self.terms.kind[i] == PREFERRED))
            for i in range(first, last)
        ]

    def preferred_names(self, language: str | None = None) -> list[str]:
        """What :meth:`name` says, for every concept in order. O(names) once for each language."""
        key = self.check_language(language) if language else ""
        if key not in self._preferred:
            named = list(self.ids)
            terms = self.terms
            # The best comes last and stays.
            ranks = [(self._fit(known, key), -place) for place, known in enumerate(self.languages)]
            order = np.argsort(np.argsort([fit * (len(ranks) + 1) + place for fit, place in ranks]))
            chosen = np.flatnonzero(terms.preferred)
            for i in chosen[np.argsort(order[terms.language[chosen]], kind="stable")].tolist():
                named[terms.concept[i]] = terms.text[i]
            self._preferred[key] = named
        return self._preferred[key]

    def check_language(self, language: str) -> str:
        """``language`` where the vocabulary has names in it, or in a form of it (``de`` and ``de-AT``)."""
        wanted = language.lower()
        if not any(self._fit(known, wanted) for known in self.languages):
            there = ", ".join(known or "none" for known in self.languages)
            raise InvalidInput(f"language={language!r} is none of the vocabulary's languages: {there}")
        return wanted

    @staticmethod
    def _fit(known: str, wanted: str) -> int:
        """2 for the language itself, 1 for a form of it, 0 for another."""
        if not wanted:
            return 0
        return 2 if known == wanted else int(known.partition("-")[0] == wanted.partition("-")[0])

    def notation(self, label: str) -> str:
        """The notation of a concept, ``""`` where it has none."""
        return self.notations[self.place(label)]

    def find(self, name: str, language: str | None = None) -> str | None:
        """The id of the concept of this name: preferred before synonym, spelled alike before other case; or None.

        Among concepts of one name the first one that is not deprecated is taken.
        """
        texts, folded = self._by_text(self.check_language(language) if language else "")
        found = texts.get(name.strip(), folded.get(name.strip().casefold()))
        return None if found is None else self.ids[found]

    def propensity(self, Y: Any, ids: Sequence[str], **options: Any) -> EstimatedPropensity:
        """Propensities of the labels ``ids``, the columns of Y, fitted to how often broader labels are missing.

        :func:`~tailwise.propensity_from_hierarchy` (``options`` go to it) on the whole hierarchy, also where labels
        between two of ``ids`` are in no row.
        """
        from tailwise.vocabulary.evidence import hierarchy_propensity

        return hierarchy_propensity(self, Y, ids, **options)

    def changes_to(self, new: Vocabulary) -> Changes:
        """What is different in ``new``, a later version."""
        from tailwise.vocabulary.versions import changes

        return changes(self, new)

    def updated(self, new: Vocabulary) -> Vocabulary:
        """The later version ``new`` with every concept of this one at the place it has here.

        What is new comes behind, what is gone stays with its names and is deprecated: columns keep their meaning.
        """
        from tailwise.vocabulary.versions import updated

        return updated(self, new)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self.ids)}

    @cached_property
    def _preferred(self) -> dict[str, list[str]]:
        return {}

    @cached_property
    def _texts(self) -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        return {}

    def _by_text(self, language: str) -> tuple[dict[str, int], dict[str, int]]:
        if language not in self._texts:
            fits = np.array([not language or self._fit(known, language) > 0 for known in self.languages], bool)
            used = np.flatnonzero(fits[self.terms.language]) if fits.size else np.empty(0, np.int64)
            order = np.lexsort((self.terms.kind[used], self.deprecated[self.terms.concept[used]]))
            texts: dict[str, int] = {}
            folded: dict[str, int] = {}
            for i in used[order].tolist():
                texts.setdefault(self.terms.text[i], int(self.terms.concept[i]))
                folded.setdefault(self.terms.text[i].casefold(), int(self.terms.concept[i]))
            self._texts[language] = texts, folded
        return self._texts[language]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """None: what a vocabulary is made of is its state."""
        return {}

    def _state(self) -> dict[str, Any]:
        return {field: getattr(self, field) for field in self._FIELDS}

    def _restore(self, state: dict[str, Any]) -> None:
        check_that(set(state) == set(self._FIELDS), f"it has the parts {', '.join(state)}")
        vars(self).update(state)

    def _check_state(self) -> None:
        n = len(check_strings("ids", self.ids))
        check_that(len(set(self.ids)) == n and "" not in self.ids, "ids has an id twice, or an empty one")
        check_strings("languages", self.languages)
        check_that(len(set(self.languages)) == len(self.languages), "languages has one twice")
        check_strings("notations", self.notations, n)
        terms = self.terms
        check_that(isinstance(terms, Terms), "terms are no Terms")
        m = len(check_strings("terms.text", terms.text))
        check_indices("terms.concept", check_exact("terms.concept", terms.concept, np.int32, (m,)), n)
        check_monotone("terms.concept", terms.concept)
        check_exact("terms.language", terms.language, np.int16, (m,))
        check_indices("terms.language", terms.language, len(self.languages))
        check_range("terms.kind", check_exact("terms.kind", terms.kind, np.int8, (m,)), PREFERRED, HIDDEN)
        check_indices("broader", check_exact("broader", self.broader, np.int32, (None, 2)), n)
        check_exact("deprecated", self.deprecated, np.bool_, (n,))
        for field in ("schemes", "collections"):
            groups = getattr(self, field)
            check_that(isinstance(groups, Groups), f"{field} are no Groups")
            size = len(check_strings(f"{field}.ids", groups.ids))
            check_strings(f"{field}.names", groups.names, size)
            members = check_exact(f"{field}.members", groups.members, np.int32, (None, 2))
            check_indices(f"{field}.members", members[:, 0], n)
            check_indices(f"{field}.members", members[:, 1], size)
