"""What the parameters of this room's models may be, beyond numbers and choices."""

from __future__ import annotations

from typing import Any

from tailwise.embedding.index import LabelIndex
from tailwise.errors import InvalidInput
from tailwise.metrics.names import METRIC
from tailwise.parameters import Component, Constraint, Flag, Integer, Number, OrNone, Text
from tailwise.propensity import PropensityLike
from tailwise.validation import check_number

INDEX = OrNone(Component(LabelIndex, "label index", "FaissIndex(), or None for exact search"))
"""The constraint of a parameter that says how labels are searched."""

TRAINING: dict[str, Constraint] = {
    "batch_size": Integer(low=1),
    "epochs": Integer(low=1),
    "learning_rate": Number(low=0, open_low=True),
    "early_stopping": Flag(),
    "metric": METRIC,
    "patience": Integer(low=1),
    "validation_fraction": Number(low=0, high=1, open_low=True, open_high=True),
    "propensity": PropensityLike(),
    "checkpoint": OrNone(Text()),
    "device": Text(),
}
"""The parameters of a training by epochs that stops early."""


class Widths(Constraint):
    """Widths of hidden layers: a tuple or a list of integers above 0; ``or_one`` allows one integer or None too."""

    def __init__(self, *, or_one: bool = False) -> None:
        self.or_one = or_one

    def check(self, name: str, value: Any) -> Any:
        """The value, widths of layers."""
        if not self.or_one and not isinstance(value, tuple | list):
            raise InvalidInput(f"{name}={value!r} must be a tuple of layer widths, such as (256,)")
        for width in layer_widths(value):
            check_number(name, width, integer=True, low=1)
        return value

    def __str__(self) -> str:
        return "a tuple of layer widths" + (", one width, or None for no hidden layer" if self.or_one else "")


def layer_widths(hidden: Any) -> tuple[int, ...]:
    """The widths that a parameter ``hidden`` stands for.

    >>> layer_widths(None), layer_widths(64), layer_widths([64, 32])
    ((), (64,), (64, 32))
    """
    if hidden is None:
        return ()
    return tuple(hidden) if isinstance(hidden, list | tuple) else (hidden,)
