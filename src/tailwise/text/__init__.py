"""Texts as rows, and labels by name: TextFeatures, Sequences, and the Tagger that keeps them beside a model."""

from tailwise.text.features import TextFeatures
from tailwise.text.matched_names import MatchedNames
from tailwise.text.matcher import LabelMatcher
from tailwise.text.rows import KnownLabels, TextRows
from tailwise.text.sequences import Sequences, read_word_vectors
from tailwise.text.suggestions import Suggestion, Suggestions
from tailwise.text.tagger import Tagger

__all__ = [
    "KnownLabels",
    "LabelMatcher",
    "MatchedNames",
    "Sequences",
    "Suggestion",
    "Suggestions",
    "Tagger",
    "TextFeatures",
    "TextRows",
    "read_word_vectors",
]
