"""Reading and writing sparse rows as text, ``labels index:value index:value``, byte by byte.

A value is ``mantissa * 10**exponent`` with at most 19 digits of mantissa, computed in float64 and rounded to
float32: equal to the correctly rounded value wherever mantissa < 2**53 and \\|exponent\\| <= 22, which covers
every number of up to 15 digits that feature files hold, and within one float64 rounding elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.compilation import njit

_POWERS = 10.0 ** np.arange(23)
_LARGEST_INDEX = 2**31 - 1
_LARGEST_FLOAT32 = 3.4028235677973366e38  # half a unit above float32's largest: what rounds to infinity

OK, BAD_LABEL, LABEL_RANGE, AFTER_LABEL, BAD_INDEX, INDEX_RANGE, NO_COLON, BAD_VALUE, VALUE_RANGE, AFTER_VALUE = range(
    10
)
"""What stopped :func:`parse_rows`."""


class ParsedRows(NamedTuple):
    """Room for the rows of one block; :func:`parse_rows` fills it from the front."""

    starts: np.ndarray  # (rows,) int64: where each row's line begins in the buffer
    x_indptr: np.ndarray  # (rows + 1,) int64
    x_indices: np.ndarray  # int32
    x_data: np.ndarray  # float32
    y_indptr: np.ndarray  # (rows + 1,) int64
    y_indices: np.ndarray  # int32


@njit(nogil=True, cache=True, boundscheck=False)
def count_marks(buffer, start, stop):
    """How many newlines, colons and commas ``buffer[start:stop]`` holds: bounds on rows, features and labels.

    ``buffer`` is uint8 and may be read-only.
    """
    newlines, colons, commas = 0, 0, 0
    for i in range(np.uint64(start), np.uint64(stop)):
        newlines += buffer[i] == 10
        colons += buffer[i] == 58
        commas += buffer[i] == 44
    return newlines, colons, commas


@njit(nogil=True, cache=True, boundscheck=False)
def _scaled(mantissa, exponent):
    value = np.float64(mantissa)
    while exponent > 0:
        step = min(exponent, 22)
        value *= _POWERS[step]
        exponent -= step
    while exponent < 0 and value != 0.0:
        step = min(-exponent, 22)
        value /= _POWERS[step]
        exponent += step
    return value


@njit(nogil=True, cache=True, boundscheck=False)
def _parse_index(buffer, at):
    """The unsigned integer at ``at`` (clipped above 2**31) and the position behind it; -1 where there is none."""
    value = np.int64(0)
    first = at
    digit = np.uint8(buffer[at] - np.uint8(48))
    while digit < 10:
        value = min(value * 10 + digit, np.int64(1) << 40)
        at += np.uint64(1)
        digit = np.uint8(buffer[at] - np.uint8(48))
    if at == first:
        value = np.int64(-1)
    return value, at


@njit(nogil=True, cache=True, boundscheck=False)
def _parse_value(buffer, at):
    """The decimal number at ``at``, the position behind it, and whether there was one."""
    one = np.uint64(1)
    negative = buffer[at] == 45
    if negative or buffer[at] == 43:
        at += one
    mantissa = np.uint64(0)
    exponent, any_digit = 0, False
    limit = np.uint64(1_000_000_000_000_000_000)
    digit = np.uint8(buffer[at] - np.uint8(48))
    while digit < 10:
        any_digit = True
        if mantissa < limit:
            mantissa = mantissa * np.uint64(10) + np.uint64(digit)
        else:
            exponent += 1
        at += one
        digit = np.uint8(buffer[at] - np.uint8(48))
    if buffer[at] == 46:
        at += one
        digit = np.uint8(buffer[at] - np.uint8(48))
        while digit < 10:
            any_digit = True
            if mantissa < limit:
                mantissa = mantissa * np.uint64(10) + np.uint64(digit)
                exponent -= 1
            at += one
            digit = np.uint8(buffer[at] - np.uint8(48))
    if any_digit and (buffer[at] == 101 or buffer[at] == 69):
        at += one
        down = buffer[at] == 45
        if down or buffer[at] == 43:
            at += one
        shift, at = _parse_index(buffer, at)
        any_digit = shift >= 0
        shift = min(shift, 10_000)
        exponent += -shift if down else shift
    value = _scaled(mantissa, exponent)
    return (-value if negative else value), at, any_digit


@njit(nogil=True, cache=True, boundscheck=False)
def parse_rows(buffer, start, stop, n_features, n_labels, comments, out):
    """Parse the lines of ``buffer[start:stop]`` into ``out``; the last byte must be a newline.

    Indices must be below ``n_features`` and ``n_labels``. With ``comments`` a ``#`` ends a line, and lines that
    hold nothing else are no rows. ``buffer`` is uint8 and may be read-only; ``out`` is written, with room for what
    :func:`count_marks` found. Indices are stored in the order found.

    Returns (code, position, ordered, rows, features, labels): ``code`` is OK, or says what was wrong at ``position``;
    ``ordered`` tells whether the indices of every row ascend without duplicates.
    """
    one = np.uint64(1)
    at, end = np.uint64(start), np.uint64(stop)
    row, n_x, n_y = 0, 0, 0
    ordered = True
    out.x_indptr[0] = 0
    out.y_indptr[0] = 0
    while at < end:
        out.starts[row] = at
        token = at
        previous = np.int64(-1)
        # A first token with a colon is a feature: the row has no labels.
        if buffer[at] != 32 and buffer[at] != 9 and buffer[at] != 10 and buffer[at] != 13 and buffer[at] != 35:
            while True:
                token = at
                label, at = _parse_index(buffer, at)
                if label < 0:
                    return BAD_LABEL, token, ordered, row, n_x, n_y
                if buffer[at] == 58 and n_y == out.y_indptr[row]:
                    at = token
                    break
                if label >= n_labels:
                    return LABEL_RANGE, token, ordered, row, n_x, n_y
                ordered &= label > previous
                previous = label
                out.y_indices[n_y] = label
                n_y += 1
                if buffer[at] != 44:
                    break
                at += one
        previous = np.int64(-1)
        if at != token and buffer[at] > 32:
            return AFTER_LABEL, token, ordered, row, n_x, n_y
        while True:
            while buffer[at] == 32 or buffer[at] == 9:
                at += one
            if buffer[at] == 13 and buffer[at + one] == 10:
                at += one
            if buffer[at] == 10:
                break
            if comments and buffer[at] == 35:
                while buffer[at] != 10:
                    at += one
                break
            token = at
            index, at = _parse_index(buffer, at)
            if index < 0:
                return BAD_INDEX, token, ordered, row, n_x, n_y
            if buffer[at] != 58:
                return NO_COLON, token, ordered, row, n_x, n_y
            if index >= n_features:
                return INDEX_RANGE, token, ordered, row, n_x, n_y
            value, at, found = _parse_value(buffer, at + one)
            if not found:
                return BAD_VALUE, token, ordered, row, n_x, n_y
            if abs(value) >= _LARGEST_FLOAT32:
                return VALUE_RANGE, token, ordered, row, n_x, n_y
            if buffer[at] > 32:
                return AFTER_VALUE, token, ordered, row, n_x, n_y
            ordered &= index > previous
            previous = index
            out.x_indices[n_x] = index
            out.x_data[n_x] = np.float32(value)
            n_x += 1
        at += one
        if comments and n_x == out.x_indptr[row] and n_y == out.y_indptr[row]:
            continue
        row += 1
        out.x_indptr[row] = n_x
        out.y_indptr[row] = n_y
    return OK, at, ordered, row, n_x, n_y


@njit(nogil=True, cache=True, boundscheck=False)
def _write_integer(buffer, at, value):
    digits = 1
    rest = value // 10
    while rest > 0:
        rest //= 10
        digits += 1
    for i in range(digits - 1, -1, -1):
        buffer[at + i] = 48 + value % 10
        value //= 10
    return at + digits


@njit(nogil=True, cache=True, boundscheck=False)
def _shortest_decimal(value):
    """The (mantissa, exponent) of fewest digits that :func:`_scaled` turns back into ``value``, a positive float32."""
    magnitude = int(np.floor(np.log10(np.float64(value))))
    for digits in range(1, 18):
        exponent = magnitude - digits + 1
        mantissa = np.uint64(np.rint(_scaled(np.float64(value), -exponent)))
        if np.float32(_scaled(mantissa, exponent)) == value:
            break
    while mantissa % np.uint64(10) == 0:
        mantissa //= np.uint64(10)
        exponent += 1
    return np.int64(mantissa), exponent


@njit(nogil=True, cache=True, boundscheck=False)
def _write_value(buffer, at, value):
    if np.copysign(np.float32(1), value) < 0:
        buffer[at] = 45
        at += 1
        value = -value
    if value == 0:
        buffer[at] = 48
        return at + 1
    mantissa, exponent = _shortest_decimal(value)
    digits = _write_integer(buffer, at, mantissa) - at
    if 0 <= exponent <= 6:
        for i in range(exponent):
            buffer[at + digits + i] = 48
        return at + digits + exponent
    if exponent < 0 and digits + exponent > 0:
        point = at + digits + exponent
        for i in range(at + digits, point, -1):
            buffer[i] = buffer[i - 1]
        buffer[point] = 46
        return at + digits + 1
    if exponent < 0 and digits + exponent > -4:
        at = _write_zeros(buffer, at, -(digits + exponent))
        return _write_integer(buffer, at, mantissa)
    at += digits
    buffer[at] = 101
    at += 1
    if exponent < 0:
        buffer[at] = 45
        at += 1
    return _write_integer(buffer, at, abs(exponent))


@njit(nogil=True, cache=True, boundscheck=False)
def _write_zeros(buffer, at, zeros):
    buffer[at] = 48
    buffer[at + 1] = 46
    for i in range(zeros):
        buffer[at + 2 + i] = 48
    return at + 2 + zeros


@njit(nogil=True, cache=True, boundscheck=False)
def format_rows(first, last, base, X, Y, buffer):
    """Write rows first…last-1 as text into ``buffer``; returns the number of bytes.

    ``X`` and ``Y`` are :class:`Csr` and may be read-only, X with finite data, that of Y not read; ``base`` is added to
    each feature index. ``buffer`` (uint8), which is overwritten, needs 12 bytes a label, 32 a feature and 2 a row.
    Reading it back gives the same bits.
    """
    at = 0
    for row in range(first, last):
        for j in range(Y.indptr[row], Y.indptr[row + 1]):
            if j > Y.indptr[row]:
                buffer[at] = 44
                at += 1
            at = _write_integer(buffer, at, np.int64(Y.indices[j]))
        if X.indptr[row] == X.indptr[row + 1] and Y.indptr[row] == Y.indptr[row + 1]:
            buffer[at] = 32
            at += 1
        for j in range(X.indptr[row], X.indptr[row + 1]):
            buffer[at] = 32
            at = _write_integer(buffer, at + 1, np.int64(X.indices[j]) + base)
            buffer[at] = 58
            at = _write_value(buffer, at + 1, X.data[j])
        buffer[at] = 10
        at += 1
    return at
