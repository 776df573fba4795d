"""How close is the scan of all rows for sixteen labels to what this machine gives? ``python -m benchmarks roofline``.

One core. The machine: multiplications and additions a second on sixteen numbers that stay in registers, and bytes a
second read in a row from arrays that fit into each level of caches and from memory. Beside it the scan of EURLex-4K
and of rows whose features leave the caches, with the operations that it needs and the bytes that it touches: an index,
a value and a line of sixteen weights for every non-zero.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks.harness import matrices, save_results

QUESTION = "How close is the scan of all rows for sixteen labels to what this machine gives?"
_LANES, _LINE, _VALUE = 16, 64, 8
_SIZES = {"512 KB": 1 << 19, "8 MB": 1 << 23, "512 MB": 1 << 29}
_ROUNDS = 5
_FEATURES = 200_000


def main(arguments: list[str]) -> None:
    import numpy as np
    from numba import njit
    from threadpoolctl import threadpool_limits

    from tailwise.kernels.solvers.lanes import dot_lanes, zero_lanes

    @njit(nogil=True)
    def scan(indptr: Any, indices: Any, data: Any, weights: Any, sums: Any) -> Any:
        for row in range(indptr.shape[0] - 1):
            dot_lanes(weights, indices, data, indptr[row], indptr[row + 1], sums)

    def scanned(indptr: Any, indices: Any, data: Any, n_features: int) -> tuple[float, int]:
        weights, sums = zero_lanes(n_features), np.zeros(_LANES, np.float32)
        return _seconds(lambda: scan(indptr, indices, data, weights, sums)), indices.size

    figures: dict[str, float] = {}
    one_line = np.zeros(1 << 16, np.int32)
    taken, n = scanned(np.array([0, one_line.size]), one_line, np.ones(one_line.size, np.float32), 1)
    most = figures["GFLOP/s on one line of weights"] = 2 * _LANES * n / taken / 1e9
    print(f"  the machine: {most:.0f} GFLOP/s on one line of weights")
    for name, size in _SIZES.items():
        values, times = np.ones(size // 4, np.float32), max(1, (1 << 26) // size)
        with threadpool_limits(1):
            taken = _seconds(lambda values=values, times=times: [values @ values for _ in range(times)])
        figures[f"GB/s from {name}"] = size * times / taken / 1e9
        print(f"  the machine: {figures[f'GB/s from {name}']:.0f} GB/s from {name}")
    X = matrices("eurlex-4k").X_train
    rng = np.random.default_rng(0)
    indices = rng.integers(0, _FEATURES, X.nnz).astype(np.int32)
    wide = f"{_FEATURES:,} features, uniform"
    rows = {"EURLex-4K, 5,000 features": (X.indices, X.shape[1]), wide: (indices, _FEATURES)}
    for name, (features, n_features) in rows.items():
        taken, n = scanned(X.indptr.astype(np.int64), features.astype(np.int32), X.data, n_features)
        found = {
            "ms a label": 1e3 * taken / _LANES,
            "GFLOP/s": 2 * _LANES * n / taken / 1e9,
            "GB/s": n * (_VALUE + _LINE) / taken / 1e9,
            "ns a non-zero": 1e9 * taken / n,
        }
        figures |= {f"{name}: {what}": value for what, value in found.items()}
        told = ", ".join(f"{what} {value:,.2f}" for what, value in found.items())
        print(f"  a scan of {name} (weights of {_LINE * n_features / 1e6:.1f} MB): {told}")
    save_results("roofline", figures)


def _seconds(call: Callable[[], Any]) -> float:
    """The least of a few calls, after one that compiles."""
    call()
    taken = []
    for _ in range(_ROUNDS):
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return min(taken)
