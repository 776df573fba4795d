"""Propensities by a word, as the command takes them: A and B, a family of data sets, a file, or an audit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tailwise.errors import DataFormatError, InvalidInput, argument
from tailwise.persistence import load
from tailwise.propensity.models import PRESETS, GivenPropensity, JainPropensity, Propensity
from tailwise.validation import check_number

WAYS = f"jain:A,B, {', '.join(PRESETS)}, a file with a number for each label, or the folder of an audit"
FOLDER = "propensity"
"""Where, in the folder of an audit, its estimate is kept."""


def named_propensity(text: str) -> Propensity:
    """The propensity that ``text`` names: ``"jain:0.5,0.4"``, ``"amazon"``, a file, or the folder of an audit.

    A file has a number a line, in the order of the labels: propensities, or their inverses as they are published. An
    audit has the curve that ``tailwise audit estimate`` fitted to its answers.

    >>> named_propensity("jain:0.5,0.4"), named_propensity("amazon")
    (JainPropensity(a=0.5, b=0.4), JainPropensity(a=0.6, b=2.6))
    """
    if text in PRESETS:
        return JainPropensity.preset(text)
    kind, colon, numbers = text.partition(":")
    if kind == "jain" and (colon or not Path(text).exists()):
        return _jain(text, numbers) if colon else JainPropensity()
    path = Path(text)
    if path.is_dir():
        return _estimated(path)
    if not path.is_file():
        raise InvalidInput(f"{argument('propensity', text)} is no propensity and no file; pass {WAYS}")
    values = _read(path)
    if (values >= 1).all():
        return GivenPropensity.from_inverse(values)
    if ((values > 0) & (values <= 1)).all():
        return GivenPropensity(values)
    found = f"numbers from {values.min():g} to {values.max():g}"
    raise DataFormatError(path, None, found, "propensities in (0, 1], or inverse ones of 1 and more")


def _estimated(path: Path) -> Propensity:
    """The propensity in a folder: a saved one, or that of an audit."""
    inner = path / FOLDER
    if not inner.is_dir() and (path / "audit.db").exists():
        raise InvalidInput(f"{path} is an audit without an estimate; run `tailwise audit estimate {path}` first")
    found = load(inner if inner.is_dir() else path)
    if not isinstance(found, Propensity):
        raise InvalidInput(f"{argument('propensity', path)} holds a {type(found).__name__}; pass {WAYS}")
    return found


def _jain(text: str, numbers: str) -> JainPropensity:
    try:
        a, b = (float(number) for number in numbers.split(","))
        for name, value in (("A", a), ("B", b)):
            check_number(name, value, low=0, open_low=True)
    except ValueError as error:
        raise InvalidInput(
            f"{argument('propensity', text)} does not give A and B, two numbers above 0, such as jain:0.55,1.5"
        ) from error
    return JainPropensity(a, b=b)


def _read(path: Path) -> np.ndarray:
    values = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            values.append(float(line))
        except ValueError as error:
            raise DataFormatError(path, number, repr(line[:40].decode(errors="replace")), "a number a line") from error
    if not values or not np.isfinite(values).all():
        raise DataFormatError(path, None, "no numbers, or infinite ones", "a number a line")
    return np.array(values)
