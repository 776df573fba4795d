"""What kernels are made of comes out as numba has it, with fewer instructions."""

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from tailwise.kernels.arrays import empty, part, zeros
from tailwise.kernels.compilation import njit

BOTH = [njit(), numba.njit]


def items(array, table, places, place, flags):
    total = array[place] + array[-1] + array[0] + table[place, -2] + table[-1, place] + table[1][2]
    for i in places:
        array[i] += table[i, i]
        flags[i] = not flags[i]
        table[i, -1] = 3
    array[-2] = 7
    return total, flags[1], array.shape[0], table.shape


@pytest.mark.parametrize("compiled", BOTH, ids=["ours", "numba"])
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint8, np.uint64])
def test_items_of_arrays(compiled, kind):
    def given():
        flags = np.array([True, False, True])
        return np.arange(3, dtype=np.float32), np.arange(9.0).reshape(3, 3), np.array([0, 2, 2], kind), kind(1), flags

    own, known = given(), given()
    assert compiled(items)(*own) == items(*known)
    for mine, theirs in zip(own, known, strict=True):
        assert np.array_equal(mine, theirs)


def ranges(start, stop, step):
    found = [start]
    for i in range(stop):
        found.append(found[0] + i)
    for i in range(start, stop):
        if i == 4:
            continue
        found.append(10 * i)
        for j in range(i, stop):
            if j == 5:
                break
            found.append(100 * j)
    for i in range(start, stop, step):
        found.append(found[-1] + i)
    again = range(start, stop)
    for i in again:
        found.append(found[-1] + i)
    for i in again:
        found.append(found[-1] + i)
    return found


@pytest.mark.parametrize("compiled", BOTH, ids=["ours", "numba"])
@pytest.mark.parametrize("numbers", [(0, 0, 1), (2, 7, 2), (7, 2, -2), (-3, 3, 1), (3, -3, -1), (5, 5, 3)])
def test_ranges(compiled, numbers):
    assert compiled(ranges)(*numbers) == ranges(*numbers)
    if min(numbers) >= 0 and numbers[0] <= numbers[1]:
        assert compiled(ranges)(*map(np.uint64, numbers)) == ranges(*numbers)


def numbers(a, b, n):
    x = a
    for i in range(n):
        if i % 2:
            y = x * b - i
        else:
            y = x / (i + 1)
        x = y + (n - i) ** 2
    return x, a < b, n >> 1, n // 2, -n % 5


@pytest.mark.parametrize("compiled", BOTH, ids=["ours", "numba"])
def test_numbers(compiled):
    assert compiled(numbers)(1.5, 2.5, 7) == numbers(1.5, 2.5, 7)


@njit()
def references(n):
    kept = empty(n, np.int64)
    for i in range(n):
        several = zeros((2, n), np.float32), part(kept, 0, i), (zeros(3, np.bool_), i)
        other = several[2][0]
        kept[i] = several[1].shape[0] + other.shape[0]
        if i % 3 == 0:
            kept = kept.copy()
    return kept, part(kept, 0, 2)


def test_arrays_are_given_back():
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    result = references(10)
    assert np.array_equal(result[0], np.arange(3, 13)) and np.array_equal(result[1], [3, 4])
    del result
    after = rtsys.get_allocation_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0


def total_of(array, table, n):
    total = 0.0
    for i in range(n):
        total += array[i] * table[i, 0]
        array[i] = total
    return total


def test_numba_asks_for_it(monkeypatch):
    """Another version of numba may call other methods, or have another name for a step: then it would be slower."""
    sizes = []

    def measured(library, module):
        sizes.append(sum(len(block.instructions) for function in module.functions for block in function.blocks))
        return add(library, module)

    add = numba.core.codegen.CPUCodeLibrary.add_ir_module
    monkeypatch.setattr(numba.core.codegen.CPUCodeLibrary, "add_ir_module", measured)
    for compiled in BOTH:
        compiled(total_of)(np.ones(3), np.ones((3, 3)), 3)
    ours, theirs = sizes[0], sizes[2]
    assert ours < 0.5 * theirs
