"""Texts as rows, and labels by name: makers of rows, names found in texts, and the Tagger."""

from tailwise.text.features import TextFeatures
from tailwise.text.language import detect_language, detect_languages
from tailwise.text.matched_names import MatchedNames
from tailwise.text.matcher import LabelMatcher
from tailwise.text.parts import TextParts
from tailwise.text.rows import KnownLabels, TextRows
from tailwise.text.sequences import Sequences, learn_word_vectors, read_word_vectors
from tailwise.text.suggestions import Suggestion, Suggestions
from tailwise.text.tagger import Tagger
from tailwise.text.vectors import GivenVectors, SentenceVectors

__all__ = [
    "GivenVectors",
    "KnownLabels",
    "LabelMatcher",
    "MatchedNames",
    "SentenceVectors",
    "Sequences",
    "Suggestion",
    "Suggestions",
    "Tagger",
    "TextFeatures",
    "TextParts",
    "TextRows",
    "detect_language",
    "detect_languages",
    "learn_word_vectors",
    "read_word_vectors",
]
