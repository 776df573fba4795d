"""Counting the bits of a word."""

from __future__ import annotations

from numba import types
from numba.extending import intrinsic


@intrinsic
def count_bits(typing_context, word):
    """How many bits of a uint64 are set, as uint64."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate
