"""One version of one project's model, with what answering needs beside it: made once when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tailwise.errors import InvalidInput, ModelFileError
from tailwise.persistence import load
from tailwise.persistence.manifest import MANIFEST, open_manifest
from tailwise.serving.problems import Problem
from tailwise.serving.settings import ModelSource
from tailwise.text import Tagger
from tailwise.text.suggestions import RARITIES
from tailwise.vocabulary import Vocabulary

UNSEEN = "unseen"


class Served:
    """A model that answers; another version of it is another object, and an answer is of one alone."""

    def __init__(self, project_id: str, source: ModelSource, tagger: Tagger, version: str, stamp: tuple[int, ...]):
        self.id, self.source, self.tagger, self.version, self.stamp = project_id, source, tagger, version, stamp
        self.modified = datetime.fromtimestamp(stamp[1] / 1e9, UTC)
        self.counts: list[int] = np.asarray(tagger.label_counts_).tolist()
        self.lengths: np.ndarray | None = None
        """Of the training records' words, once they were asked for."""
        self._typed: Any = None

    @classmethod
    def open(cls, project_id: str, source: ModelSource) -> Served:
        """The model in the source's folder, checked whole; refused where it does not take texts."""
        manifest, stamp = open_manifest(source.path)
        tagger = load(source.path)
        if not isinstance(tagger, Tagger):
            raise ModelFileError(
                f"{source.path} holds a {type(tagger).__name__}, which has no label names; train with "
                "`tailwise train`, or save a Tagger"
            )
        if tagger.features_ is None:
            raise InvalidInput(
                f"{source.path} was trained on numeric rows, not on texts, and a service is asked with texts; train on "
                "records with texts, or use `tailwise predict` for rows in a file"
            )
        served = cls(project_id, source, tagger, str(manifest["sha256"]), stamp)
        # What the first request would wait for: code that is loaded, tables that are built.
        tagger.predict_topk(["\n"], 1)
        return served

    @property
    def name(self) -> str:
        """What people call the project."""
        return self.source.name or self.id

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.tagger.label_ids_)

    @cached_property
    def fields(self) -> list[str]:
        """The fields that texts of this model may have."""
        assert self.tagger.features_ is not None
        return self.tagger.features_.field_names

    @cached_property
    def place(self) -> dict[str, int]:
        """The column of each label, by id."""
        return {label: column for column, label in enumerate(self.tagger.label_ids_)}

    @property
    def vocabulary(self) -> Vocabulary | None:
        """What the labels are from."""
        return self.tagger.vocabulary_

    @property
    def languages(self) -> list[str]:
        """The languages of the labels' names, the one with most names first."""
        return [] if self.vocabulary is None else [language for language in self.vocabulary.languages if language]

    @property
    def language(self) -> str:
        """The language that the project is said to have."""
        return self.source.language or next(iter(self.languages), "und")

    def names(self, language: str | None) -> list[str]:
        """What labels are called in ``language``; a problem where there are no such names."""
        if language in (None, "", "und") or (self.vocabulary is None and language == self.language):
            return self.tagger.label_names_
        try:
            return self.tagger.names_in(language)
        except InvalidInput:
            known = ", ".join(self.languages) or "none"
            raise Problem(
                400,
                f'language "{language}" not supported by vocabulary; its languages are: {known}',
                title="Bad Request",
            ) from None

    @cached_property
    def notations(self) -> list[str | None]:
        """The notation of each label, None where it has none."""
        if self.vocabulary is None:
            return [None] * self.n_labels
        places = self.vocabulary.places(self.tagger.label_ids_).tolist()
        return [(self.vocabulary.notations[place] or None) if place >= 0 else None for place in places]

    def rarity(self, label: int) -> str:
        """How often the label came in training."""
        return RARITIES[self.tagger.rarity_[label]] if self.counts[label] else UNSEEN

    @cached_property
    def inverse_propensity(self) -> np.ndarray:
        """1/p of each label: how much more often it is right than recorded."""
        return 1.0 / np.asarray(self.tagger.propensity_.propensity_, np.float64)

    def typed(self, make: Callable[[Served], Any]) -> Any:
        """What names are looked up in as people type: made on the first use."""
        if self._typed is None:
            self._typed = make(self)
        return self._typed

    def label(self, uri: str) -> int:
        """The column of a label by its id; a problem where the model does not have it."""
        if uri not in self.place:
            raise Problem(404, f"{self.id} has no label {uri!r}", title="Label not found")
        return self.place[uri]

    def result(self, label: int, score: float, names: list[str]) -> dict[str, Any]:
        """A suggestion as Annif's clients know it."""
        return {
            "uri": self.tagger.label_ids_[label],
            "label": names[label],
            "notation": self.notations[label],
            "score": score,
        }


def manifest_stamp(folder: Path) -> tuple[int, int, int] | None:
    """What changes when another model is saved to the folder; None where there is none."""
    try:
        facts = (folder / MANIFEST).stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_mtime_ns, facts.st_ctime_ns
