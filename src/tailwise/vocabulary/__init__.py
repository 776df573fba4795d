"""Labels as people keep them: vocabularies with names in several languages, their versions, and rules over labels."""

from tailwise.vocabulary.rules import LabelRules
from tailwise.vocabulary.versions import Changes, column_map
from tailwise.vocabulary.vocabulary import Groups, Terms, Vocabulary

__all__ = ["Changes", "Groups", "LabelRules", "Terms", "Vocabulary", "column_map"]
