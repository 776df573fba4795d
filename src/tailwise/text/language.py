"""Which language a text is in: what stemming goes by."""

from __future__ import annotations

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
