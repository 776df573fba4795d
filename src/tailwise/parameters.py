"""What a parameter may be: declared once a class, read by ``fit``, by ``--set`` and by the documentation.

A class lists its constraints beside its constructor::

    _parameters = {"C": Number(low=0, open_low=True), "loss": Choice("hinge", "logistic")}

Tables add up along the classes it derives from. ``random_state`` and ``n_jobs`` mean the same everywhere and are not
listed again.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tailwise.errors import InvalidInput
from tailwise.parallel import count_jobs
from tailwise.validation import check_choice, check_number, interval


class Constraint:
    """Anything is allowed: what can only be judged together with the data. Subclasses refuse."""

    def check(self, name: str, value: Any) -> Any:
        """The value; a wrong one is refused by an error that names the argument and shows the value."""
        return value

    def __str__(self) -> str:
        return "any value"


class Number(Constraint):
    """A number in an interval; bounds are included unless they are said to be open.

    >>> str(Number(low=0, high=1, open_low=True)), str(Integer(low=1))
    ('a number in (0, 1]', 'an integer in [1, inf)')
    >>> Number(low=0).check("C", -1)
    Traceback (most recent call last):
    ...
    tailwise.errors.InvalidInput: C=-1 is outside [0, inf)
    """

    integer: ClassVar[bool] = False

    def __init__(
        self, *, low: float = -np.inf, high: float = np.inf, open_low: bool = False, open_high: bool = False
    ) -> None:
        self.bounds: dict[str, Any] = {"low": low, "high": high, "open_low": open_low, "open_high": open_high}

    def check(self, name: str, value: Any) -> Any:
        """The value, a finite number of the interval."""
        return check_number(name, value, integer=self.integer, **self.bounds)

    def __str__(self) -> str:
        return f"{'an integer' if self.integer else 'a number'} in {interval(**self.bounds)}"


class Integer(Number):
    """An integer in an interval."""

    integer = True


class Choice(Constraint):
    """One of a few values; a misspelt word is answered with the nearest.

    >>> Choice("hinge", "logistic").check("loss", "logistics")
    Traceback (most recent call last):
    ...
    tailwise.errors.InvalidInput: loss='logistics' is not one of 'hinge', 'logistic'; did you mean 'logistic'?
    """

    def __init__(self, *values: Any) -> None:
        self.values = values

    def check(self, name: str, value: Any) -> Any:
        """The value, one of the choices."""
        return check_choice(name, value, self.values)

    def __str__(self) -> str:
        return "one of " + ", ".join(map(repr, self.values))


class Flag(Choice):
    """True or False."""

    def __init__(self) -> None:
        super().__init__(True, False)

    def check(self, name: str, value: Any) -> Any:
        """The value, also as numpy's bool."""
        return super().check(name, bool(value) if isinstance(value, np.bool_) else value)

    def __str__(self) -> str:
        return "True or False"


class OrNone(Constraint):
    """None, or what another constraint allows."""

    def __init__(self, other: Constraint) -> None:
        self.other = other

    def check(self, name: str, value: Any) -> Any:
        """The value, where it is not None, as the other constraint has it."""
        return None if value is None else self.other.check(name, value)

    def __str__(self) -> str:
        return f"{self.other}, or None"


class Function(Constraint):
    """A function, or anything else that can be called."""

    def check(self, name: str, value: Any) -> Any:
        """The value, which can be called."""
        if not callable(value):
            raise InvalidInput(f"{name}={value!r} must be a function")
        return value

    def __str__(self) -> str:
        return "a function"


class OrFunction(Constraint):
    """A function, or what another constraint allows."""

    def __init__(self, other: Constraint) -> None:
        self.other = other

    def check(self, name: str, value: Any) -> Any:
        """The value, where it is not a function, as the other constraint has it."""
        return value if callable(value) else self.other.check(name, value)

    def __str__(self) -> str:
        return f"{self.other}, or a function"


class Text(Constraint):
    """A string."""

    def check(self, name: str, value: Any) -> Any:
        """The value, a str."""
        if not isinstance(value, str):
            raise InvalidInput(f"{name}={value!r} must be a string")
        return value

    def __str__(self) -> str:
        return "a string"


class Component(Constraint):
    """An object of tailwise with parameters of its own, which are checked too."""

    def __init__(self, kind: type, noun: str, example: str) -> None:
        self._kind, self._noun, self._example = kind, noun, example

    def check(self, name: str, value: Any) -> Any:
        """The value, an instance whose own parameters are right."""
        if not isinstance(value, self._kind):
            raise InvalidInput(f"{name}={value!r} is not {self}; pass one, such as {self._example}")
        check_parameters(value)
        return value

    def __str__(self) -> str:
        return f"a tailwise {self._noun}"


class Seed(Constraint):
    """What numpy takes as a seed, a generator, or None."""

    def check(self, name: str, value: Any) -> Any:
        """The value; nothing is drawn from a generator."""
        if isinstance(value, np.random.RandomState):
            return value
        try:
            np.random.default_rng(value)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{name}={value!r}; pass an integer, a numpy Generator or None") from error
        return value

    def __str__(self) -> str:
        return "an integer, a numpy Generator, or None"


class Jobs(Constraint):
    """A number of threads, or None for every core."""

    def check(self, name: str, value: Any) -> Any:
        """The value, something that :func:`tailwise.parallel.count_jobs` understands."""
        count_jobs(value)
        return value

    def __str__(self) -> str:
        return "an integer other than 0, or None for every core"


EVERYWHERE: dict[str, Constraint] = {"random_state": Seed(), "n_jobs": Jobs()}
"""Parameters that mean the same in every class that has them."""


def constraints_of(cls: type) -> dict[str, Constraint]:
    """The constraint of each constructor parameter of ``cls``, in the order of the constructor.

    >>> from tailwise import DiSMEC
    >>> str(constraints_of(DiSMEC)["prune"])
    'a number in [0, inf)'
    """
    declared: dict[str, Constraint] = dict(EVERYWHERE)
    for base in reversed(cls.__mro__):
        declared |= vars(base).get("_parameters", {})
    return {name: declared[name] for name in signature_of(cls)}


def signature_of(cls: type) -> Mapping[str, inspect.Parameter]:
    """The constructor's parameters with their defaults; none where the class has no constructor of its own."""
    return {} if cls.__init__ is object.__init__ else inspect.signature(cls).parameters  # type: ignore[misc]


def check_parameters(made: Any) -> None:
    """Refuse an object one of whose parameters, or of its parts' parameters, is wrong."""
    for name, constraint in constraints_of(type(made)).items():
        constraint.check(name, getattr(made, name))
