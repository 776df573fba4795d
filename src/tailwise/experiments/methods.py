"""The methods that the papers report, each with the model of ours that stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tailwise.embedding import GLaS
from tailwise.errors import InvalidInput
from tailwise.models import make_model, plain_name
from tailwise.tail import LPSR, RankNet, Sublinear, TailAugmented
from tailwise.tail.wrapper import Wrapper


class Method(NamedTuple):
    """One row of the table: how to build the model, and under which name it was published."""

    name: str
    make: Callable[[], Any]
    """Builds the unfitted model."""
    published: str | None = None
    demo: bool = False


def _plain(class_name: str, published: str | None = None, *, demo: bool = False) -> Method:
    return Method(published or class_name, lambda: _seeded(make_model(class_name)), published, demo)


def _around(wrapper: type[Wrapper], base: str, published: str) -> Method:
    return Method(published, lambda: _seeded(wrapper(_seeded(make_model(base)))), published)


def _seeded(model: Any) -> Any:
    """The model with a fixed seed, where it draws anything."""
    return model.set_params(random_state=0) if "random_state" in model.get_params(deep=False) else model


METHODS = (
    _plain("Popularity", demo=True),
    _plain("Centroid", demo=True),
    _plain("NearestRows")._replace(published="kNN"),
    _plain("DiSMEC", "DiSMEC", demo=True),
    # With the weights that its paper found best, and one C for all labels.
    Method(
        "PW-DiSMEC",
        lambda: make_model("PWDiSMEC", weighting="tail", C_decay=0.0, random_state=0),
        "PW-DiSMEC",
        demo=True,
    ),
    # On damped values, as its authors train it.
    Method("ProXML", lambda: Sublinear(make_model("ProXML", C=2.0, random_state=0)), "ProXML"),
    _plain("PPDSparse", "PPD-Sparse"),
    _plain("PDSparse", "PD-Sparse"),
    _plain("Parabel", "Parabel", demo=True),
    _plain("Bonsai", "Bonsai"),
    _plain("FastXML", "FastXML"),
    _plain("PfastXML", "PfastXML"),
    _plain("PfastreXML", "PfastreXML", demo=True),
    _plain("GLaS", "GLaS"),
    Method("GLaS (as published)", lambda: _seeded(GLaS.as_published()), "GLaS"),
    _plain("WSABIE", "WSABIE"),
    _plain("LEML", "LEML"),
    _plain("CPLST", "CPLST"),
    _plain("MLCSSP", "ML-CSSP"),
    _plain("CS", "CS"),
    _plain("RobustXML", "RobustXML"),
    _plain("SLEEC", "SLEEC"),
    _around(LPSR, "DiSMEC", "LPSR"),
    _around(RankNet, "FastXML", "RankNet+FastXML"),
    _around(RankNet, "Parabel", "RankNet+Parabel"),
    _around(RankNet, "Bonsai", "RankNet+Bonsai"),
    Method(
        "RankNet+Bonsai (as published)",
        lambda: _seeded(RankNet.as_published(_seeded(make_model("Bonsai")))),
        "RankNet+Bonsai",
    ),
    _around(TailAugmented, "Bonsai", "Taug+Bonsai"),
    Method("Taug+Bonsai (as published)", lambda: _seeded(TailAugmented.as_published(_seeded(make_model("Bonsai"))))),
)
"""In the order of the table."""


def select(names: Sequence[str] | None = None, *, demo: bool = False) -> list[Method]:
    """The methods of the table: all, those named, or the demo's.

    >>> [method.name for method in select(["centroid"])]
    ['Centroid']
    """
    if not names:
        return [method for method in METHODS if method.demo or not demo]
    by_name = {plain_name(method.name): method for method in METHODS}
    unknown = [name for name in names if plain_name(name) not in by_name]
    if unknown:
        raise InvalidInput(
            f"--methods {unknown[0]!r} is not known; choose from {', '.join(method.name for method in METHODS)}"
        )
    return [by_name[plain_name(name)] for name in names]
