"""Labels by their names: what a text may get, said in words; and a label found by what people call it."""

from __future__ import annotations

import difflib
from abc import abstractmethod
from typing import Any

import numpy as np

from tailwise.assigning import UTILITY, relevance, worth_most
from tailwise.errors import InvalidInput
from tailwise.label_sets import N_CANDIDATES, LabelSets
from tailwise.propensity import Propensity
from tailwise.text.suggestions import RARITIES, Suggestion, Suggestions
from tailwise.topk import TopK
from tailwise.vocabulary import LabelRules, Vocabulary
from tailwise.vocabulary.rules import Labels


class NamedLabels(LabelSets):
    """Rankings and sets of labels that have ids, names and perhaps a vocabulary."""

    propensity_: Propensity
    label_ids_: list[str]
    label_names_: list[str]
    label_counts_: np.ndarray
    rarity_: np.ndarray
    vocabulary_: Vocabulary | None

    @abstractmethod
    def predict_topk(self, texts: Any, k: int = 5, *, rules: LabelRules | None = None) -> TopK:
        """The ``k`` best labels of each text by index, of those that ``rules`` allow."""

    @property
    def label_names_in_(self) -> np.ndarray:
        """``label_ids_`` as an array: the columns of what ``predict`` gives."""
        return np.asarray(self.label_ids_, dtype=np.str_)

    def labels(self) -> Labels:
        """The labels as rules see them: ids, names, training rows, and the vocabulary."""
        return Labels(self.label_ids_, self.label_names_, self.label_counts_, self.vocabulary_)

    def names_in(self, language: str | None = None) -> list[str]:
        """What the labels are called, in order: ``label_names_``, or the vocabulary's names in ``language``."""
        if language is None:
            return self.label_names_
        if self.vocabulary_ is None:
            raise InvalidInput(f"language={language!r}: this model has no vocabulary; train it with one")
        return names_of(self.label_ids_, self.vocabulary_, language, self.label_names_)

    def suggest(
        self, texts: Any, k: int = 5, *, rules: LabelRules | None = None, language: str | None = None
    ) -> Suggestions:
        """The ``k`` best labels of each text: name (in ``language``), id, score and rarity, best first.

        ``rules`` are for this call alone, beside those of the tagger.
        """
        return self._named(self.predict_topk(texts, k, rules=rules), language)

    def assign(
        self,
        texts: Any,
        utility: str = "f1",
        *,
        missing: bool = False,
        rules: LabelRules | None = None,
        language: str | None = None,
    ) -> Suggestions:
        """The set of labels of each text that is expected to be worth most: as many as the text calls for.

        ``utility`` is ``"f1"`` (``"f0.5"``, ``"f2"``), ``"jaccard"``, ``"precision>=0.8"`` or ``"recall>=0.8"``; scores
        must be probabilities. With ``missing`` they are divided by ``propensity_``: what counts is that a label is
        right, not that somebody would have recorded it, and rare labels come more often. ``rules`` and ``language`` are
        those of :meth:`suggest`.

        >>> from tailwise import NearestRows, Tagger, TextFeatures
        >>> texts, labels = ["tax law", "sea fish", "fish law"], [["law"], ["fish"], ["law", "fish"]]
        >>> tagger = Tagger(NearestRows(), features=TextFeatures(min_df=1)).fit(texts, labels)
        >>> [[s.name for s in found] for found in tagger.assign(["tax", "fish law"])]
        [['law'], ['fish', 'law']]
        """
        UTILITY.check("utility", utility)
        self._check_is_fitted()
        self._check_probabilities(f"utility={utility!r}")
        top = self.predict_topk(texts, min(N_CANDIDATES, self.n_labels_), rules=rules)
        if missing:
            top = relevance(top, self.propensity_.propensity_)
        return self._named(worth_most(top, utility), language)

    def _named(self, topk: TopK, language: str | None) -> Suggestions:
        names = self.names_in(language)
        return Suggestions(
            [
                Suggestion(names[label], self.label_ids_[label], score, RARITIES[self.rarity_[label]])
                for label, score in zip(labels, scores, strict=True)
                if label >= 0
            ]
            for labels, scores in zip(topk.labels.tolist(), topk.scores.tolist(), strict=True)
        )

    def find_label(self, label: str | int) -> int:
        """The column of a label given by id, name or column number; a wrong name is answered with near ones."""
        self._check_is_fitted()
        if isinstance(label, int | np.integer):
            if 0 <= label < len(self.label_ids_):
                return int(label)
            raise InvalidInput(f"label={label} is not a column: there are {len(self.label_ids_):,} labels")
        for known in (self.label_ids_, self.label_names_):
            if label in known:
                return known.index(label)
        lowered = [name.lower() for name in self.label_names_]
        if lowered.count(label.lower()) == 1:
            return lowered.index(label.lower())
        called = None if self.vocabulary_ is None else self.vocabulary_.find(label)
        if called in self.label_ids_:
            return self.label_ids_.index(called)
        near = difflib.get_close_matches(label.lower(), lowered, 3, 0.5)
        close = [self.label_names_[lowered.index(name)] for name in near]
        hint = f"did you mean {', '.join(map(repr, close))}?" if close else "see label_names_ for those that were"
        raise InvalidInput(f"the label {label!r} was never seen in training; {hint}")


def names_of(ids: list[str], names: Any, language: str | None = None, others: list[str] | None = None) -> list[str]:
    """What labels are called: by a dict, a list beside the ids, a vocabulary in ``language``; else by their ids."""
    if names is None:
        return list(ids)
    if isinstance(names, Vocabulary):
        called = names.preferred_names(language)
        place = names.places(ids).tolist()
        return [called[p] if p >= 0 else other for p, other in zip(place, others or ids, strict=True)]
    if isinstance(names, dict):
        return [str(names.get(label, label)) for label in ids]
    names = [str(name) for name in names]
    if len(names) != len(ids):
        raise InvalidInput(f"names has {len(names):,} entries but there are {len(ids):,} labels")
    return names
