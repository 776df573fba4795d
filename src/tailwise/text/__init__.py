"""Texts as rows, and labels by name: TextFeatures, Sequences, and the Tagger that keeps them beside a model."""

from tailwise.text.features import TextFeatures
from tailwise.text.rows import TextRows
from tailwise.text.sequences import Sequences, read_word_vectors
from tailwise.text.suggestions import Suggestion, Suggestions
from tailwise.text.tagger import Tagger

__all__ = [
    "Sequences",
    "Suggestion",
    "Suggestions",
    "Tagger",
    "TextFeatures",
    "TextRows",
    "read_word_vectors",
]
