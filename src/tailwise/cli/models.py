"""The one table of models: how ``--model`` names become classes and ``--set`` values become parameters.

Names follow from the public class names (``PWDiSMEC`` is ``pw-dismec``); parameters, their defaults and their
types come from the class signature, so nothing is written twice.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import re
import types
import typing
from typing import Any, Literal, NamedTuple

import tailwise

CLASSES = (
    "DiSMEC",
    "PWDiSMEC",
    "ProXML",
    "PPDSparse",
    "Parabel",
    "Bonsai",
    "FastXML",
    "PfastXML",
    "PfastreXML",
    "GLaS",
    "SampledSoftmax",
    "NearestRows",
    "Stacked",
    "Centroid",
    "Popularity",
)
"""Models that need no other model, most accurate families first; those this version lacks are left out."""

STACKED_MEMBERS = ("DiSMEC", "PWDiSMEC", "Centroid", "NearestRows")
"""What ``--model stacked`` combines."""

_WORD_STARTS = re.compile(r"(?<=[A-Z]{2})(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z][a-z])")


def _refusal(message: str) -> Exception:
    # errors.py brings scikit-learn, which --help must not wait for.
    from tailwise.errors import InvalidInput

    return InvalidInput(message)


def command_name(class_name: str) -> str:
    """The name of a class at the command line.

    >>> [command_name(name) for name in ("PWDiSMEC", "PPDSparse", "PfastreXML", "GLaS", "SampledSoftmax")]
    ['pw-dismec', 'ppd-sparse', 'pfastrexml', 'glas', 'sampled-softmax']
    """
    return "-".join(_WORD_STARTS.split(class_name)).lower()


def model_names() -> list[str]:
    """The names that ``--model`` takes besides ``auto``."""
    return [command_name(name) for name in CLASSES if name in tailwise._HOME_OF]


def model_class(name: str) -> type:
    """The class behind a ``--model`` name; hyphens and case do not matter."""

    def plain(text: str) -> str:
        return text.lower().replace("-", "").replace("_", "")

    for class_name in CLASSES:
        if plain(class_name) == plain(name) and class_name in tailwise._HOME_OF:
            return getattr(tailwise, class_name)
    close = difflib.get_close_matches(name.lower(), model_names(), 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise _refusal(f"--model {name!r} is not known; {hint}Choose auto, {', '.join(model_names())}")


class Choice(NamedTuple):
    """What ``--model auto`` chose, and why."""

    name: str
    reason: str


MINUTES_FOR_ONE_VS_REST = 20
_SECONDS_PER_LABEL_AND_VALUE = 1.3e-9
"""CPU-seconds of one-vs-rest training for each label and stored feature value, as measured on EURLex-4K."""


def choose_model(n_rows: int, n_labels: int, n_values: int) -> Choice:
    """Choose by size: one-vs-rest while it takes minutes, a label tree beyond.

    >>> choose_model(15_539, 3_993, 3_700_000).name
    'dismec'
    >>> choose_model(1_800_000, 325_000, 80_000_000).name
    'parabel'
    """
    names = model_names()
    minutes = n_labels * n_values * _SECONDS_PER_LABEL_AND_VALUE / 60
    size = f"{n_rows:,} rows, {n_labels:,} labels, {n_values:,} feature values"
    if "dismec" in names and minutes <= MINUTES_FOR_ONE_VS_REST:
        estimate = f"about {minutes:.0f} CPU-minutes" if minutes >= 1 else "under a CPU-minute"
        return Choice("dismec", f"{size}: one classifier a label is the most accurate and takes {estimate}")
    if "parabel" in names:
        return Choice("parabel", f"{size}: one classifier a label would take hours; a tree over labels takes minutes")
    return Choice("centroid", f"{size}: the nearest label mean, which trains in one pass")


def parameters_of(cls: type) -> dict[str, inspect.Parameter]:
    """The parameters of a model with their defaults, from its signature."""
    return {
        name: parameter
        for name, parameter in inspect.signature(cls).parameters.items()
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def make_model(name: str, settings: list[str], **defaults: Any) -> Any:
    """Build the model ``name`` with ``param=value`` settings; ``defaults`` are used where the class has them."""
    cls = model_class(name)
    known = parameters_of(cls)
    chosen = {key: value for key, value in defaults.items() if key in known and value is not None}
    chosen.update(parse_settings(cls, settings))
    if "members" in known and "members" not in chosen:
        chosen["members"] = [getattr(tailwise, member)() for member in STACKED_MEMBERS if member in tailwise._HOME_OF]
    return cls(**chosen)


def with_tail(model: Any, tail: float) -> Any:
    """``model`` with its candidates ranked by ``score × (1/p)^tail``; 0 leaves it as it is."""
    if not 0 <= tail <= 1:
        raise _refusal(f"--tail {tail:g} is outside [0, 1]; 0 is precision, 1 leans to rare labels most")
    return tailwise.PropensityReranker(model, power=tail) if tail else model


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
            raise _refusal(f"--set {setting!r} has no '='; write --set param=value, for example --set n_jobs=2")
        if name not in known:
            close = difflib.get_close_matches(name, known, 1, 0.5)
            hint = f"did you mean {close[0]}? " if close else ""
            raise _refusal(
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
    raise _refusal(f"--set {setting!r}: {cls.__name__} needs {' or '.join(wanted)} for {parameter.name}{default}")


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
