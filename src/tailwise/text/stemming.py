"""Words without their endings, by language: Snowball's stemmers, and how compounds are put together."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

ALGORITHMS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek", "en": "english", "es": "spanish",
    "eu": "basque", "fi": "finnish", "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian",
    "id": "indonesian", "it": "italian", "lt": "lithuanian", "nb": "norwegian", "ne": "nepali", "nl": "dutch",
    "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish",
    "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""Snowball's algorithm for each language; words of other languages stay as they are."""

LINKS = {
    "da": ("", "s", "e"),
    "de": ("", "s", "es", "n", "en", "er", "e"),
    "fi": ("", "n"),
    "nb": ("", "s", "e"),
    "nl": ("", "s", "en", "e"),
    "no": ("", "s", "e"),
    "sv": ("", "s"),
}
"""What may stand between the parts of a compound, in languages that write compounds as one word."""

_REMEMBERED = 1 << 19
_OF_THREAD = threading.local()


def base_language(language: str) -> str:
    """The language of a tag: ``de-AT`` is ``de``."""
    return language.lower().partition("-")[0]


def stem(word: str, language: str) -> str:
    """A lower-case word without its endings.

    >>> stem("bücher", "de"), stem("books", "en"), stem("books", "")
    ('buch', 'book', 'books')
    """
    return _stem(word, base_language(language))


@lru_cache(maxsize=_REMEMBERED)
def _stem(word: str, language: str) -> str:
    algorithm = ALGORITHMS.get(language)
    return word if algorithm is None else _stemmer(algorithm).stemWord(word) or word


def _stemmer(algorithm: str) -> Any:
    """A stemmer of this thread's own: it keeps the word that it works on."""
    own = _OF_THREAD.__dict__
    if algorithm not in own:
        import snowballstemmer

        own[algorithm] = snowballstemmer.stemmer(algorithm)
    return own[algorithm]
