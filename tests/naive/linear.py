"""Plain twins of the one-vs-rest solvers: the objective as written, minimised by scipy or by proximal gradient."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

LOSSES = {
    "squared_hinge": (lambda m: np.maximum(0, 1 - m) ** 2, lambda m: -2 * np.maximum(0, 1 - m)),
    "hinge": (lambda m: np.maximum(0, 1 - m), lambda m: -(m < 1).astype(float)),
    "logistic": (lambda m: np.logaddexp(0, -m), lambda m: -1 / (1 + np.exp(m))),
}


def objective(X, z, costs, w, b, *, loss="squared_hinge", centre=-1.0, scale=1.0, l1=0.0, l2=1.0):
    """``½ l2 |w|² + l1 |w|₁ + (the same of v) + Σ c_i loss(z_i (w·x_i + b))`` with ``b = centre + scale v``."""
    v = (b - centre) / scale if scale else 0.0
    penalty = 0.5 * l2 * (w @ w + v * v) + l1 * np.abs(w).sum() + (l1 * abs(v) if l2 == 0 else 0.0)
    return penalty + costs @ LOSSES[loss][0](z * (X @ w + b))


def solve_smooth(X, z, costs, *, loss="squared_hinge", centre=-1.0, scale=1.0):
    """L2-regularised optimum of a smooth loss by L-BFGS, in float64; returns w and b."""
    value, slope = LOSSES[loss]

    def function(p):
        w, v = p[:-1], p[-1]
        margins = z * (X @ w + centre + scale * v)
        pull = costs * z * slope(margins)
        return 0.5 * p @ p + costs @ value(margins), p + np.append(X.T @ pull, scale * pull.sum())

    start = np.zeros(X.shape[1] + 1)
    found = minimize(
        function, start, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    )
    return found.x[:-1], centre + scale * found.x[-1]


def solve_l1(X, z, costs, *, centre=-1.0, scale=1.0, iterations=20000):
    """L1-regularised squared hinge by accelerated proximal gradient; returns w and b."""
    A = np.column_stack([X, np.full(X.shape[0], scale)])
    step = 1 / max(2 * np.linalg.norm(A * np.sqrt(costs)[:, None], 2) ** 2, 1e-12)
    p = look = np.zeros(A.shape[1])
    momentum = 1.0
    for _ in range(iterations):
        pull = -2 * costs * z * np.maximum(0, 1 - z * (A @ look + centre))
        moved = look - step * (A.T @ pull)
        new = np.sign(moved) * np.maximum(np.abs(moved) - step, 0)
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        look = new + (momentum - 1) / faster * (new - p)
        p, momentum = new, faster
    return p[:-1], centre + scale * p[-1]


def dual_bound(X, z, costs, alphas, *, centre=-1.0, scale=1.0, l1=0.0, squared=False):
    """Dual value of the hinge problem with L1 and L2: a lower bound of its primal objective, for 0 <= α <= costs.

    ``squared`` is that of the squared hinge, for every α >= 0.
    """
    u = X.T @ (alphas * z)
    w = np.sign(u) * np.maximum(np.abs(u) - l1, 0)
    v = scale * (alphas @ z)
    return -0.5 * (w @ w + v * v) + alphas @ (1 - z * centre) - (alphas @ (alphas / costs) / 4 if squared else 0.0)


def solve_hinge_dual(X, z, costs, *, centre=-1.0, scale=1.0, l1=0.0, iterations=20000):
    """Best dual value found by projected gradient ascent: the optimum of the hinge problem from below."""
    rate = 1 / max(np.linalg.norm(X, 2) ** 2 + scale**2 * X.shape[0], 1e-12)
    alphas = look = np.zeros(X.shape[0])
    momentum = 1.0
    for _ in range(iterations):
        u = X.T @ (look * z)
        w = np.sign(u) * np.maximum(np.abs(u) - l1, 0)
        slope = 1 - z * (X @ w + centre + scale**2 * (look @ z))
        new = np.clip(look + rate * slope, 0, costs)
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        look = new + (momentum - 1) / faster * (new - alphas)
        alphas, momentum = new, faster
    return dual_bound(X, z, costs, alphas, centre=centre, scale=scale, l1=l1)


def solve_l1_logistic(A, targets, costs, *, iterations=20000):
    """``min |w|₁ + Σ c ln(1 + exp(-t (A w)))`` by accelerated proximal gradient; returns w."""
    step = 4 / max(np.linalg.norm(A * np.sqrt(costs)[:, None], 2) ** 2, 1e-12)
    w = look = np.zeros(A.shape[1])
    momentum = 1.0
    for _ in range(iterations):
        pull = -costs * targets / (1 + np.exp(targets * (A @ look)))
        moved = look - step * (A.T @ pull)
        new = np.sign(moved) * np.maximum(np.abs(moved) - step, 0)
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        look = new + (momentum - 1) / faster * (new - w)
        w, momentum = new, faster
    return w


def dot_lanes(weights, indices, data, start, stop, sums):
    for a in range(start, stop):
        sums += data[a] * weights.reshape(-1, 16)[indices[a]]


def dot_lanes_in_order(weights, indices, data, start, stop, sums):
    for a in range(start, stop):
        sums += data[a] * weights.reshape(-1, 32)[indices[a]]


def sum_lanes(weights, found, values, n, offsets, sums):
    for c in offsets:
        for pair in found[:n].tolist():
            first = (pair & 0xFFFFFFFF) + c
            sums[c : c + 16] += values[pair >> 32] * weights[first : first + 16].astype(np.float32)


def put_side_by_side_in_halves(weights, side_by_side):
    def rounded(number):
        # The nearer of the two numbers of eight bits beside it, by integers: the even one of two that are as near.
        bits = int(np.float32(number).view(np.uint32))
        below, rest = bits >> 16, bits & 0xFFFF
        return below + (rest > 0x8000 or (rest == 0x8000 and below % 2))

    both = side_by_side.view(np.uint32).reshape(-1, 16)
    for feature, lane in np.ndindex(both.shape):
        both[feature, lane] = rounded(weights[lane, feature]) | rounded(weights[lane + 16, feature]) << 16


def dot_half_lanes(weights, indices, data, start, stop, sums):
    both = weights.view(np.uint32)
    for first, half in ((0, both << np.uint32(16)), (16, both & np.uint32(0xFFFF0000))):
        dot_lanes(half.view(np.float32), indices, data, start, stop, sums[first : first + 16])


def add_lanes(weights, indices, data, start, stop, steps):
    for a in range(start, stop):
        weights.reshape(-1, 16)[indices[a]] += data[a] * steps


def sigmoid(logits):
    return 1 / (1 + np.exp(-np.clip(np.asarray(logits, np.float64), -700, 700)))


def hinge_lanes(
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
    """One row of the dual of the squared hinge, lane by lane."""
    scores, steps = biases.copy(), np.zeros(16, np.float32)
    dot_lanes(weights, indices, data, start, stop, scores)
    for lane in np.flatnonzero(at_work):
        z, half, alpha = np.sign(halves[place + lane]), abs(halves[place + lane]), alphas[place + lane]
        if half == 0:
            continue
        gradient = z * scores[lane] - 1 + half * alpha
        projected = gradient if alpha > 0 else min(gradient, 0)
        extremes[:, lane] = max(extremes[0, lane], projected), min(extremes[1, lane], projected)
        if abs(projected) > least:
            alphas[place + lane] = max(0, alpha - gradient / (curvature + half))
            steps[lane] = z * (alphas[place + lane] - alpha)
    add_lanes(weights, indices, data, start, stop, steps)
    biases += scale_squared * steps


def logistic_lanes(costs, curvature, scores, logits, at_work, sums, steps, least):
    """One coordinate of the dual of the logistic loss, lane by lane."""
    moved = False
    for lane in range(costs.size):
        logit, margin = float(logits[lane]), np.sign(costs[lane]) * scores[lane]
        strength, old, t = curvature * abs(costs[lane]), sigmoid(logits[lane]), logit
        moves = at_work[lane] > 0 and abs(margin + logit) > least
        for _ in range(3 if moves else 0):
            share = sigmoid(t)
            moved_to = t - (strength * (share - old) + margin + t) / (strength * share * (1 - share) + 1)
            t = 0.0 if t * moved_to < 0 else moved_to
        logits[lane], steps[lane] = t, (sigmoid(t) - old) * costs[lane]
        sums[:, lane] += abs(steps[lane]), sigmoid(t) * abs(costs[lane])
        moved |= moves
    return bool(moved)


def violation(weight, gradient):
    """The distance of 0 from ``gradient + s``, s the sign of the weight, or any number from -1 to 1 where it is 0."""
    return min(abs(gradient + s) for s in ([np.sign(weight)] if weight else np.linspace(-1, 1, 9)))


def max_margin_primal(W, X, Y, C, l1):
    """``½|W|² + l1 |W|₁ + C Σ_i max_{k∉y, l∈y} [1 + f_k - f_l]+`` over labels that have rows, as it reads."""
    loss = 0.0
    with_rows = Y.any(axis=0)
    for scores, own in zip(X @ W, Y > 0, strict=True):
        others = ~own & with_rows
        if own.any() and others.any():
            loss += max(0.0, 1 + scores[others].max() - scores[own].min())
    return 0.5 * (W**2).sum() + l1 * np.abs(W).sum() + C * loss


def soft(v, l1):
    return np.sign(v) * np.maximum(np.abs(v) - l1, 0)


def project(u, n_u, t, n_t, C):
    """The nearest ``a, b >= 0`` with ``Σa = Σb <= C``, by trying every threshold between two neighbouring values."""

    def onto(values, total):
        """On the simplex ``Σ = total``, by the classical sort."""
        if not total:
            return np.zeros(len(values))
        s = np.sort(values)[::-1]
        heights = (np.cumsum(s) - total) / np.arange(1, len(s) + 1)
        return np.maximum(values - heights[np.flatnonzero(s > heights)[-1]], 0)

    if not n_u or not n_t:
        u[:n_u], t[:n_t] = 0, 0
        return
    first, second = u[:n_u].copy(), t[:n_t].copy()

    def distance(total):
        return ((onto(first, total) - first) ** 2).sum() + ((onto(second, total) - second) ** 2).sum()

    low, high = 0.0, float(C)
    for _ in range(60):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, other) if distance(one) <= distance(other) else (one, high)
    total = min((low, 0.0, float(C)), key=distance)
    u[:n_u], t[:n_t] = onto(first, total), onto(second, total)


def large_lanes(values, place, least):
    return sum(1 << lane for lane in range(16) if abs(values[place + lane]) >= least)


def take_lanes(lanes, in_use, least, numbers, values, used, begin, count):
    """What each lane has: the numbers and values, one lane after the other, after what was taken before."""
    numbers, values = [*numbers[:used]], [*values[:used]]
    for lane, own in enumerate(lanes.reshape(-1, 16).T[:in_use]):
        large = np.flatnonzero(abs(own) >= least)
        begin[lane], count[lane] = len(numbers), large.size
        numbers += large.tolist()
        values += own[large].tolist()
    return numbers, values, len(numbers)


def take_duals(alphas, halves, in_use, positions, signed, used, begin, count):
    """The same of all that are not zero, with the signs of ``halves``."""
    both = np.where(halves > 0, alphas, -alphas)
    return take_lanes(both, in_use, np.float32(1e-45), positions, signed, used, begin, count)
