"""A small model to try the service with: synthetic records about the concepts of a small vocabulary in two languages.

``python -m tailwise.serving.demo FOLDER`` makes it, in some seconds; ``make serve`` does that and serves it.
"""

from __future__ import annotations

import csv
import sys
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tailwise.data import Texts
from tailwise.text import Tagger
from tailwise.vocabulary import Vocabulary
from tailwise.vocabulary.building import Builder

N_RECORDS = 3000
_FRAMES = ("On {0}", "The history of {0}", "{0}: an introduction", "Studies in {0}", "{0} and {1}", "Notes on {0}")
_FILLERS = ("the", "of", "and", "in", "a", "study", "new", "with", "from", "on", "between", "early", "modern", "work")


class Concept(NamedTuple):
    """A line of the table: names, and words that texts about it have."""

    uri: str
    english: str
    german: str
    words: list[str]


def concepts() -> list[Concept]:
    """The concepts of the bundled vocabulary."""
    with files("tailwise.serving").joinpath("demo.csv").open(encoding="utf-8") as table:
        return [
            Concept(f"http://example.org/subjects/{place:03d}", line["en"], line["de"], line["words"].split())
            for place, line in enumerate(csv.DictReader(table), start=1)
        ]


def vocabulary(known: list[Concept]) -> Vocabulary:
    """The concepts with their names and notations."""
    builder = Builder()
    for place, concept in enumerate(known, start=1):
        number = builder.concept(concept.uri)
        builder.add_name(number, concept.english, "en")
        builder.add_name(number, concept.german, "de")
        builder.add_notation(number, f"{place // 10}.{place % 10}")
    return builder.build()


def records(known: list[Concept], n: int = N_RECORDS, seed: int = 0) -> tuple[Texts, list[list[str]]]:
    """Titles and abstracts about one to three concepts, few of them frequent, the most rare."""
    draw = np.random.default_rng(seed)
    shares = 1.0 / np.arange(1, len(known) + 1)
    shares = draw.permutation(shares / shares.sum())
    titles, abstracts, labels = [], [], []
    for _ in range(n):
        own = draw.choice(len(known), int(draw.integers(1, 4)), replace=False, p=shares)
        named = [known[place].english.lower() if draw.random() < 0.6 else known[place].words[0] for place in own]
        frame = _FRAMES[int(draw.integers(len(_FRAMES) if len(own) > 1 else 4))]
        words = [word for place in own for word in draw.choice(known[place].words, 5, replace=False)]
        words += list(draw.choice(_FILLERS, 12))
        titles.append(frame.format(*named, *named).capitalize())
        abstracts.append(" ".join(draw.permutation(words)).capitalize() + ".")
        labels.append([known[place].uri for place in own])
    return Texts({"title": titles, "abstract": abstracts}), labels


def make(folder: Path) -> Tagger:
    """Train the model and save it to ``folder``; it keeps its records, so that it shows similar ones and learns."""
    known = concepts()
    texts, labels = records(known)
    tagger = Tagger("dismec", keep_training_data=True).fit(texts, labels, vocab=vocabulary(known))
    tagger.save(folder)
    return tagger


if __name__ == "__main__":
    make(Path(sys.argv[1]))
