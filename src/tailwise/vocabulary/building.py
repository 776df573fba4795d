"""Putting a vocabulary together from single facts, in whatever order a file has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from tailwise.errors import InvalidInput
from tailwise.vocabulary.vocabulary import PREFERRED, SYNONYM, Groups, Terms, Vocabulary

MOST_LANGUAGES = 32_000
UNSAID = "und"
"""How BCP 47 says that a language is not said."""


class Builder:
    """Collects concepts and what is said of them; :meth:`build` sorts it out."""

    def __init__(self) -> None:
        self._place: dict[str, int] = {}
        self._names: set[tuple[int, int, str, str]] = set()
        self._notations: dict[int, str] = {}
        self._broader: set[tuple[int, int]] = set()
        self._deprecated: set[int] = set()
        self._groups: dict[str, tuple[dict[str, str], set[tuple[int, str]]]] = {
            "schemes": ({}, set()),
            "collections": ({}, set()),
        }

    def __contains__(self, label: str) -> bool:
        return label in self._place

    def concept(self, label: str) -> int:
        """The number of a concept, which is added unless it is there."""
        if not label:
            raise InvalidInput("a concept has an empty id; every concept needs one")
        return self._place.setdefault(label, len(self._place))

    def add_name(self, concept: int, text: str, language: str | None = None, kind: int = PREFERRED) -> None:
        """A name of a concept; spaces around it are none of it, and an empty one is no name."""
        if text.strip():
            tag = (language or "").strip().lower()
            self._names.add((concept, kind, "" if tag == UNSAID else tag, text.strip()))

    def add_notation(self, concept: int, notation: str) -> None:
        """A notation; of several the first in the order of texts is kept."""
        if notation.strip():
            self._notations[concept] = min(notation.strip(), self._notations.get(concept, notation.strip()))

    def add_broader(self, child: str, parent: str) -> None:
        """A step up the hierarchy; one that leads out of the vocabulary is none."""
        if child in self._place and parent in self._place and child != parent:
            self._broader.add((self._place[child], self._place[parent]))

    def deprecate(self, concept: int) -> None:
        """Say that a concept is no longer given."""
        self._deprecated.add(concept)

    def add_group(self, kind: str, label: str, name: str = "") -> None:
        """A scheme or a collection, which may have no members."""
        names = self._groups[kind][0]
        names[label] = names.get(label) or name

    def add_member(self, kind: str, concept: str, group: str) -> None:
        """Say that a concept is of one of the ``"schemes"`` or ``"collections"``."""
        if concept in self._place:
            self.add_group(kind, group)
            self._groups[kind][1].add((self._place[concept], group))

    def groups(self) -> list[tuple[str, str]]:
        """The schemes and collections so far: what each is, and its id."""
        return [(kind, group) for kind, (names, _) in self._groups.items() for group in names]

    def build(self) -> Vocabulary:
        """The vocabulary. A concept has one preferred name a language: others are synonyms."""
        chosen: dict[tuple[int, str, str], int] = {}
        called: set[tuple[int, str]] = set()
        for concept, kind, language, text in sorted(self._names):
            if kind == PREFERRED and (concept, language) in called:
                kind = SYNONYM
            elif kind == PREFERRED:
                called.add((concept, language))
            chosen.setdefault((concept, language, text), kind)
        uses = Counter(language for _, language in called)
        uses.update({language: 0 for _, language, _ in chosen})
        languages = sorted(uses, key=lambda language: (-uses[language], language))
        if len(languages) > MOST_LANGUAGES:
            raise InvalidInput(f"the names are in {len(languages):,} languages; at most {MOST_LANGUAGES:,} are kept")
        code = {language: place for place, language in enumerate(languages)}
        rows = sorted((concept, kind, code[language], text) for (concept, language, text), kind in chosen.items())
        concepts, kinds, codes, texts = (
            (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [], [])
        )
        deprecated = np.zeros(len(self._place), bool)
        deprecated[sorted(self._deprecated)] = True
        return Vocabulary(
            list(self._place),
            terms=Terms(np.array(concepts, np.int32), texts, np.array(codes, np.int16), np.array(kinds, np.int8)),
            languages=languages,
            notations=[self._notations.get(place, "") for place in range(len(self._place))],
            broader=pairs(self._broader),
            deprecated=deprecated,
            schemes=self._grouped("schemes"),
            collections=self._grouped("collections"),
        )

    def _grouped(self, kind: str) -> Groups:
        names, members = self._groups[kind]
        ids = sorted(names)
        place = {label: number for number, label in enumerate(ids)}
        return Groups(ids, [names[label] or label for label in ids], pairs((c, place[group]) for c, group in members))


def pairs(found: Iterable[tuple[int, int]]) -> np.ndarray:
    """Pairs of numbers, sorted: (n, 2) int32."""
    return np.array(sorted(found), np.int32).reshape(-1, 2)
