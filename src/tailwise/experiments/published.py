"""The figures that the papers and the Extreme Classification Repository published, as data.

``published.csv`` holds one figure a line: paper (a key of :data:`PAPERS`), dataset, method, metric (named as in
:func:`tailwise.evaluate`), value in percent. They disagree about the same method: :func:`published` gives the
repository's figure where it has one, because papers round and copy from each other, else the highest, which is the
hardest to reach; :func:`published_range` gives all of them.
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

_ALSO_CALLED = {"(P)PD-Sparse": "PD-Sparse"}
"""Names in a paper's table of what others call otherwise: its figures are PD-Sparse's."""


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
    found = [f for f in all_figures() if (f.dataset.lower(), _usual_name(f).lower(), f.metric) == wanted]
    return sorted(found, key=lambda figure: -figure.value)


def _usual_name(figure: Figure) -> str:
    return _ALSO_CALLED.get(figure.method, figure.method)


def published(dataset: str, method: str, metric: str) -> float | None:
    """The figure to compare with: the repository's, else the highest; None where nobody reports one.

    >>> published("eurlex-4k", "Parabel", "psp@5"), published("eurlex-4k", "PW-DiSMEC", "psp@5")
    (48.29, 52.2)
    """
    figures = published_range(dataset, method, metric)
    return next((f.value for f in figures if f.paper == "repository"), figures[0].value if figures else None)


def published_methods(dataset: str) -> list[str]:
    """The methods that the papers report on a dataset, in the order of the table.

    >>> "Parabel" in published_methods("eurlex-4k")
    True
    """
    return list(dict.fromkeys(_usual_name(f) for f in all_figures() if f.dataset.lower() == dataset.lower()))
