"""Sixteen labels at once: their weights lie side by side (``W[feature * 16 + lane]``), one cache line a feature.

A row's non-zero is then loaded once and two vector instructions serve sixteen labels. The vector code is
written as LLVM instructions because numba's own vectoriser picks the wrong loop (five times slower).
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tailwise.kernels.compilation import njit

LANES = 16
HALF_LANES = 2 * LANES
"""Labels whose weights share a cache line at half precision."""
_CACHE_LINE = 64
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)
_INTS = ir.VectorType(_INT32, LANES)
_CONTRACT = ("contract",)
_ROUNDING = 1.5 * 2**23
_LN2_HIGH = 0.693359375


@njit(nogil=True, cache=True, boundscheck=False)
def zero_lanes(n_features):
    """Weights of sixteen labels, all zero, each feature on one cache line (a third slower where it straddles two).

    Returns (n_features * 16,) float32 of its own.
    """
    padded = np.zeros(n_features * LANES + LANES, np.float32)
    skip = (-padded.ctypes.data % _CACHE_LINE) // 4
    return padded[skip : skip + n_features * LANES]


@intrinsic
def dot_lanes(typing_context, weights, indices, data, start, stop, sums):
    """``sums[lane] += Σ_a data[a] * weights[indices[a] * 16 + lane]`` over ``start <= a < stop``, for all lanes.

    ``indices`` are int32, the rest float32, all contiguous; ``sums`` holds sixteen. Writes ``sums`` only.
    """
    signature = types.void(weights, indices, data, types.int64, types.int64, sums)

    def generate(context, builder, signature, arguments):
        weights, indices, data = (_pointer(context, builder, signature, arguments, n) for n in range(3))
        sums = _vectors(context, builder, signature, arguments, 5)

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


@njit(nogil=True, cache=True, boundscheck=False)
def put_side_by_side_in_halves(weights, side_by_side):
    """The weights of 32 labels (32, n_features) float32, feature by feature at the precision of eight bits.

    ``side_by_side`` (n_features * 16,) float32 is written: each entry has the upper half of the number that a label has
    there, rounded, and as its own upper half that of the label 16 lanes further on.
    """
    bits, both = weights.view(np.uint32), side_by_side.view(np.uint32)
    for feature in range(weights.shape[1]):
        for lane in range(LANES):
            low, high = bits[np.uint64(lane), np.uint64(feature)], bits[np.uint64(lane + LANES), np.uint64(feature)]
            low += np.uint32(0x7FFF) + ((low >> np.uint32(16)) & np.uint32(1))
            high += np.uint32(0x7FFF) + ((high >> np.uint32(16)) & np.uint32(1))
            both[np.uint64(feature * LANES + lane)] = (high & np.uint32(0xFFFF0000)) | (low >> np.uint32(16))


@intrinsic
def dot_half_lanes(typing_context, weights, indices, data, start, stop, sums):
    """As :func:`dot_lanes` for 32 labels, whose ``weights`` :func:`put_side_by_side_in_halves` wrote.

    ``sums`` holds 32; writes these only.
    """
    signature = types.void(weights, indices, data, types.int64, types.int64, sums)

    def generate(context, builder, signature, arguments):
        weights, indices, data = (_pointer(context, builder, signature, arguments, n) for n in range(3))
        places = [builder.gep(_vectors(context, builder, signature, arguments, 5), [_INT64(n)]) for n in range(2)]
        shift, upper = (ir.Constant(_INTS, [value] * LANES) for value in (16, -0x10000))

        def add(totals, at):
            both = builder.bitcast(_load(builder, _lanes_of(builder, weights, indices, at)), _INTS)
            value = _spread(builder, builder.load(builder.gep(data, [at])))
            halves = builder.shl(both, shift), builder.and_(both, upper)
            return tuple(
                _multiply_add(builder, builder.bitcast(half, _FLOATS), value, total)
                for half, total in zip(halves, totals, strict=True)
            )

        # Four sums in turn: an addition waits for the one before it.
        first = (*(_load(builder, place) for place in places), *[ir.Constant(_FLOATS, None)] * 2)
        sums = _loop(builder, arguments[3:5], 4, first, lambda t, at: (*t[2:], *add(t[:2], at)))
        for place, a, b in zip(places, sums[:2], sums[2:], strict=True):
            _store(builder, builder.fadd(a, b, flags=_CONTRACT), place)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_lanes(typing_context, weights, indices, data, start, stop, steps):
    """``weights[indices[a] * 16 + lane] += data[a] * steps[lane]`` over ``start <= a < stop``, for all lanes.

    Types as in :func:`dot_lanes`; ``steps`` holds sixteen. Writes ``weights`` only.
    """
    signature = types.void(weights, indices, data, types.int64, types.int64, steps)

    def generate(context, builder, signature, arguments):
        weights, indices, data = (_pointer(context, builder, signature, arguments, n) for n in range(3))
        steps = _load(builder, _vectors(context, builder, signature, arguments, 5))

        def add(carried, at):
            place = _lanes_of(builder, weights, indices, at)
            value = builder.load(builder.gep(data, [at]))
            product = builder.fmul(steps, _spread(builder, value), flags=_CONTRACT)
            _store(builder, builder.fadd(_load(builder, place), product, flags=_CONTRACT), place)
            return carried

        _loop(builder, arguments[3:5], 4, (), add)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def sigmoid_lanes(typing_context, logits, shares):
    """``shares[lane] = σ(logits[lane])``, σ(t) = 1 / (1 + exp(-t)), for all lanes; both hold sixteen float32.

    Writes ``shares`` only, within one part in 10⁶.
    """
    signature = types.void(logits, shares)

    def generate(context, builder, signature, arguments):
        logits, shares = (_vectors(context, builder, signature, arguments, n) for n in range(2))
        _store(builder, _sigmoid(builder, _load(builder, logits)), shares)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def newton_lanes(typing_context, problems, brackets, logits, pending, shortest):
    """One step towards the t where ``strength (σ(t) - old) + margin + t = 0``, for lanes with ``pending`` 1, not 0.

    ``problems`` holds strength, margin and old, (3, 16); ``brackets`` what is below and above the root, (2, 16);
    ``logits`` is t. A step of more than half the bracket becomes one to its middle, for Newton's method alone can run
    in circles here. A lane whose step was below ``shortest`` is no longer pending, so that its result does not depend
    on the other lanes. Returns whether a lane is pending. All contiguous float32; ``problems`` is only read, the others
    are written.
    """
    signature = types.boolean(problems, brackets, logits, pending, types.float32)

    def generate(context, builder, signature, arguments):
        problems, brackets, logits, pending = (_vectors(context, builder, signature, arguments, n) for n in range(4))
        places = [builder.gep(brackets, [_INT64(n)]) for n in range(2)]
        strength, margin, old = (_load(builder, builder.gep(problems, [_INT64(n)])) for n in range(3))
        low, high, t = _load(builder, places[0]), _load(builder, places[1]), _load(builder, logits)
        zero, one = _constant(0), _constant(1)
        share = _sigmoid(builder, t)
        error = builder.fadd(_multiply_add(builder, strength, builder.fsub(share, old), margin), t)
        above = builder.fcmp_ordered(">", error, zero)
        low, high = builder.select(above, low, t), builder.select(above, t, high)
        spread = builder.fmul(share, builder.fsub(one, share))
        step = builder.fdiv(error, _multiply_add(builder, strength, spread, one))
        half = builder.fmul(builder.fsub(high, low), _constant(0.5))
        length = builder.select(builder.fcmp_ordered("<", step, zero), builder.fneg(step), step)
        near = builder.fcmp_ordered("<=", length, half)
        moved = builder.select(near, builder.fsub(t, step), builder.fadd(low, half))
        was_pending = _load(builder, pending)
        _store(builder, builder.select(builder.fcmp_ordered(">", was_pending, zero), moved, t), logits)
        for value, place in zip((low, high), places, strict=True):
            _store(builder, value, place)
        long = builder.fcmp_ordered(">=", length, _spread(builder, arguments[4]))
        is_pending = builder.select(long, was_pending, zero)
        _store(builder, is_pending, pending)
        bits = builder.bitcast(builder.fcmp_ordered(">", is_pending, zero), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return signature, generate


@intrinsic
def hinge_lanes(typing_context, halves, curvature, scores, alphas, at_work, extremes, steps, least):
    """One coordinate of sixteen dual problems of the squared hinge: α goes to where its gradient is 0, or to 0.

    ``halves`` are ``z / 2C``, ``curvature`` is ``|x|² + scale²`` and ``scores`` are ``w·x + b``. Lanes whose
    ``at_work`` is 0, not 1, stay as they are, and so does one whose projected gradient is off by no more than
    ``least``. ``extremes`` (2, 16) become the highest and the lowest projected gradients of lanes at work so far,
    ``steps`` what this adds to α z. Returns whether a lane moved. All contiguous float32; ``alphas``, ``extremes`` and
    ``steps`` are written.
    """
    number = types.float32
    signature = types.boolean(halves, number, scores, alphas, at_work, extremes, steps, number)

    def generate(context, builder, signature, arguments):
        def vectors(position):
            return _vectors(context, builder, signature, arguments, position)

        def less(a, b):
            return builder.fcmp_ordered("<", a, b)

        half, score, alpha, work = (_load(builder, vectors(n)) for n in (0, 2, 3, 4))
        places = [builder.gep(vectors(5), [_INT64(n)]) for n in range(2)]
        zero = _constant(0)
        sign = builder.select(less(half, zero), _constant(-1), _constant(1))
        half = builder.fmul(half, sign)
        gradient = _multiply_add(builder, half, alpha, _multiply_add(builder, sign, score, _constant(-1)))
        falls = builder.select(less(gradient, zero), gradient, zero)
        projected = builder.select(less(zero, alpha), gradient, falls)
        working = less(zero, work)
        for place, beyond in zip(
            places, (lambda old: less(old, projected), lambda old: less(projected, old)), strict=True
        ):
            old = _load(builder, place)
            _store(builder, builder.select(builder.and_(working, beyond(old)), projected, old), place)
        length = builder.select(less(projected, zero), builder.fneg(projected), projected)
        moves = builder.and_(working, less(_spread(builder, arguments[7]), length))
        curvature = builder.fadd(_spread(builder, arguments[1]), half)
        moved = builder.fsub(alpha, builder.fdiv(gradient, curvature))
        moved = builder.select(moves, builder.select(less(moved, zero), zero, moved), alpha)
        _store(builder, builder.fmul(builder.fsub(moved, alpha), sign), vectors(6))
        _store(builder, moved, vectors(3))
        bits = builder.bitcast(moves, ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return signature, generate


def _sigmoid(builder, logits):
    """1 / (1 + exp(-t)) within one part in 10⁶.

    exp(x) is 2ⁿ exp(r) with n the whole number nearest to x log₂e, so that |r| <= ½ ln 2 and six terms are enough.
    """
    x = builder.fneg(logits)
    x = builder.select(builder.fcmp_ordered("<", x, _constant(-80)), _constant(-80), x)
    x = builder.select(builder.fcmp_ordered(">", x, _constant(80)), _constant(80), x)
    # A number near 1.5 · 2²³ has no digits after the point: adding it rounds, and its low bits are n.
    shifted = builder.fadd(builder.fmul(x, _constant(np.log2(np.e))), _constant(_ROUNDING))
    n = builder.fsub(shifted, _constant(_ROUNDING))
    r = _multiply_add(builder, n, _constant(-_LN2_HIGH), x)
    r = _multiply_add(builder, n, _constant(_LN2_HIGH - np.log(2)), r)
    series = _constant(1 / 720)
    for term in (120, 24, 6, 2, 1, 1):
        series = _multiply_add(builder, series, r, _constant(1 / term))
    exponent = builder.add(builder.bitcast(shifted, _INTS), ir.Constant(_INTS, [127] * LANES))
    power = builder.bitcast(builder.shl(exponent, ir.Constant(_INTS, [23] * LANES)), _FLOATS)
    return builder.fdiv(_constant(1), _multiply_add(builder, series, power, _constant(1)))


def _multiply_add(builder, a, b, c):
    return builder.fadd(builder.fmul(a, b, flags=_CONTRACT), c, flags=_CONTRACT)


def _constant(value):
    return ir.Constant(_FLOATS, [float(np.float32(value))] * LANES)


def _vectors(context, builder, signature, arguments, position):
    return builder.bitcast(_pointer(context, builder, signature, arguments, position), _FLOATS.as_pointer())


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
