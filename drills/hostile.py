"""Are folders with right digests and wrong contents refused?

Someone who writes a model folder by hand can make every sha256 right. Each try replaces the parts of one sparse matrix
or of one list of strings by wrong ones of many kinds; opening must refuse every one that breaks a rule.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from drills.forging import forge_array, forge_manifest
from drills.harness import Outcome, identity, small_model

COUNT = 1_000
MODEST = 100

Change = Callable[[np.ndarray, random.Random], np.ndarray]


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    good = folder / "good"
    small_model(0).save(good)
    known = {identity(small_model(0))}
    for what, parts in (("csr", CSR), ("strings", STRINGS)):
        outcome = Outcome(what)
        for number in range(count):
            chance = random.Random(number)
            part, change = chance.choice(parts)
            path = folder / "forged"
            shutil.rmtree(path, ignore_errors=True)
            shutil.copytree(good, path)
            forge_array(path, part, lambda array: change(array, chance))  # noqa: B023
            outcome.judge(path, known)
            if outcome.intact:
                outcome.intact, outcome.broken = 0, outcome.broken + 1
                outcome.reasons[f"{part} by {change.__name__} was accepted"] += 1
        yield outcome
    outcome = Outcome("shapes")
    for shape in ([1], [-1, 5], [10**12, 60], [301, 60], [300, 1], [2**70, 2**70], ["300", 60], None, 7):
        path = folder / "forged"
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(good, path)
        forge_manifest(path, lambda value: value | {"shape": shape} if value.get("$") == "csr" else value)  # noqa: B023
        outcome.judge(path, set())
    yield outcome


def shorter(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array[: chance.randrange(array.size)]


def longer(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return np.concatenate([array, array[: chance.randrange(1, array.size)]])


def two_dimensional(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array.reshape(1, -1)


def of_floats(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array.astype(np.float64)


def of_complex(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array.astype(np.complex64)


def of_text(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array.astype("U8")


def byte_swapped(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array.astype(array.dtype.newbyteorder())


def one_negative(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _with(array, chance.randrange(array.size), -chance.randrange(1, 2**31))


def one_huge(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _with(array, chance.randrange(array.size), chance.randrange(10**6, 2**31))


def falling(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array[::-1].copy()


def not_from_zero(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _with(array, 0, 1)


def not_to_the_end(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _with(array, -1, array[-1] - 1)


def past_the_end(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _with(array, -1, array[-1] + chance.randrange(1, 1000))


def not_utf8(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _with(array, chance.randrange(array.size), 0xFF)


def empty(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array[:0]


def _with(array: np.ndarray, at: int, value: int) -> np.ndarray:
    changed = array.copy()
    changed[at] = value
    return changed


ANY: list[Change] = [shorter, longer, two_dimensional, of_complex, of_text, byte_swapped, empty]
OFFSETS: list[Change] = [
    *ANY,
    of_floats,
    one_negative,
    one_huge,
    falling,
    not_from_zero,
    not_to_the_end,
    past_the_end,
]
CSR: list[tuple[str, Change]] = [
    *((".data", change) for change in ANY),
    *((".indices", change) for change in [*ANY, of_floats, one_negative, one_huge]),
    *((".indptr", change) for change in OFFSETS),
]
STRINGS: list[tuple[str, Change]] = [
    *(
        (".text", change)
        for change in [shorter, longer, two_dimensional, of_complex, of_text, of_floats, empty, not_utf8]
    ),
    *((".offsets", change) for change in OFFSETS),
]
