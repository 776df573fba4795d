"""Random numbers for kernels: the same on every machine and thread."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The step of SplitMix64's counter."""

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_FIRST_SHUFFLE = 88172645463325252


@njit(nogil=True, cache=True, boundscheck=False, inline="always")
def mix_bits(z):
    """SplitMix64's output function: 64 well-mixed bits of a counter (uint64). Writes nothing."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@njit(nogil=True, cache=True, boundscheck=False)
def random_bits(state):
    """64 random bits; advances ``state``, a (1,) uint64 array (SplitMix64)."""
    state[0] += GOLDEN
    return mix_bits(state[0])


@njit(nogil=True, cache=True, boundscheck=False)
def shuffle_state(seed):
    """The state with which the first :func:`shuffle` of a ``seed`` (int64, not negative) starts, uint64, never 0."""
    return np.uint64(seed * 2 + _FIRST_SHUFFLE)


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def shuffle(order, size, state):
    """Shuffle ``order[:size]`` in place (Fisher and Yates, xorshift64); returns the next ``state``, uint64.

    Not SplitMix64: models that were trained with one order of coordinates should come out the same ever after.
    """
    for place in range(size - 1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        other = place + np.int64((state >> np.uint64(33)) % np.uint64(size - place))
        order[place], order[other] = order[other], order[place]
    return state
