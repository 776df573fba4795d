"""What a text may get: labels with their names, scores and how rare they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.display import Table
from tailwise.metrics.slices import label_slices

RARITIES = ("head", "torso", "tail")


class Suggestion(NamedTuple):
    """One label that a text may get."""

    name: str
    id: str
    score: float
    rarity: str
    """``"head"``, ``"torso"`` or ``"tail"``: how often the label came in training."""

    def __str__(self) -> str:
        return f"{self.name}{'' if self.id == self.name else f' ({self.id})'} {self.score:.3f} {self.rarity}"


class Suggestions(list[list[Suggestion]]):
    """The suggestions for each text, best first: a list of lists that prints as a table."""

    def table(self) -> Table:
        """Every suggestion in a line."""
        rows = [
            [row if place == 0 else "", s.name, s.id, f"{s.score:.3f}", s.rarity]
            for row, found in enumerate(self)
            for place, s in enumerate(found)
        ]
        return Table("", ["text", "label", "id", "score", "rarity"], rows, left=3)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table().html()


def rarity(counts: np.ndarray) -> np.ndarray:
    """0 head, 1 torso, 2 tail for each label, as the metrics slice them: (n_labels,) int8.

    >>> rarity(np.array([500, 50, 1]))
    array([0, 1, 2], dtype=int8)
    """
    slices = label_slices(counts)
    return np.select([slices["head"], slices["torso"]], [0, 1], 2).astype(np.int8)
