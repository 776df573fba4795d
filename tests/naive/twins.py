"""How a kernel is compared with its plain twin: the same arguments, and then the same results and the same writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis.strategies import SearchStrategy

from tailwise.kernels.arrays import read_only


class Twin(NamedTuple):
    """A plain function of a kernel's arguments, with the arguments to draw.

    The kernel gets read-only arrays but for the arguments numbered in ``writes``; those must come out as the twin
    leaves them. ``seen(result, *arguments)`` turns what the kernel returns into what the twin returns, where a table
    or a weight may have more than one right form. ``call`` stands for a kernel that Python cannot call itself.
    """

    function: Callable[..., Any]
    arguments: SearchStrategy[tuple[Any, ...]]
    writes: tuple[int, ...] = ()
    seen: Callable[..., Any] | None = None
    call: Callable[..., Any] | None = None
    rtol: float = 0.0
    atol: float = 0.0
    examples: int = 25


def assert_equals_twin(kernel: Callable[..., Any], twin: Twin, arguments: tuple[Any, ...]) -> None:
    given = tuple(_copy(part, part_is_written=n in twin.writes) for n, part in enumerate(arguments))
    plain = tuple(_copy(part, part_is_written=True) for part in arguments)
    result, expected = (twin.call or kernel)(*given), twin.function(*plain)
    if twin.seen is not None:
        result = twin.seen(result, *given)
    _assert_same(result, expected, twin, "what it returns")
    for n in twin.writes:
        if twin.seen is None:
            _assert_same(given[n], plain[n], twin, f"what it writes into argument {n}")


def _copy(part: Any, *, part_is_written: bool) -> Any:
    if isinstance(part, np.ndarray):
        return part.copy() if part_is_written else read_only(part)
    if isinstance(part, tuple):
        copies = [_copy(one, part_is_written=part_is_written) for one in part]
        return type(part)(*copies) if hasattr(part, "_fields") else tuple(copies)
    return part


def _assert_same(found: Any, expected: Any, twin: Twin, what: str) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected), what
        for one, other in zip(found, expected, strict=True):
            _assert_same(one, other, twin, what)
    elif isinstance(expected, np.ndarray | float | np.floating) and (twin.rtol or twin.atol):
        np.testing.assert_allclose(found, expected, rtol=twin.rtol, atol=twin.atol, err_msg=what)
    elif isinstance(expected, np.ndarray):
        np.testing.assert_array_equal(found, expected, err_msg=what, strict=found.dtype == expected.dtype)
    else:
        assert found == expected, what
