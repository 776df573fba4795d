"""How ``--set param=value`` becomes parameters: a class's own table of constraints says what is allowed."""

from __future__ import annotations

import ast
import difflib
from typing import Any

from tailwise.errors import InvalidInput
from tailwise.parameters import Constraint, constraints_of, signature_of

_WORDS = {"true": True, "false": False, "none": None}


def parse_settings(cls: type, settings: list[str], option: str = "--set") -> dict[str, Any]:
    """``["C=2", "prune=0"]`` as checked parameters of ``cls``; errors speak of ``option``.

    >>> from tailwise import Centroid
    >>> parse_settings(Centroid, ["n_jobs=2"])
    {'n_jobs': 2}
    """
    known, defaults = constraints_of(cls), signature_of(cls)
    parsed = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise InvalidInput(
                f"{option} {setting!r} has no '='; write {option} param=value, for example {option} n_jobs=2"
            )
        if name not in known:
            close = difflib.get_close_matches(name, known, 1, 0.5)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InvalidInput(
                f"{option} {setting!r}: {cls.__name__} has no parameter {name!r}; {hint}"
                f"It takes {', '.join(known) or 'none'}"
            )
        try:
            parsed[name] = _parse(name, text.strip(), known[name])
        except InvalidInput as error:
            default = defaults[name].default
            usual = "" if default is defaults[name].empty else f"; the default is {default!r}"
            raise InvalidInput(f"{option} {setting!r}: {error}. {cls.__name__} takes {known[name]}{usual}") from error
    return parsed


def parse_ranges(texts: list[str], option: str = "--try") -> dict[str, Any] | None:
    """``["C=0.1..10", "loss=hinge,logistic", "tol"]`` as :func:`tailwise.tune` takes ranges; None where there are none.

    >>> parse_ranges(["C=0.1..10", "loss=hinge,logistic", "k"])
    {'C': (0.1, 10), 'loss': ['hinge', 'logistic'], 'k': None}
    """
    ranges: dict[str, Any] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        low, dots, high = values.partition("..")
        if dots:
            ends = _literal(low.strip()), _literal(high.strip())
            if not all(isinstance(end, int | float) for end in ends):
                raise InvalidInput(f"{option} {text!r}: write two numbers, such as {option} C=0.1..10")
            ranges[name.strip()] = ends
        else:
            ranges[name.strip()] = [_literal(value.strip()) for value in values.split(",")] if equals else None
    return ranges or None


def parse_points(texts: list[str], option: str = "--within") -> dict[str, float]:
    """``["p@1=1"]`` as points by metric.

    >>> parse_points(["p@1=1", "psp@5=0.5"])
    {'p@1': 1.0, 'psp@5': 0.5}
    """
    points = {}
    for text in texts:
        metric, _, value = text.partition("=")
        try:
            points[metric.strip()] = float(value)
        except ValueError:
            raise InvalidInput(f"{option} {text!r}: write a metric and points, such as {option} p@1=1") from None
    return points


def _parse(name: str, text: str, constraint: Constraint) -> Any:
    """The value that ``text`` writes in Python, or the text itself where only that is allowed: ``7`` may be a name."""
    value = _literal(text)
    try:
        return constraint.check(name, value)
    except InvalidInput:
        if isinstance(value, str):
            raise
        try:
            return constraint.check(name, text)
        except InvalidInput:
            pass
        raise


def _literal(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
