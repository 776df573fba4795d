"""How sure a value is: bootstrap and jackknife over rows, and Hoeffding's inequality."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from tailwise.kernels.metrics import add_resampled
from tailwise.parallel import map_blocks, row_blocks

WEIGHT_OF_BYTE = np.repeat(np.arange(6.0), [93, 98, 43, 17, 4, 1])
"""A row's weight in a replicate: like Poisson(1), with mean and variance 1 exactly and skewness 1.01, from one byte."""

_REPLICATES_A_BLOCK = 128


class Bootstrap:
    """Poisson bootstrap of column sums: ``sums[b] = Σ_i w[b, i] columns[i]`` without keeping rows or weights.

    Every replicate draws an independent weight for every row, which for many rows is the multinomial bootstrap.
    All columns share a row's weight, so ratios and paired differences vary as they should. Batches may come in any
    sizes. Time: replicates × rows × columns multiplications; memory: replicates × columns.
    """

    def __init__(
        self,
        n_replicates: int,
        n_columns: int,
        seed: int,
        weight_of_byte: np.ndarray = WEIGHT_OF_BYTE,
        n_jobs: int | None = None,
    ) -> None:
        self.sums = np.zeros((n_replicates, n_columns))
        self.n_rows = 0
        self.seed, self.weight_of_byte, self.n_jobs = np.uint64(seed), weight_of_byte, n_jobs

    def add(self, columns: np.ndarray) -> None:
        """Take the next rows, (n, n_columns) float64."""

        def add_block(block: tuple[int, int]) -> None:
            sums = self.sums[block[0] : block[1]]
            add_resampled(columns, self.n_rows, self.seed, self.weight_of_byte, sums, block[0])

        map_blocks(add_block, row_blocks(len(self.sums), _REPLICATES_A_BLOCK), n_jobs=self.n_jobs)
        self.n_rows += len(columns)


class Resample(NamedTuple):
    """A value's variation: over bootstrap replicates, or with each row left out in turn (jackknife)."""

    method: str
    values: np.ndarray

    def minus(self, other: Resample) -> Resample:
        """The variation of the difference; replicates are paired."""
        return Resample(self.method, self.values - other.values)

    def interval(self, value: float, confidence: float) -> tuple[float, float]:
        """Percentiles of the replicates, or the normal interval of the jackknife's standard error."""
        if np.isnan(value):
            return np.nan, np.nan
        if self.method == "bootstrap":
            values = self.values[~np.isnan(self.values)]
            if values.size == 0:
                return np.nan, np.nan
            low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
            return float(low), float(high)
        n = self.values.size
        error = float(np.sqrt((n - 1) / n * ((self.values - self.values.mean()) ** 2).sum()))
        reach = float(ndtri((1 + confidence) / 2)) * error
        return value - reach, value + reach


def hoeffding(
    numerator: float, denominator: float, widths: tuple[float, float], n_rows: int, confidence: float
) -> tuple[float, float]:
    """An interval for a ratio of two means that holds for every distribution of the rows.

    With probability 1 - δ the mean of n values in a range of width r is within ``r sqrt(ln(2/δ) / 2n)`` of its
    expectation (Theorems 4.3 and 4.4 of Jain et al.). A denominator that varies takes half of δ.

    >>> low, high = hoeffding(0.5, 1.0, (1.0, 0.0), 1000, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.457, 0.543)
    """
    delta = (1 - confidence) / (2 if widths[1] > 0 else 1)
    reach = math.sqrt(math.log(2 / delta) / (2 * n_rows))
    above, below = numerator + widths[0] * reach, numerator - widths[0] * reach
    small, large = denominator - widths[1] * reach, denominator + widths[1] * reach
    low = below / (large if below >= 0 else small) if large > 0 and (below >= 0 or small > 0) else -np.inf
    return low, above / small if small > 0 else np.inf
