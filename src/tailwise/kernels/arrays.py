"""Arrays that cannot be written to, arrays that grow, and entries that come from memory before they are needed."""

from __future__ import annotations

import mmap
import os
import sys
from typing import Any, NamedTuple, TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed, impl_ret_new_ref
from numba.extending import intrinsic

from tailwise.kernels.compilation import njit
from tailwise.kernels.lowering import made_of, member

_PAGE = mmap.PAGESIZE
_PAGES_A_CALL = 32
"""Systems may read no more than this for one call."""
_NORMAL, _RANDOM, _WILL_NEED = 0, 1, 3
_LINES, _A_LINE = 4, 16
_HAS_ADVICE = os.name == "posix"
_LARGE_PAGES, _LARGE = 14, 1 << 22
"""Linux gives pages of two megabytes to those who ask: arrays of many megabytes that are read here and there would
spend half of the time on looking up where their pages are."""
_madvise = types.ExternalFunction("madvise", types.intc(types.uintp, types.uintp, types.intc))

Parts = TypeVar("Parts", bound=NamedTuple)


def read_only(array: np.ndarray) -> np.ndarray:
    """A plain view that cannot be written to: kernels compile once for arrays of memory and of mapped files."""
    view = array.view(np.ndarray)
    view.setflags(write=False)
    return view


def frozen(parts: Parts) -> Parts:
    """A NamedTuple with all its arrays read-only.

    >>> class Pair(NamedTuple):
    ...     values: np.ndarray
    ...     number: int
    >>> frozen(Pair(np.zeros(2), 3)).values.flags.writeable
    False
    """
    kept: Any = (read_only(part) if isinstance(part, np.ndarray) else part for part in parts)
    return type(parts)(*kept)


@intrinsic
def empty(typing_context, shape, dtype):
    """``np.empty(shape, dtype)`` for sizes that are not negative; where it compiles, numba would make a function."""
    return _allocation(shape, dtype, zero=False)


@intrinsic
def zeros(typing_context, shape, dtype):
    """``np.zeros(shape, dtype)``, likewise."""
    return _allocation(shape, dtype, zero=True)


def _allocation(shape, dtype, zero):
    # Here, for only compiling needs it: it takes a tenth of a second to import.
    from numba.core.typing.npydecl import parse_dtype
    from numba.np.numpy_support import as_dtype

    n_sizes = shape.count if isinstance(shape, types.BaseTuple) else 1
    array = types.Array(parse_dtype(dtype), n_sizes, "C")

    def generate(context, builder, signature, arguments):
        sizes = cgutils.unpack_tuple(builder, arguments[0]) if n_sizes > 1 else [arguments[0]]
        n_items = sizes[0]
        strides = [context.get_constant(types.intp, as_dtype(array.dtype).itemsize)]
        for size in sizes[:0:-1]:
            strides.insert(0, builder.mul(strides[0], size))
            n_items = builder.mul(n_items, size)
        n_bytes = builder.mul(n_items, strides[-1])
        align = context.get_constant(types.uint32, context.get_preferred_array_alignment(array.dtype))
        meminfo = context.nrt.meminfo_alloc_aligned(builder, n_bytes, align)
        data = context.nrt.meminfo_data(builder, meminfo)
        _ask_for_large_pages(builder, data, n_bytes)
        if zero:
            cgutils.memset(builder, data, n_bytes, 0)
        own = made_of(
            context,
            builder,
            array,
            meminfo=meminfo,
            parent=cgutils.get_null_value(context.get_value_type(types.pyobject)),
            nitems=n_items,
            itemsize=strides[-1],
            data=builder.bitcast(data, context.get_value_type(types.CPointer(array.dtype))),
            shape=cgutils.pack_array(builder, sizes),
            strides=cgutils.pack_array(builder, strides),
        )
        return impl_ret_new_ref(context, builder, array, own)

    return array(types.UniTuple(types.intp, n_sizes) if n_sizes > 1 else types.intp, dtype), generate


def _ask_for_large_pages(builder, data, n_bytes):
    """For an array that was just made, if it is large."""
    if sys.platform != "linux":
        return
    size, code = n_bytes.type, ir.IntType(32)
    with builder.if_then(builder.icmp_unsigned(">=", n_bytes, size(_LARGE)), likely=False):
        start, page = builder.ptrtoint(data, size), size(_PAGE)
        first = builder.and_(builder.add(start, size(_PAGE - 1)), size(-_PAGE))
        whole = builder.and_(builder.sub(builder.add(start, n_bytes), first), builder.neg(page))
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(code, [size, size, code]), "madvise")
        builder.call(function, [first, whole, code(_LARGE_PAGES)])


@njit(nogil=True, cache=True, boundscheck=False)
def grown(array, used, size):
    """``array`` if it has room for ``size`` entries; else a copy of its first ``used``, at least twice as long.

    ``array`` is one-dimensional, contiguous and writable, and is not written to; entries after ``used`` are arbitrary.
    """
    if size <= array.shape[0]:
        return array
    larger = empty(max(size, 2 * array.shape[0]), array.dtype)
    for a in range(used):
        larger[a] = array[a]
    return larger


@intrinsic
def part(typing_context, array, start, stop):
    """``array[start:stop]`` of one that is 1-D and contiguous, for ``0 <= start <= stop <= its length``.

    It compiles in a third of the time of a slice, which looks at negative numbers and at those beyond the end.
    """

    def generate(context, builder, signature, arguments):
        whole, start, stop = arguments
        size = builder.sub(stop, start)
        data = builder.gep(member(context, builder, array, whole, "data"), [start])
        changed = {"data": data, "nitems": size, "shape": cgutils.pack_array(builder, [size])}
        own = made_of(context, builder, array, whole, **changed)
        return impl_ret_borrowed(context, builder, array, own)

    return array(array, types.int64, types.int64), generate


@intrinsic
def prefetch(typing_context, array, place):
    """Ask for ``array[place]`` (1-D, contiguous) from memory and go on; it may lie outside of the array."""

    def generate(context, builder, signature, arguments):
        data = member(context, builder, array, arguments[0], "data")
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        builder.call(function, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.none(array, types.uint64), generate


@njit(nogil=True, cache=True, boundscheck=False, borrows=True)
def prefetch_row(indices, data, start, stop):
    """Have the first lines of a row come from memory; what follows comes by itself."""
    for a in range(start, min(start + _LINES * _A_LINE, stop), _A_LINE):
        prefetch(indices, np.uint64(a))
        prefetch(data, np.uint64(a))


@njit(nogil=True, cache=True, boundscheck=False)
def ask_for_pages(array, start, stop):
    """Ask for ``array[start:stop]`` (1-D, contiguous), which lies in a mapped file, from disk and go on."""
    if _HAS_ADVICE and start < stop:
        first, last = _bytes_of(array, start, stop)
        while first < last:
            _madvise(first, min(last - first, _PAGES_A_CALL * _PAGE), _WILL_NEED)
            first += _PAGES_A_CALL * _PAGE


@njit(nogil=True, cache=True, boundscheck=False)
def read_around(array, usual):
    """Whether a page of ``array`` (1-D, contiguous, of a mapped file) that is touched brings those around it, as usual.

    Systems read up to megabytes around, which is much where pages are asked for in time but for a few.
    """
    if _HAS_ADVICE and array.shape[0] > 0:
        first, last = _bytes_of(array, 0, array.shape[0])
        _madvise(first, last - first, _NORMAL if usual else _RANDOM)


@njit(nogil=True, cache=True, boundscheck=False)
def _bytes_of(array, start, stop):
    """From the start of a page."""
    begin = array.ctypes.data
    return (begin + start * array.itemsize) // _PAGE * _PAGE, begin + stop * array.itemsize
