"""Parameters of models within models, by one name: ``base__C``, ``members__0__k``."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from sklearn.base import clone

from tailwise.base import XMCModel
from tailwise.errors import InvalidInput
from tailwise.parameters import constraints_of, signature_of
from tailwise.ranges import OneOf, Range, Ranges


def parts_of(model: XMCModel, prefix: str = "") -> Iterator[tuple[str, XMCModel]]:
    """The model and every model that it is made of, each behind the prefix of its parameters' names.

    >>> from tailwise import Centroid, Ensemble, Sublinear
    >>> [prefix for prefix, _ in parts_of(Ensemble([Sublinear(Centroid())]))]
    ['', 'members__0__', 'members__0__base__']
    """
    yield prefix, model
    for name, value in model.get_params(deep=False).items():
        if isinstance(value, XMCModel):
            yield from parts_of(value, f"{prefix}{name}__")
        elif isinstance(value, list | tuple):
            for number, part in enumerate(value):
                if isinstance(part, XMCModel):
                    yield from parts_of(part, f"{prefix}{name}__{number}__")


def own_ranges(model: XMCModel) -> Ranges:
    """What the model and its parts find worth trying.

    >>> from tailwise import DiSMEC, Sublinear
    >>> sorted(own_ranges(Sublinear(DiSMEC())))
    ['base__C', 'power']
    """
    return {prefix + name: range_ for prefix, part in parts_of(model) for name, range_ in part._ranges().items()}


def chosen_ranges(model: XMCModel, parameters: Any) -> Ranges:
    """The ranges to try: all of the model's own (None), some of them by name, or what a dict says.

    A dict's values are a :class:`Range`, a :class:`OneOf`, a pair (low, high), searched by ratios where both are above
    0, a list of values, or None for the model's own range.
    """
    own = own_ranges(model)
    if parameters is None:
        if not own:
            raise InvalidInput(
                f"{type(model).__name__} does not say what is worth trying; name parameters and their ranges: "
                "parameters={'C': (0.1, 10)}"
            )
        return own
    wanted = dict(parameters) if isinstance(parameters, Mapping) else dict.fromkeys(parameters)
    if not wanted:
        raise InvalidInput("parameters is empty; name at least one, or pass None for all that are worth trying")
    return {name: _range_of(model, name, value, own) for name, value in wanted.items()}


def _range_of(model: XMCModel, name: str, value: Any, own: Ranges) -> Range | OneOf:
    part, parameter = _find(model, name)
    constraint, usual = constraints_of(type(part))[parameter], getattr(part, parameter)
    if value is None:
        if name not in own:
            raise InvalidInput(f"parameters names {name!r}, for which {type(part).__name__} has no range; pass one")
        return own[name]
    if isinstance(value, tuple) and not isinstance(value, Range | OneOf):
        value = _interval(name, value, own.get(name), usual)
    elif isinstance(value, list):
        value = OneOf(tuple(value), usual if usual in value else value[0] if value else None)
    if not isinstance(value, Range | OneOf) or (isinstance(value, OneOf) and not value.values):
        raise InvalidInput(
            f"parameters[{name!r}]={value!r}; pass a pair (low, high), a list of values, or None for the usual range"
        )
    for tried in value.values if isinstance(value, OneOf) else value[:3]:
        constraint.check(name, tried)
    return value


def _interval(name: str, pair: tuple[Any, ...], own: Any, usual: Any) -> Range:
    numbers = [number for number in pair if isinstance(number, int | float) and not isinstance(number, bool)]
    if len(pair) != 2 or len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise InvalidInput(f"parameters[{name!r}]={pair!r}; pass (low, high), two numbers, the lower one first")
    low, high = numbers
    found = Range(low, high, low, low > 0, isinstance(low, int) and isinstance(high, int) and isinstance(usual, int))
    known = own.usual if isinstance(own, Range) else usual
    inside = isinstance(known, int | float) and low <= known <= high
    return found._replace(usual=known if inside else found.between(low, high))


def with_parameters(model: XMCModel, values: Mapping[str, Any]) -> XMCModel:
    """A clone of ``model`` with these parameters, wherever they belong.

    >>> from tailwise import Centroid, Ensemble, NearestRows
    >>> with_parameters(Ensemble([Centroid(), NearestRows()]), {"members__1__k": 7}).members[1]
    NearestRows(k=7)
    """
    new = clone(model)
    for name, value in values.items():
        part, parameter = _find(new, name)
        setattr(part, parameter, value)
    return new


def _find(model: XMCModel, name: str) -> tuple[XMCModel, str]:
    """The part that a parameter belongs to, and the parameter's name there."""
    known: dict[str, tuple[XMCModel, str]] = {}
    for prefix, part in parts_of(model):
        known |= {prefix + parameter: (part, parameter) for parameter in signature_of(type(part))}
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, 1, 0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InvalidInput(f"parameters names {name!r}, which is none of the model's; {hint}It has {', '.join(known)}")
