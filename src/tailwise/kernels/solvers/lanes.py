"""Sixteen labels at once: their weights lie side by side (``W[feature * 16 + lane]``), one cache line a feature.

A row's non-zero is then loaded once and two vector instructions serve sixteen labels. The vector code is
written as LLVM instructions because numba's own vectoriser picks the wrong loop (five times slower).
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tailwise.kernels.arrays import part, zeros
from tailwise.kernels.compilation import njit
from tailwise.kernels.lowering import member

LANES = 16
HALF_LANES = 2 * LANES
"""Labels whose weights share a cache line at half precision."""
_CACHE_LINE = 64
_FLOATS = ir.VectorType(ir.FloatType(), LANES)
_INT32 = ir.IntType(32)
_INT64 = ir.IntType(64)
_INTS = ir.VectorType(_INT32, LANES)
_SHORTS = ir.VectorType(ir.IntType(16), LANES)
_CONTRACT = ("contract",)
_ROUNDING = 1.5 * 2**23
_LN2_HIGH = 0.693359375
_NEWTON_STEPS = 3


@njit(nogil=True, cache=True, boundscheck=False)
def zero_lanes(n_features):
    """Weights of sixteen labels, all zero, each feature on one cache line (a third slower where it straddles two).

    Returns (n_features * 16,) float32 of its own.
    """
    padded = zeros(n_features * LANES + LANES, np.float32)
    skip = (-padded.ctypes.data % _CACHE_LINE) // 4
    return part(padded, skip, skip + n_features * LANES)


@intrinsic
def dot_lanes(typing_context, weights, indices, data, start, stop, sums):
    """``sums[lane] += Σ_a data[a] * weights[indices[a] * 16 + lane]`` over ``start <= a < stop``, for all lanes.

    ``indices`` are int32, the rest float32, all contiguous; ``sums`` holds sixteen. Writes ``sums`` only.
    """
    signature = types.void(weights, indices, data, types.int64, types.int64, sums)

    def generate(context, builder, signature, arguments):
        weights, indices, data = (_pointer(context, builder, signature, arguments, n) for n in range(3))
        sums = _vectors(context, builder, signature, arguments, 5)

        _store(builder, _dot(builder, (weights, indices, data), arguments[3:5], _load(builder, sums)), sums)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def dot_lanes_in_order(typing_context, weights, indices, data, start, stop, sums):
    """As :func:`dot_lanes` for 32 labels, ``weights[indices[a] * 32 + lane]``, with the bits of a plain loop.

    Products are rounded before they are added, one after the other. ``sums`` holds 32; writes these only.
    """
    signature = types.void(weights, indices, data, types.int64, types.int64, sums)

    def generate(context, builder, signature, arguments):
        weights, indices, data = (_pointer(context, builder, signature, arguments, n) for n in range(3))
        places = [builder.gep(_vectors(context, builder, signature, arguments, 5), [_INT64(n)]) for n in range(2)]

        def add(totals, at):
            first = _lanes_of(builder, weights, indices, at, 2 * LANES)
            value = _spread(builder, builder.load(builder.gep(data, [at])))
            lanes = (_load(builder, builder.gep(first, [_INT64(n)])) for n in range(2))
            return tuple(builder.fadd(t, builder.fmul(w, value)) for t, w in zip(totals, lanes, strict=True))

        sums = _loop(builder, arguments[3:5], 4, tuple(_load(builder, place) for place in places), add)
        for total, place in zip(sums, places, strict=True):
            _store(builder, total, place)
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
        _add(builder, (weights, indices, data), arguments[3:5], steps)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def large_lanes(typing_context, values, place, least):
    """Which of sixteen ``values`` from ``place`` on have at least the magnitude ``least``: bit by bit, as uint64.

    ``values`` are contiguous float32, only read.
    """
    signature = types.uint64(values, types.int64, types.float32)

    def generate(context, builder, signature, arguments):
        first = builder.gep(_pointer(context, builder, signature, arguments, 0), [arguments[1]])
        value = _load(builder, builder.bitcast(first, _FLOATS.as_pointer()))
        size = builder.select(builder.fcmp_ordered("<", value, _constant(0)), builder.fneg(value), value)
        large = builder.fcmp_ordered(">=", size, _spread(builder, arguments[2]))
        return builder.zext(builder.bitcast(large, ir.IntType(LANES)), _INT64)

    return signature, generate


@intrinsic
def sum_lanes(typing_context, weights, found, values, n, offsets, sums):
    """``sums[c + lane] += Σ_j values[v] * weights[p + c + lane]`` over ``j < n``; ``found[j]`` is ``p + 2³² v``.

    For all lanes and each c of the tuple ``offsets``. ``weights`` are int16, ``found`` uint64, the rest float32, all
    contiguous. Writes ``sums`` only.
    """
    signature = types.void(weights, found, values, types.int64, offsets, sums)

    def generate(context, builder, signature, arguments):
        weights, found, values, sums = (_pointer(context, builder, signature, arguments, at) for at in (0, 1, 2, 5))
        n = arguments[3]
        places = [builder.extract_value(arguments[4], at) for at in range(signature.args[4].count)]
        kind = ir.VectorType(weights.type.pointee, LANES).as_pointer()
        size = weights.type.pointee.width // 8

        def add(totals, at):
            pair = builder.load(builder.gep(found, [at]))
            value = builder.load(builder.gep(values, [builder.lshr(pair, ir.Constant(_INT64, 32))]))
            start = builder.gep(weights, [builder.and_(pair, ir.Constant(_INT64, 0xFFFFFFFF))])
            factor = _spread(builder, value)
            loaded = (lanes(builder.gep(start, [at])) for at in places)
            return tuple(_multiply_add(builder, x, factor, total) for total, x in zip(totals, loaded, strict=True))

        def lanes(place):
            return builder.sitofp(_load(builder, builder.bitcast(place, kind), size), _FLOATS)

        sums = [builder.bitcast(builder.gep(sums, [place]), _FLOATS.as_pointer()) for place in places]
        totals = _loop(builder, (ir.Constant(_INT64, 0), n), 2, tuple(_load(builder, place) for place in sums), add)
        for total, place in zip(totals, sums, strict=True):
            _store(builder, total, place)
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
def logistic_lanes(typing_context, costs, curvature, scores, logits, at_work, sums, steps, least):
    """One coordinate of sixteen dual problems of the logistic loss: α = C σ(t) goes to where its gradient is 0.

    ``costs`` are ``C z``, ``curvature`` is ``|x|² + scale²``, ``scores`` are ``w·x + b`` and ``logits`` t, which
    goes to the root of ``C curvature (σ(t) - σ(logit)) + z score + t`` by three steps of Newton's method, none of them
    across 0: from there, and from between 0 and the root, it goes on without fail. Lanes whose ``at_work`` is 0, not 1,
    stay as they are, and so does one whose logit is off by no more than ``least``. To ``sums`` (2, 16) are added by how
    much α moved, and α. ``steps`` are what this adds to α z. Returns whether a lane moved. All contiguous float32;
    ``logits``, ``sums`` and ``steps`` are written.
    """
    number = types.float32
    signature = types.boolean(costs, number, scores, logits, at_work, sums, steps, number)

    def generate(context, builder, signature, arguments):
        def vectors(position):
            return _vectors(context, builder, signature, arguments, position)

        def less(a, b):
            return builder.fcmp_ordered("<", a, b)

        def size(a):
            return builder.select(less(a, zero), builder.fneg(a), a)

        zero, one = _constant(0), _constant(1)
        cost, score, logit, work = (_load(builder, vectors(n)) for n in (0, 2, 3, 4))
        sign = builder.select(less(cost, zero), _constant(-1), one)
        strength = builder.fmul(_spread(builder, arguments[1]), size(cost))
        margin = builder.fmul(sign, score)
        old = share = _sigmoid(builder, logit)
        error = builder.fadd(margin, logit)
        length, t = size(error), logit
        for number in range(_NEWTON_STEPS):
            if number:
                share = _sigmoid(builder, t)
                error = builder.fadd(_multiply_add(builder, strength, builder.fsub(share, old), margin), t)
            spread = builder.fmul(share, builder.fsub(one, share))
            moved = builder.fsub(t, builder.fdiv(error, _multiply_add(builder, strength, spread, one)))
            t = builder.select(less(builder.fmul(t, moved), zero), zero, moved)
        working = less(zero, work)
        moves = builder.and_(working, less(_spread(builder, arguments[7]), length))
        t = builder.select(moves, t, logit)
        share = _sigmoid(builder, t)
        step = builder.fmul(builder.fsub(share, old), cost)
        for number, more in enumerate((size(step), builder.fmul(share, size(cost)))):
            place = builder.gep(vectors(5), [_INT64(number)])
            _store(builder, builder.fadd(_load(builder, place), more), place)
        _store(builder, step, vectors(6))
        _store(builder, t, vectors(3))
        bits = builder.bitcast(moves, ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))

    return signature, generate


@intrinsic
def hinge_lanes(
    typing_context,
    weights,
    indices,
    data,
    start,
    stop,
    biases,
    halves,
    alphas,
    place,
    curvature,
    scale_squared,
    at_work,
    extremes,
    least,
):
    """One row of sixteen dual problems of the squared hinge: α goes to where its gradient is 0, or to 0, and w with it.

    The row and the weights are as in :func:`dot_lanes`. ``halves[place + lane]`` are ``z / 2C`` and ``alphas`` lie as
    they do, ``curvature`` is ``|x|² + scale²``. Lanes stay as they are whose ``at_work`` is 0, not 1, or whose half is
    0, and one whose projected gradient is off by no more than ``least``. ``extremes`` (2, 16) become the highest and
    the lowest projected gradients so far of lanes at work whose half is not 0. All contiguous float32 but for the
    ``indices``; ``weights``, ``biases``, ``alphas`` and ``extremes`` are written. It is one function because a vector
    that was just written lane by lane is waited for.
    """
    number = types.float32
    row = (weights, indices, data, types.int64, types.int64)
    signature = types.void(*row, biases, halves, alphas, types.int64, number, number, at_work, extremes, number)

    def generate(context, builder, signature, arguments):
        row = tuple(_pointer(context, builder, signature, arguments, n) for n in range(3))
        bias_place, halves, alphas, at_work, extremes = (
            _vectors(context, builder, signature, arguments, n) for n in (5, 6, 7, 11, 12)
        )

        def less(a, b):
            return builder.fcmp_ordered("<", a, b)

        def at_row(lanes):
            floats = builder.bitcast(lanes, ir.FloatType().as_pointer())
            return builder.bitcast(builder.gep(floats, [arguments[8]]), _FLOATS.as_pointer())

        bias = _load(builder, bias_place)
        score = _dot(builder, row, arguments[3:5], bias)
        half, alpha = _load(builder, at_row(halves)), _load(builder, at_row(alphas))
        zero = _constant(0)
        sign = builder.select(less(half, zero), _constant(-1), _constant(1))
        half = builder.fmul(half, sign)
        gradient = _multiply_add(builder, half, alpha, _multiply_add(builder, sign, score, _constant(-1)))
        falls = builder.select(less(gradient, zero), gradient, zero)
        projected = builder.select(less(zero, alpha), gradient, falls)
        working = builder.and_(less(zero, _load(builder, at_work)), less(zero, half))
        for n, beyond in enumerate((lambda old: less(old, projected), lambda old: less(projected, old))):
            extreme = builder.gep(extremes, [_INT64(n)])
            old = _load(builder, extreme)
            _store(builder, builder.select(builder.and_(working, beyond(old)), projected, old), extreme)
        length = builder.select(less(projected, zero), builder.fneg(projected), projected)
        moves = builder.and_(working, less(_spread(builder, arguments[13]), length))
        bits = builder.bitcast(moves, ir.IntType(LANES))
        with builder.if_then(builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(LANES), 0))):
            curvature = builder.fadd(_spread(builder, arguments[9]), half)
            moved = builder.fsub(alpha, builder.fdiv(gradient, curvature))
            moved = builder.select(moves, builder.select(less(moved, zero), zero, moved), alpha)
            steps = builder.fmul(builder.fsub(moved, alpha), sign)
            _store(builder, moved, at_row(alphas))
            _store(builder, _multiply_add(builder, steps, _spread(builder, arguments[10]), bias), bias_place)
            _add(builder, row, arguments[3:5], steps)
        return context.get_dummy_value()

    return signature, generate


def _dot(builder, row, bounds, first):
    """``first + Σ_a data[a] * weights of indices[a]`` of a row ``(weights, indices, data)``."""
    weights, indices, data = row

    def add(total, at):
        value = _spread(builder, builder.load(builder.gep(data, [at])))
        return _multiply_add(builder, _load(builder, _lanes_of(builder, weights, indices, at)), value, total)

    sums = (first, ir.Constant(_FLOATS, None))
    even, odd = _loop(builder, bounds, 4, sums, lambda t, at: (add(t[1], at), t[0]))
    return builder.fadd(even, odd, flags=_CONTRACT)


def _add(builder, row, bounds, steps):
    """Add ``data[a] * steps`` to the weights of ``indices[a]``."""
    weights, indices, data = row

    def add(carried, at):
        place = _lanes_of(builder, weights, indices, at)
        value = _spread(builder, builder.load(builder.gep(data, [at])))
        _store(builder, _multiply_add(builder, steps, value, _load(builder, place)), place)
        return carried

    _loop(builder, bounds, 4, (), add)


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
    return member(context, builder, signature.args[position], arguments[position], "data")


def _lanes_of(builder, weights, indices, at, width=LANES):
    feature = builder.zext(builder.load(builder.gep(indices, [at])), _INT64)
    place = builder.gep(weights, [builder.mul(feature, ir.Constant(_INT64, width))])
    return builder.bitcast(place, _FLOATS.as_pointer())


def _load(builder, place, align=4):
    loaded = builder.load(place)
    loaded.align = align
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
