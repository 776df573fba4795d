"""Which language a text is in: what stemming goes by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tailwise.errors import InvalidInput, import_extra

_CHARACTERS = 2000
_FEWEST = 4


def detect_language(text: str, languages: Sequence[str] | None = None) -> str:
    """The language of ``text`` as a code such as ``"en"``, among ``languages`` where those are given.

    ``""`` for a text of fewer than four letters. The first 2,000 characters are looked at. Needs the extra
    ``language``: py3langid, a naive Bayes classifier on byte n-grams that brings its data along.

    >>> detect_language("Das Recht der See und der Schiffe"), detect_language("The law of the sea and of ships")
    ('de', 'en')
    """
    return detect_languages([text], languages)[0]


def detect_languages(texts: Sequence[str], languages: Sequence[str] | None = None) -> list[str]:
    """:func:`detect_language` of each text."""
    identifier = _identifier(None if languages is None else tuple(languages))
    return [_detect(identifier, text) for text in texts]


def language_scores(text: str, languages: Sequence[str]) -> dict[str | None, float]:
    """How probable each of ``languages`` is for ``text``, the best first; they sum to 1.

    A text of fewer than four letters is of no language: None has all.

    >>> next(iter(language_scores("Das Recht der See und der Schiffe", ["en", "de"])))
    'de'
    """
    identifier = _identifier(tuple(dict.fromkeys(languages)))
    if _detect(identifier, text) == "":
        return {None: 1.0} | dict.fromkeys(identifier.labels, 0.0)
    logarithms = {language: float(value) for language, value in identifier.rank(text[:_CHARACTERS])}
    most = max(logarithms.values())
    odds = {language: math.exp(value - most) for language, value in logarithms.items()}
    whole = sum(odds.values())
    return {language: value / whole for language, value in sorted(odds.items(), key=lambda one: -one[1])}


def _detect(identifier: Any, text: str) -> str:
    piece = text[:_CHARACTERS]
    if sum(character.isalpha() for character in piece) < _FEWEST:
        return ""
    return identifier.classify(piece)[0]


@lru_cache(maxsize=8)
def _identifier(languages: tuple[str, ...] | None) -> Any:
    langid = import_extra("py3langid.langid", "language", "detecting languages")
    made = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE)
    if languages is not None:
        known = set(made.labels)
        unknown = [language for language in languages if language not in known]
        if unknown or not languages:
            raise InvalidInput(
                f"languages={list(languages)!r} has {unknown[:1]}, which is not known; choose of {sorted(known)}"
            )
        made.set_languages(list(languages))
    return made
