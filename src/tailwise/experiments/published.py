"""The figures that the papers and the Extreme Classification Repository published, as data.

``published.csv`` holds one figure a line: paper (a key of :data:`PAPERS`), dataset, method, metric (named as in
:func:`tailwise.evaluate`), value in percent. They disagree about the same method: :func:`published` gives the highest
figure, which is the hardest to reach, and :func:`published_range` all of them.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

PAPERS = {
    "unbiased-losses": "Unbiased loss functions for extreme classification with missing labels (PW-DiSMEC)",
    "improving-tail": "Improving tail label prediction for extreme multi-label learning (RankNet, Taug)",
    "glass-ceiling": "Breaking the glass ceiling for embedding-based classifiers for large output spaces (GLaS)",
    "repository": "The Extreme Classification Repository's own tables, June 2020",
}
"""What the values of the ``paper`` column stand for."""


class Figure(NamedTuple):
    """One published figure."""

    paper: str
    dataset: str
    method: str
    metric: str
    value: float


@cache
def all_figures() -> tuple[Figure, ...]:
    """Every published figure.

    >>> len(all_figures())
    1525
    """
    text = files("tailwise.experiments").joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(
        Figure(row["paper"], row["dataset"], row["method"], row["metric"], float(row["value"]))
        for row in csv.DictReader(text.splitlines())
    )


def published_range(dataset: str, method: str, metric: str) -> list[Figure]:
    """All figures published for a method's metric on a dataset, highest first; names compare without case.

    >>> [(figure.paper, figure.value) for figure in published_range("eurlex-4k", "DiSMEC", "psp@3")]
    [('unbiased-losses', 45.4), ('repository', 45.4), ('glass-ceiling', 44.3)]
    """
    wanted = (dataset.lower(), method.lower(), metric.lower())
    found = [f for f in all_figures() if (f.dataset.lower(), f.method.lower(), f.metric) == wanted]
    return sorted(found, key=lambda figure: -figure.value)


def published(dataset: str, method: str, metric: str) -> float | None:
    """The highest published figure, or None where no paper reports one.

    >>> published("eurlex-4k", "PW-DiSMEC", "psp@5")
    52.2
    """
    figures = published_range(dataset, method, metric)
    return figures[0].value if figures else None


def published_methods(dataset: str) -> list[str]:
    """The methods that the papers report on a dataset, in the order of the table.

    >>> "Parabel" in published_methods("eurlex-4k")
    True
    """
    return list(dict.fromkeys(f.method for f in all_figures() if f.dataset.lower() == dataset.lower()))
