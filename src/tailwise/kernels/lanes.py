"""Sixteen labels at once: their weights lie side by side (``W[feature * 16 + lane]``), one cache line a feature.

A row's non-zero is then loaded once and two vector instructions serve sixteen labels. The vector code is
written as LLVM instructions because numba's own vectoriser picks the wrong loop (five times slower).
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

LANES = 16
_CACHE_LINE = 64
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)
_CONTRACT = ("contract",)


@njit(nogil=True, cache=True, boundscheck=False)
def zero_lanes(n_features):
    """Weights of sixteen labels, all zero, each feature on one cache line (a third slower where it straddles two)."""
    padded = np.zeros(n_features * LANES + LANES, np.float32)
    skip = (-padded.ctypes.data % _CACHE_LINE) // 4
    return padded[skip : skip + n_features * LANES]


@intrinsic
def dot_lanes(typing_context, weights, indices, data, start, stop, sums):
    """``sums[lane] += Σ_a data[a] * weights[indices[a] * 16 + lane]`` over ``start <= a < stop``, for all lanes.

    ``indices`` are int32, the rest float32; ``sums`` holds sixteen.
    """
    signature = types.void(weights, indices, data, types.int64, types.int64, sums)

    def generate(context, builder, signature, arguments):
        weights, indices, data = (_pointer(context, builder, signature, arguments, n) for n in range(3))
        sums = builder.bitcast(_pointer(context, builder, signature, arguments, 5), _FLOATS.as_pointer())

        def add(total, at):
            lanes = _load(builder, _lanes_of(builder, weights, indices, at))
            value = builder.load(builder.gep(data, [at]))
            product = builder.fmul(lanes, _spread(builder, value), flags=_CONTRACT)
            return builder.fadd(total, product, flags=_CONTRACT)

        first = (_load(builder, sums), ir.Constant(_FLOATS, None))
        even, odd = _loop(builder, arguments[3:5], 4, first, lambda t, at: (add(t[1], at), t[0]))
        _store(builder, builder.fadd(even, odd, flags=_CONTRACT), sums)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_lanes(typing_context, weights, indices, data, start, stop, steps):
    """``weights[indices[a] * 16 + lane] += data[a] * steps[lane]`` over ``start <= a < stop``, for all lanes."""
    signature = types.void(weights, indices, data, types.int64, types.int64, steps)

    def generate(context, builder, signature, arguments):
        weights, indices, data = (_pointer(context, builder, signature, arguments, n) for n in range(3))
        steps = _load(
            builder, builder.bitcast(_pointer(context, builder, signature, arguments, 5), _FLOATS.as_pointer())
        )

        def add(carried, at):
            place = _lanes_of(builder, weights, indices, at)
            value = builder.load(builder.gep(data, [at]))
            product = builder.fmul(steps, _spread(builder, value), flags=_CONTRACT)
            _store(builder, builder.fadd(_load(builder, place), product, flags=_CONTRACT), place)
            return carried

        _loop(builder, arguments[3:5], 4, (), add)
        return context.get_dummy_value()

    return signature, generate


def _pointer(context, builder, signature, arguments, position):
    return context.make_array(signature.args[position])(context, builder, arguments[position]).data


def _lanes_of(builder, weights, indices, at):
    feature = builder.zext(builder.load(builder.gep(indices, [at])), _INT64)
    place = builder.gep(weights, [builder.mul(feature, ir.Constant(_INT64, LANES))])
    return builder.bitcast(place, _FLOATS.as_pointer())


def _load(builder, place):
    loaded = builder.load(place)
    loaded.align = 4
    return loaded


def _store(builder, value, place):
    builder.store(value, place).align = 4


def _spread(builder, value):
    nothing = ir.Constant(_FLOATS, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(ir.VectorType(_INT32, LANES), None))


def _loop(builder, bounds, unroll, carried, step):
    """``for at in range(*bounds): carried = step(carried, at)``, unrolled; returns what is carried at the end."""
    at = bounds[0]
    for times in (unroll, 1):
        before = builder.block
        head, body, after = (builder.append_basic_block(name) for name in ("head", "body", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        position = builder.phi(_INT64)
        values = tuple(builder.phi(_FLOATS) for _ in carried)
        position.add_incoming(at, before)
        for value, start in zip(values, carried, strict=True):
            value.add_incoming(start, before)
        last = builder.add(position, ir.Constant(_INT64, times - 1))
        builder.cbranch(builder.icmp_signed("<", last, bounds[1]), body, after)
        builder.position_at_end(body)
        new = values
        for offset in range(times):
            new = step(new, builder.add(position, ir.Constant(_INT64, offset)))
        position.add_incoming(builder.add(position, ir.Constant(_INT64, times)), builder.block)
        for value, update in zip(values, new, strict=True):
            value.add_incoming(update, builder.block)
        builder.branch(head)
        builder.position_at_end(after)
        at, carried = position, values
    return carried
