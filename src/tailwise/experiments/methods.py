"""The methods that the papers report, each with the model of ours that stands beside it.

A method whose classes this version does not have is left out of every table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tailwise
from tailwise.errors import InvalidInput


class Method(NamedTuple):
    """One row of the table: how to build the model, and under which name it was published."""

    name: str
    needs: tuple[str, ...]
    """Public names that :attr:`make` uses."""
    make: Callable[[Any], Any]
    """From the package ``tailwise`` to an unfitted model."""
    published: str | None = None
    demo: bool = False

    @property
    def is_there(self) -> bool:
        """Whether this version has every class that the method needs."""
        return all(name in tailwise._HOME_OF for name in self.needs)


METHODS = (
    Method("Popularity", ("Popularity",), lambda tw: tw.Popularity(), demo=True),
    Method("Centroid", ("Centroid",), lambda tw: tw.Centroid(), demo=True),
    Method("NearestRows", ("NearestRows",), lambda tw: tw.NearestRows()),
    Method("DiSMEC", ("DiSMEC",), lambda tw: tw.DiSMEC(), "DiSMEC", demo=True),
    Method("PW-DiSMEC", ("PWDiSMEC",), lambda tw: tw.PWDiSMEC(), "PW-DiSMEC", demo=True),
    Method("ProXML", ("ProXML",), lambda tw: tw.ProXML(), "ProXML"),
    Method("PPD-Sparse", ("PPDSparse",), lambda tw: tw.PPDSparse(), "PPD-Sparse"),
    Method("Parabel", ("Parabel",), lambda tw: tw.Parabel(random_state=0), "Parabel", demo=True),
    Method("Bonsai", ("Bonsai",), lambda tw: tw.Bonsai(random_state=0), "Bonsai"),
    Method("FastXML", ("FastXML",), lambda tw: tw.FastXML(random_state=0), "FastXML"),
    Method("PfastXML", ("PfastXML",), lambda tw: tw.PfastXML(random_state=0), "PfastXML"),
    Method("PfastreXML", ("PfastreXML",), lambda tw: tw.PfastreXML(random_state=0), "PfastreXML", demo=True),
    Method("GLaS", ("GLaS",), lambda tw: tw.GLaS(random_state=0), "GLaS"),
    Method("RankNet+Bonsai", ("RankNet", "Bonsai"), lambda tw: tw.RankNet(tw.Bonsai(random_state=0)), "RankNet+Bonsai"),
    Method(
        "RankNet+Parabel", ("RankNet", "Parabel"), lambda tw: tw.RankNet(tw.Parabel(random_state=0)), "RankNet+Parabel"
    ),
    Method(
        "RankNet+FastXML", ("RankNet", "FastXML"), lambda tw: tw.RankNet(tw.FastXML(random_state=0)), "RankNet+FastXML"
    ),
    Method(
        "Taug+Bonsai",
        ("TailAugmented", "Bonsai"),
        lambda tw: tw.TailAugmented(tw.Bonsai(random_state=0)),
        "Taug+Bonsai",
    ),
)
"""In the order of the table."""


def select(names: Sequence[str] | None = None, *, demo: bool = False) -> list[Method]:
    """The methods of this version: all, those named, or the demo's.

    >>> [method.name for method in select(["centroid"])]
    ['Centroid']
    """
    there = [method for method in METHODS if method.is_there]
    if not names:
        return [method for method in there if method.demo or not demo]

    def plain(text: str) -> str:
        return text.lower().replace("-", "").replace("_", "")

    by_name = {plain(method.name): method for method in there}
    unknown = [name for name in names if plain(name) not in by_name]
    if unknown:
        raise InvalidInput(
            f"--methods {unknown[0]!r} is not known; choose from {', '.join(method.name for method in there)}"
        )
    return [by_name[plain(name)] for name in names]
