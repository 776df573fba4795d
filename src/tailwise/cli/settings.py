"""How ``--set param=value`` becomes parameters: names, defaults and types come from the class signature."""

from __future__ import annotations

import ast
import difflib
import inspect
import types
import typing
from typing import Any, Literal

from tailwise.errors import InvalidInput


def parameters_of(cls: type) -> dict[str, inspect.Parameter]:
    """The parameters of a class with their defaults, from its signature."""
    return {
        name: parameter
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def parse_settings(cls: type, settings: list[str]) -> dict[str, Any]:
    """``["C=2", "prune=0"]`` as checked parameters of ``cls``.

    >>> from tailwise import Centroid
    >>> parse_settings(Centroid, ["n_jobs=2"])
    {'n_jobs': 2}
    """
    known = parameters_of(cls)
    hints = _type_hints(cls)
    parsed = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise InvalidInput(f"--set {setting!r} has no '='; write --set param=value, for example --set n_jobs=2")
        if name not in known:
            close = difflib.get_close_matches(name, known, 1, 0.5)
            hint = f"did you mean {close[0]}? " if close else ""
            raise InvalidInput(
                f"--set {setting!r}: {cls.__name__} has no parameter {name!r}; {hint}"
                f"It takes {', '.join(known) or 'none'}"
            )
        parsed[name] = _parse_value(cls, setting, text.strip(), known[name], hints.get(name))
    return parsed


def _type_hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls.__init__)  # type: ignore[misc]
    except NameError:  # a name imported for type checkers only: then the default alone decides
        return {}


def _parse_value(cls: type, setting: str, text: str, parameter: inspect.Parameter, hint: Any) -> Any:
    value = _literal(text)
    allowed = _plain_types(hint, parameter.default)
    choices = _choices(hint)
    if choices and text in choices:
        return text
    if any(_fits(value, kind) for kind in allowed):
        return float(value) if float in allowed and int not in allowed and type(value) is int else value
    if str in allowed and not choices:
        return text
    names = {bool: "true or false", int: "an integer", float: "a number", str: "text", type(None): "none"}
    wanted = [repr(choice) for choice in choices] + [
        names.get(kind, kind.__name__) for kind in allowed if kind is not str
    ]
    default = "" if parameter.default is parameter.empty else f"; its default is {parameter.default!r}"
    raise InvalidInput(f"--set {setting!r}: {cls.__name__} needs {' or '.join(wanted)} for {parameter.name}{default}")


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _fits(value: Any, kind: type) -> bool:
    if kind is float:
        return type(value) in (int, float)
    return type(value) is kind


def _plain_types(hint: Any, default: Any) -> tuple[type, ...]:
    """The simple types that the annotation admits; without an annotation, the default's type."""
    simple = (bool, int, float, str, type(None), list, tuple, dict)
    if hint is None:
        return simple if default in (None, inspect.Parameter.empty) else (type(default),)
    kinds: list[type] = []
    for part in _parts(hint):
        origin = typing.get_origin(part) or part
        if part is Any:
            return simple
        if origin in simple:
            kinds.append(origin)
        elif typing.get_origin(part) is Literal:
            kinds.extend({type(choice) for choice in typing.get_args(part)} - {str})
    return tuple(dict.fromkeys(kinds)) or (() if _choices(hint) else simple)


def _choices(hint: Any) -> list[str]:
    return [
        choice
        for part in _parts(hint)
        if typing.get_origin(part) is Literal
        for choice in typing.get_args(part)
        if isinstance(choice, str)
    ]


def _parts(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
