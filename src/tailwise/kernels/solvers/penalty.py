"""The L1 penalty: when a weight is where it should be."""

from __future__ import annotations

import numpy as np

from tailwise.kernels.compilation import njit

_ONE = np.float32(1.0)


@njit(nogil=True, cache=True, boundscheck=False)
def violation(weight, gradient):
    """How far 0 is from the subdifferential of ``gradient · w + |w|`` at ``weight``; both float32. Writes nothing."""
    if weight > 0:
        return abs(gradient + _ONE)
    if weight < 0:
        return abs(gradient - _ONE)
    return max(abs(gradient) - _ONE, np.float32(0.0))
