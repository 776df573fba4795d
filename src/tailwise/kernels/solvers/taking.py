"""What sixteen labels have found, taken out of their lanes."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.arrays import grown, zeros
from tailwise.kernels.bits import count_bits
from tailwise.kernels.compilation import njit
from tailwise.kernels.solvers.lanes import LANES, large_lanes

LEAST = np.float32(1e-45)
"""The smallest magnitude there is: all but zeros have it."""


@njit(nogil=True, cache=True, boundscheck=False)
def take_lanes(lanes, in_use, least, numbers, values, used, begin, count):
    """Append the entries of magnitude ``least`` > 0 and more of each of the first ``in_use`` lanes.

    For lanes that are mostly zeros: one pass counts, and one writes. ``lanes`` are (n * 16,) float32. An entry's place
    among n goes to ``numbers`` (int32), ascending within a lane, and it to ``values`` (float32), from ``used``
    on; returns both, copied where there was too little room, and their end. Where each lane begins, and how many it
    has, goes to ``begin`` and ``count`` (in_use,) int64.
    """
    one, mask = np.uint64(1), np.uint64((1 << in_use) - 1)
    at = zeros(LANES, np.int64)
    for number in range(lanes.shape[0] // LANES):
        large = large_lanes(lanes, number * LANES, least) & mask
        while large:
            at[count_bits((large - one) & ~large)] += 1
            large &= large - one
    first = used
    for lane in range(in_use):
        begin[lane], count[lane] = first, at[lane]
        at[lane] = first
        first += count[lane]
    numbers, values = grown(numbers, used, first), grown(values, used, first)
    for number in range(lanes.shape[0] // LANES):
        large = large_lanes(lanes, number * LANES, least) & mask
        while large:
            lane = count_bits((large - one) & ~large)
            place = at[lane]
            numbers[place] = number
            values[place] = lanes[np.uint64(number * LANES) + lane]
            at[lane] = place + 1
            large &= large - one
    return numbers, values, first


@njit(nogil=True, cache=True, boundscheck=False)
def take_duals(alphas, halves, in_use, positions, signed, used, begin, count):
    """The same of α > 0 (n * 16,), most of which are, with the signs of ``halves``: lane by lane, without a branch."""
    n = alphas.shape[0] // LANES
    most = used + in_use * n
    positions, signed = grown(positions, used, most), grown(signed, used, most)
    for lane in range(in_use):
        begin[lane] = used
        for row in range(n):
            at = np.uint64(row * LANES + lane)
            positions[used] = row
            signed[used] = alphas[at] if halves[at] > 0 else -alphas[at]
            used += alphas[at] > 0
        count[lane] = used - begin[lane]
    return positions, signed, used
