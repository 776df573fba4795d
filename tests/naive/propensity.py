"""Plain twins of the propensity formulas."""

import math


def jain_propensity(counts, n_samples, a, b):
    c = (math.log(n_samples) - 1) * (b + 1) ** a
    return [1 / (1 + c * math.exp(-a * math.log(n + b))) for n in counts]
