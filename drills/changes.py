"""Wrong arrays of many kinds, made of right ones."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

Change = Callable[[np.ndarray, random.Random], np.ndarray]


def shorter(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array[: chance.randrange(len(array))]


def longer(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return np.concatenate([array, array[: chance.randrange(1, max(2, len(array)))]])


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


def scalar(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return np.zeros((), array.dtype)


def by_columns(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return np.asfortranarray(array)


def of_other_width(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array.astype(f"{array.dtype.kind}{4 if array.dtype.itemsize == 8 else 8}")


def of_bools(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array.astype(bool)


def zeros(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return np.zeros_like(array)


def shuffled(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return array.ravel()[np.random.default_rng(chance.randrange(100)).permutation(array.size)].reshape(array.shape)


def one_past(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _at(array, chance, array.max() + 1 if array.max() < np.iinfo(array.dtype).max else 0)


def one_minus_one(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _at(array, chance, -1)


def one_largest(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _at(array, chance, np.iinfo(array.dtype).max)


def one_least(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _at(array, chance, np.iinfo(array.dtype).min)


def all_largest(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return np.full_like(array, np.iinfo(array.dtype).max)


def one_nan(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _at(array, chance, np.nan)


def all_nan(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return np.full_like(array, np.nan)


def one_infinite(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _at(array, chance, np.inf)


def one_minus_infinite(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return _at(array, chance, -np.inf)


def negated(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return -array


def of_integers(array: np.ndarray, chance: random.Random) -> np.ndarray:
    return np.nan_to_num(array, posinf=0, neginf=0).astype(np.int64)


def _at(array: np.ndarray, chance: random.Random, value: float) -> np.ndarray:
    changed = array.copy()
    if array.size:
        flat = changed.reshape(-1)
        flat[chance.randrange(array.size)] = np.array(value).astype(array.dtype)
    return changed


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

WRONG: list[Change] = [*ANY, scalar, by_columns, of_other_width, of_bools, zeros, falling, shuffled]
WRONG_INTEGERS: list[Change] = [*WRONG, of_floats, one_past, one_minus_one, one_largest, one_least, all_largest]
WRONG_FLOATS: list[Change] = [
    *WRONG,
    of_integers,
    one_nan,
    all_nan,
    one_infinite,
    one_minus_infinite,
    negated,
]


def changes_for(array: np.ndarray) -> list[Change]:
    """What can be done to an array of this kind, blindly."""
    if not array.size:
        return [scalar, two_dimensional, of_text, of_floats]
    return WRONG_FLOATS if array.dtype.kind == "f" else WRONG_INTEGERS if array.dtype.kind in "iu" else WRONG
