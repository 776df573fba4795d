"""Are folders with right digests and wrong contents refused, or harmless?

Someone who writes a model folder by hand can make every sha256 right. Each try changes one array or one value of the
description of a tiny model of each class. Opening must refuse it, or the model must answer as models do: no crash, no
hang, no foreign exception, no label that does not exist, no score that is not a number.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from drills.changes import CSR, STRINGS, changes_for
from drills.forging import arrays_of, change_array, forge_array, forge_manifest, forge_value, values_of
from drills.harness import Outcome, identity, small_model, wanted
from drills.judging import Judge
from drills.zoo import MODELS, saveable_classes
from tailwise import persistence

COUNT = 10_000
MODEST = 60

Forgery = tuple[str, Callable[[Path], Any]]

VALUES: list[Any] = [
    ...,
    None,
    True,
    -1,
    0,
    1,
    3,
    10**6,
    2**31,
    2**70,
    0.5,
    -0.5,
    float("nan"),
    float("inf"),
    "x",
    [],
    {},
]


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    """Matrices and strings with ``count`` changes each, then ``count`` of the changes of each class."""
    yield from of_parts(count, folder)
    with Judge() as judge:
        for name in filter(wanted, MODELS):
            yield of_class(name, count, folder, judge)


def of_class(name: str, count: int, folder: Path, judge: Judge) -> Outcome:
    """``count`` forgeries of one class, the same ones every time: single ones first, then two at once."""
    good = folder / name.replace(" ", "-")
    persistence.save(MODELS[name](), good)
    outcome = Outcome(name)
    for number, forgeries in enumerate(islice(_one_or_two(name, list(_forgeries(good))), count)):
        path = copy_folder(good, folder / "forged")
        for _, forge in forgeries:
            # The first change may have removed what the second one would change.
            with suppress(LookupError, TypeError, ValueError, AttributeError, FileNotFoundError):
                forge(path)
        kind, why = judge(path, good, verify=number % 2 == 0)
        outcome.count(kind, f"{' and '.join(what for what, _ in forgeries)}: {why}")
    return outcome


def _one_or_two(name: str, forgeries: list[Forgery]) -> Iterator[list[Forgery]]:
    chance = random.Random(name)
    chance.shuffle(forgeries)
    yield from ([forgery] for forgery in forgeries)
    while True:
        yield chance.sample(forgeries, 2)


def _forgeries(good: Path) -> Iterator[Forgery]:
    for name in arrays_of(good):
        for change in changes_for(np.load(good / name)):
            chance = random.Random(f"{name} {change.__name__}")
            yield (
                f"{name[:-21]} by {change.__name__}",
                lambda path, name=name, change=change, chance=chance: change_array(
                    path, name, lambda array: change(array, chance)
                ),
            )
    for keys in values_of(good):
        for value in class_names() if keys[-1:] == ("class",) else VALUES:
            if keys or value is not ...:
                yield (
                    f"{'.'.join(map(str, keys))} = {value!r}",
                    lambda path, keys=keys, value=value: forge_value(path, keys, value),
                )


@cache
def class_names() -> list[str]:
    """Every class of tailwise that a folder can name, and some that it cannot."""
    tuples = [kind for kind in tuple.__subclasses__() if kind.__module__.startswith("tailwise.")]
    return [f"{kind.__module__}:{kind.__qualname__}" for kind in [*saveable_classes(), *tuples]]


def copy_folder(good: Path, path: Path) -> Path:
    """A copy that shares the arrays, which forging replaces and never writes to."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    for file in good.iterdir():
        (shutil.copy if file.suffix == ".json" else os.link)(file, path / file.name)
    return path


def of_parts(count: int, folder: Path) -> Iterator[Outcome]:
    """Sparse matrices and lists of strings with ``count`` changes each, and matrices with wrong shapes."""
    good, path = folder / "good", folder / "forged"
    small_model(0).save(good)
    known = {identity(small_model(0))}
    for what, parts in (("csr", CSR), ("strings", STRINGS)):
        outcome = Outcome(what)
        for number in range(min(count, 1_000)):
            chance = random.Random(number)
            part, change = chance.choice(parts)
            forge_array(copy_folder(good, path), part, lambda array: change(array, chance))  # noqa: B023
            outcome.judge(path, known)
            if outcome.intact:
                outcome.intact, outcome.broken = 0, outcome.broken + 1
                outcome.reasons[f"{part} by {change.__name__} was accepted"] += 1
        yield outcome
    outcome = Outcome("shapes")
    for shape in ([1], [-1, 5], [10**12, 60], [301, 60], [300, 1], [2**70, 2**70], ["300", 60], None, 7):
        copy_folder(good, path)
        forge_manifest(path, lambda value: value | {"shape": shape} if value.get("$") == "csr" else value)  # noqa: B023
        outcome.judge(path, set())
    yield outcome
