"""Solvers: kernels, twins and what to draw for them. A solution is compared by its objective."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from naive import linear as naive
from naive.sparse import dense
from naive.twins import Twin
from numba import njit
from scipy import sparse
from strategies import generators, rows_and_labels, sparse_rows

from tailwise.forest.growth import columns_with_ones
from tailwise.kernels.arrays import frozen, read_only
from tailwise.kernels.solvers import (
    l1,
    l1_logistic,
    lanes,
    logistic,
    passes,
    penalty,
    resuming,
    resuming_together,
    solve,
    svm,
    sweeps,
    taking,
    together,
)
from tailwise.kernels.solvers.problems import (
    HINGE,
    LOGISTIC,
    NO_START,
    SQUARED_HINGE,
    Labels,
    Options,
    Several,
    Standing,
    Start,
    Support,
    Weights,
    has_start,
    pack_rows,
)
from tailwise.kernels.sparse.columns import to_columns
from tailwise.kernels.sparse.csr import csr_parts

LANES = lanes.LANES


@njit
def dot_lanes(weights, indices, data, start, stop, sums):
    lanes.dot_lanes(weights, indices, data, start, stop, sums)


@njit
def dot_lanes_in_order(weights, indices, data, start, stop, sums):
    lanes.dot_lanes_in_order(weights, indices, data, start, stop, sums)


@njit
def sum_lanes(weights, found, values, n, offsets, sums):
    lanes.sum_lanes(weights, found, values, n, offsets, sums)


@njit
def dot_half_lanes(weights, indices, data, start, stop, sums):
    lanes.dot_half_lanes(weights, indices, data, start, stop, sums)


@njit
def add_lanes(weights, indices, data, start, stop, steps):
    lanes.add_lanes(weights, indices, data, start, stop, steps)


@njit
def large_lanes(values, place, least):
    return lanes.large_lanes(values, place, least)


@njit
def sigmoid_lanes(logits, shares):
    lanes.sigmoid_lanes(logits, shares)


@njit
def logistic_lanes(costs, curvature, scores, logits, at_work, sums, steps, least):
    return lanes.logistic_lanes(costs, curvature, scores, logits, at_work, sums, steps, least)


@njit
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
    lanes.hinge_lanes(
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
    )


@st.composite
def problems(draw, loss, centre=-1.0, l1=(0.0,)):
    """Labels without rows, on one row, on every row; costs that differ; a bias that is fixed, penalised or free."""
    X, Y = draw(rows_and_labels((1, 12), (1, 6), (1, 3), signed=True))
    rng = draw(generators())
    by_label = csr_parts(sparse.csr_array(Y.T))
    cost = lambda n: rng.uniform(0.3, 3.0, n).astype(np.float32)  # noqa: E731
    labels = Labels(*by_label[:2], cost(by_label.indices.size), cost(Y.shape[1]))
    scale, penalty_l1 = draw(st.sampled_from([0.0, 1.0, 3.0])), draw(st.sampled_from(l1))
    options = Options(draw(st.sampled_from(loss)), penalty_l1, 1e-4, 300, 2000, centre, scale, 0.0, 5)
    return pack_rows(csr_parts(X), X.shape[1]), labels, options


@st.composite
def resumed(draw, problem):
    """The problem with old solutions, good or bad, of some of its labels: where a solver begins changes no optimum."""
    rows, labels, options = draw(problem)
    rng = draw(generators())
    n_labels, n_features = labels.indptr.size - 1, rows.features.size
    if draw(st.booleans()):
        return rows, labels, NO_START, options
    bias = np.where(rng.random(n_labels) < 0.3, -np.inf, rng.normal(-1, 1, n_labels)).astype(np.float32)
    start = Start(
        np.arange(n_labels + 1, dtype=np.int64) * n_features,
        np.tile(np.arange(n_features, dtype=np.int32), n_labels),
        rng.normal(size=n_labels * n_features).astype(np.float32),
        np.full(n_labels, options.bias_centre, np.float32) if options.bias_scale == 0 else bias,
        rng.integers(0, rows.squares.size + 1, n_labels),
    )
    return rows, labels, frozen(start), options


@st.composite
def standing(draw, problem):
    """The problem with any α for some rows, of either sign: where a solver begins changes no optimum."""
    rows, labels, options = draw(problem)
    rng = draw(generators())
    n_labels, n_rows = labels.indptr.size - 1, rows.squares.size
    held = [np.flatnonzero(rng.random(n_rows) < 0.5) for _ in range(n_labels)]
    indptr = np.append(0, np.cumsum([own.size for own in held]))
    positions = np.concatenate(held).astype(np.int32)
    support = frozen(Support(indptr, positions, rng.normal(size=positions.size).astype(np.float32)))
    return rows, labels, Standing(support, 300), options


@st.composite
def with_fresh_rows(draw, problem):
    """The problem, one of several, with some rows that come first."""
    rows, labels, state, options = draw(problem)
    n_rows, n_labels = rows.squares.size, labels.indptr.size - 1
    several = frozen(Several(*(np.array(ends) for ends in ([0, n_rows], [0, n_labels], [0], [rows.features.size]))))
    marks = draw(generators()).random((2, n_rows)) < 0.3
    began = weights_of(rows, labels, state.support, options) if draw(st.booleans()) else solve._NO_WEIGHTS
    return rows, read_only(rows.indptr[:-1]), several, labels, state.support, frozen(began), read_only(marks), options


def weights_of(rows, labels, support, options):
    """What support vectors make that are on the side of their rows."""
    parts, bias = [], []
    for label, (X, z, _) in enumerate(each_label(rows, labels)):
        own = slice(*support.indptr[label : label + 2])
        alpha = np.zeros(z.size)
        alpha[support.positions[own]] = support.values[own]
        alpha[alpha * z < 0] = 0
        parts.append(alpha @ X)
        bias.append(options.bias_centre + options.bias_scale**2 * alpha.sum())
    found = sparse.csr_array(np.array(parts, np.float32))
    indptr, features = found.indptr.astype(np.int64), found.indices.astype(np.int32)
    return Weights(indptr, features, found.data, np.array(bias, np.float32))


@st.composite
def working_sets(draw, problem):
    """All rows, where they stand as one label's problem begins."""
    rows, labels, options = draw(problem)
    _, z, costs = next(each_label(rows, labels))
    n_rows, n_features = rows.squares.size, rows.features.size
    own = sweeps.WorkingSet(
        np.arange(n_rows, dtype=np.int32), (z * costs).astype(np.float32), np.zeros(n_rows, np.float32)
    )
    weights, unsoft = np.zeros(n_features, np.float32), np.zeros(n_features, np.float32) if options.l1 else None
    effort = (2000, np.float32(1e-6))
    return rows, own, weights, unsoft, np.float32(options.bias_centre), effort, options


def one_label(rows, costs):
    X = dense(rows, rows.features.size).astype(np.float64)
    return X, np.sign(costs).astype(np.float64), np.abs(costs).astype(np.float64)


def best_of_working_set(rows, own, weights, unsoft, bias, effort, options):
    X, z, cost = one_label(rows, own.costs)
    form = form_of(options, z)
    if options.loss == HINGE:
        return naive.solve_hinge_dual(X, z, cost, l1=options.l1, iterations=6000, **form)
    return naive.objective(X, z, cost, *naive.solve_smooth(X, z, cost, **form), **form)


def reached(result, rows, own, weights, unsoft, bias, effort, options):
    X, z, cost = one_label(rows, own.costs)
    form = form_of(options, z) | svm_form(options)
    return naive.objective(X, z, cost, weights.astype(np.float64), float(result[0]), **form)


@st.composite
def sums_of_support(draw):
    rows, own, *_ = draw(working_sets(problems([HINGE])))
    size = own.rows.size
    own.alphas[:] = draw(generators()).uniform(0, 2, size) * (draw(generators()).random(size) < 0.6)
    return rows, own, np.full(rows.features.size, 7, np.float32)


def naive_sum_of_support(rows, own, total):
    X = dense(rows, rows.features.size)
    total[:] = (np.sign(own.costs) * own.alphas) @ X[own.rows]


def each_label(rows, labels):
    """``(X, z, costs)`` of each label, dense, in float64."""
    X = dense(rows, rows.features.size).astype(np.float64)
    for label, (first, last) in enumerate(pairwise(labels.indptr)):
        z, costs = -np.ones(len(X)), np.full(len(X), float(labels.negative_costs[label]))
        z[labels.positions[first:last]] = 1
        costs[labels.positions[first:last]] = labels.positive_costs[first:last]
        yield X, z, costs


def form_of(options, z):
    """How the objective of a label is written."""
    log_odds = np.log(((z > 0).sum() + 0.5) / ((z < 0).sum() + 0.5))
    centre = log_odds if np.isnan(options.bias_centre) else options.bias_centre
    return {"centre": float(centre), "scale": options.bias_scale}


def objectives(result, rows, labels, options, **form):
    """Of the solutions that a kernel returns."""
    begin, count, features, values, bias = result[:5]
    found = []
    for label, (X, z, costs) in enumerate(each_label(rows, labels)):
        w = np.zeros(X.shape[1])
        own = slice(begin[label], begin[label] + count[label])
        w[features[own]] = values[own]
        found.append(naive.objective(X, z, costs, w, float(bias[label]), **form_of(options, z), **form))
    return np.array(found)


def svm_form(options):
    return {"loss": "hinge" if options.loss == HINGE else "squared_hinge", "l1": options.l1}


def best_svm(rows, labels, start, options):
    found = []
    for X, z, costs in each_label(rows, labels):
        form = form_of(options, z)
        if options.loss == HINGE:
            found.append(naive.solve_hinge_dual(X, z, costs, l1=options.l1, iterations=6000, **form))
        else:
            found.append(naive.objective(X, z, costs, *naive.solve_smooth(X, z, costs, **form), **form))
    return np.array(found)


def best_logistic(rows, labels, options):
    found = []
    for X, z, costs in each_label(rows, labels):
        form = {"loss": "logistic", **form_of(options, z)}
        found.append(naive.objective(X, z, costs, *naive.solve_smooth(X, z, costs, **form), **form))
    return np.array(found)


def best_l1(rows, columns, labels, start, options):
    found = []
    for X, z, costs in each_label(rows, labels):
        form = form_of(options, z)
        solution = naive.solve_l1(X, z, costs, iterations=4000, **form)
        found.append(naive.objective(X, z, costs, *solution, l1=1.0, l2=0.0, **form))
    return np.array(found)


@st.composite
def separators(draw):
    X = draw(sparse_rows((2, 14), (1, 6), signed=True))
    n, rng = X.shape[0], draw(generators())
    targets = rng.choice([-1, 1], n).astype(np.float32)
    costs = (rng.uniform(0.2, 6.0, n) * (rng.random(n) > 0.1)).astype(np.float32)
    columns = columns_with_ones(sparse.csc_array(X))
    return columns, targets, costs, 1e-5, 300, np.full(X.shape[1] + 1, 7, np.float32), np.full(n, 7, np.float32)


def matrix_of(columns, n):
    shape = (n, columns.indptr.size - 1)
    return sparse.csc_array((columns.values, columns.rows, columns.indptr), shape=shape).toarray()


def logistic_loss(A, targets, costs, w):
    return np.abs(w).sum() + (costs * np.logaddexp(0, -targets * (A @ w))).sum()


def best_separator(columns, targets, costs, tolerance, max_newton, weights, margins):
    A, targets, costs = (part.astype(np.float64) for part in (matrix_of(columns, targets.size), targets, costs))
    best = logistic_loss(A, targets, costs, naive.solve_l1_logistic(A, targets, costs, iterations=4000))
    return best, best, np.zeros(targets.size)


def read_separator(objective, columns, targets, costs, tolerance, max_newton, weights, margins):
    A = matrix_of(columns, targets.size).astype(np.float64)
    return objective, logistic_loss(A, targets, costs, weights.astype(np.float64)), margins - A @ weights


@st.composite
def lane_rows(draw):
    X = csr_parts(draw(sparse_rows(1, (1, 20), signed=True)))
    rng, n_features = draw(generators()), 20
    start = draw(st.integers(0, X.data.size))
    weights = rng.normal(size=n_features * LANES).astype(np.float32)
    sixteen = rng.normal(size=LANES).astype(np.float32)
    return weights, X.indices, X.data, start, draw(st.integers(start, X.data.size)), sixteen


@st.composite
def packed_places(draw):
    """Places anywhere among weights, some of them found by values of a row."""
    rng, n = draw(generators()), draw(st.integers(0, 9))
    offsets = draw(st.sampled_from([(0,), (5, 40), (0, 16, 32, 48)]))
    weights = rng.integers(-127, 128, 99, dtype=np.int8)
    found = rng.integers(0, 99 - offsets[-1] - LANES, n).astype(np.uint64)
    found += rng.permutation(9)[:n].astype(np.uint64) << np.uint64(32)
    values = rng.normal(size=9).astype(np.float32)
    return weights, found, values, draw(st.integers(0, n)), offsets, np.full(offsets[-1] + LANES, 7, np.float32)


@st.composite
def weights_to_halve(draw):
    n_features = draw(st.integers(1, 5))
    weights = draw(generators()).normal(size=(2 * LANES, n_features)).astype(np.float32)
    weights.view(np.uint32)[draw(st.integers(0, 31))] &= draw(st.sampled_from([0xFFFF8000, 0xFFFF0000, 0]))
    return weights, np.zeros(n_features * LANES, np.float32)


@st.composite
def half_lane_rows(draw):
    weights, *row, sixteen = draw(lane_rows())
    other = draw(generators()).normal(size=(2, weights.size)).astype(np.float32)
    naive.put_side_by_side_in_halves(other.reshape(2, -1, LANES).transpose(0, 2, 1).reshape(2 * LANES, -1), weights)
    return weights, *row, np.append(sixteen, -sixteen)


sixteen = st.lists(st.floats(-90, 90, width=32), min_size=LANES, max_size=LANES).map(lambda v: np.array(v, np.float32))


@st.composite
def logistic_problems(draw):
    rng = draw(generators())
    sixteen = lambda values: values.astype(np.float32)  # noqa: E731
    costs = sixteen(rng.choice([-1, 1], LANES) * rng.uniform(0.1, 30.0, LANES))
    scores, logits = sixteen(rng.normal(scale=8, size=LANES)), sixteen(rng.normal(scale=8, size=LANES))
    at_work, sums = sixteen(rng.random(LANES) < 0.7), sixteen(rng.random((2, LANES)))
    least, curvature = np.float32(draw(st.sampled_from([0.0, 0.5]))), np.float32(rng.uniform(0, 2))
    return costs, curvature, scores, logits, at_work, sums, np.full(LANES, 7, np.float32), least


@st.composite
def hinge_problems(draw):
    rng, row = draw(generators()), draw(lane_rows())
    sixteen = lambda values: values.astype(np.float32)  # noqa: E731
    halves = sixteen(rng.choice([-1, 0, 1], 3 * LANES) * rng.uniform(0.1, 2.0, 3 * LANES))
    alphas = sixteen(rng.uniform(0, 2, 3 * LANES) * (rng.random(3 * LANES) < 0.6))
    at_work, extremes = sixteen(rng.random(LANES) < 0.7), sixteen(rng.normal(size=(2, LANES)))
    curvature, scale = np.float32(rng.uniform(0.5, 2)), np.float32(rng.uniform(0, 2))
    place, least = LANES * draw(st.integers(0, 2)), np.float32(draw(st.sampled_from([0.0, 0.5])))
    return *row, halves, alphas, place, curvature, scale, at_work, extremes, least


@st.composite
def full_lanes(draw):
    """Lanes with zeros, some of them in use, and room that is too small at times."""
    rng, n = draw(generators()), draw(st.integers(0, 9))
    values, signs = (rng.integers(-3, 4, n * LANES).astype(np.float32) for _ in range(2))
    used, in_use = draw(st.integers(0, 3)), draw(st.integers(1, LANES))
    room = draw(st.integers(used, 40))
    taken = rng.integers(0, 9, room).astype(np.int32), rng.random(room).astype(np.float32), used
    least = draw(st.sampled_from([taking.LEAST, np.float32(2)]))
    return values, signs, in_use, least, *taken, np.zeros(in_use, np.int64), np.zeros(in_use, np.int64)


def what_was_taken(result, *arguments):
    return result[0][: result[2]], result[1][: result[2]], result[2]


coarse = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0]).map(np.float32)

TWINS = {
    penalty.violation: Twin(naive.violation, st.tuples(coarse, coarse)),
    lanes.zero_lanes: Twin(
        lambda n: (np.zeros(n * LANES, np.float32), 0),
        st.tuples(st.integers(0, 40)),
        seen=lambda weights, n: (weights, weights.ctypes.data % 64 if n else 0),
    ),
    lanes.dot_lanes: Twin(naive.dot_lanes, lane_rows(), writes=(5,), call=dot_lanes, rtol=1e-4, atol=1e-4),
    lanes.dot_lanes_in_order: Twin(
        naive.dot_lanes_in_order,
        lane_rows().map(lambda row: (np.tile(row[0], 2), *row[1:5], np.append(row[5], -row[5]))),
        writes=(5,),
        call=dot_lanes_in_order,
    ),
    lanes.sum_lanes: Twin(naive.sum_lanes, packed_places(), writes=(5,), call=sum_lanes, rtol=1e-5, atol=1e-4),
    lanes.put_side_by_side_in_halves: Twin(naive.put_side_by_side_in_halves, weights_to_halve(), writes=(1,)),
    lanes.dot_half_lanes: Twin(
        naive.dot_half_lanes, half_lane_rows(), writes=(5,), call=dot_half_lanes, rtol=1e-4, atol=1e-4
    ),
    lanes.add_lanes: Twin(naive.add_lanes, lane_rows(), writes=(0,), call=add_lanes, rtol=1e-5, atol=1e-5),
    lanes.sigmoid_lanes: Twin(
        lambda logits, shares: shares.__setitem__(slice(None), naive.sigmoid(np.clip(logits, -80, 80))),
        st.tuples(sixteen, st.just(np.zeros(LANES, np.float32))),
        writes=(1,),
        call=sigmoid_lanes,
        rtol=2e-6,
    ),
    lanes.logistic_lanes: Twin(
        naive.logistic_lanes, logistic_problems(), writes=(3, 5, 6), call=logistic_lanes, rtol=1e-3, atol=1e-3
    ),
    lanes.hinge_lanes: Twin(
        naive.hinge_lanes, hinge_problems(), writes=(0, 5, 7, 12), call=hinge_lanes, rtol=1e-3, atol=1e-3
    ),
    lanes.large_lanes: Twin(
        naive.large_lanes,
        full_lanes().filter(lambda drawn: drawn[0].size).map(lambda drawn: (drawn[0], 0, drawn[3])),
        call=large_lanes,
    ),
    taking.take_lanes: Twin(
        naive.take_lanes,
        full_lanes().map(lambda drawn: (drawn[0], *drawn[2:])),
        writes=(6, 7),
        call=lambda *a: taking.take_lanes(*a[:3], a[3].copy(), a[4].copy(), *a[5:]),
        seen=what_was_taken,
    ),
    taking.take_duals: Twin(
        naive.take_duals,
        full_lanes().map(lambda drawn: (abs(drawn[0]), *drawn[1:3], *drawn[4:])),
        writes=(6, 7),
        call=lambda *a: taking.take_duals(*a[:3], a[3].copy(), a[4].copy(), *a[5:]),
        seen=what_was_taken,
    ),
    has_start: Twin(
        lambda start, label: start.bias.size > label and start.bias[label] != -np.inf,
        resumed(problems([SQUARED_HINGE])).map(lambda problem: (problem[2], 0)),
    ),
    svm.solve_svm: Twin(
        lambda rows, labels, start, unsoft, options: best_svm(rows, labels, start, options),
        resumed(problems([SQUARED_HINGE, HINGE]) | problems([HINGE], l1=(0.3,)) | problems([HINGE], centre=0.0)).map(
            lambda p: (*p[:3], np.empty(p[0].features.size, np.float32) if p[3].l1 else None, p[3])
        ),
        writes=(3,),
        seen=lambda result, rows, labels, start, unsoft, options: objectives(
            result, rows, labels, options, **svm_form(options)
        ),
        rtol=3e-3,
        atol=1e-3,
        examples=12,
    ),
    together.solve_svm_together: Twin(
        lambda rows, starts, labels, above, options, at_once: best_svm(rows, labels, NO_START, options),
        (problems([SQUARED_HINGE]) | problems([SQUARED_HINGE], centre=0.0)).map(
            lambda p: (p[0], p[0].indptr[:-1], p[1], read_only(np.empty(0, np.int32)), *p[2:], 2)
        ),
        seen=lambda result, rows, starts, labels, above, options, at_once: objectives(result, rows, labels, options),
        rtol=3e-3,
        atol=1e-3,
        examples=12,
    ),
    passes.solve_svm_in_passes: Twin(
        lambda rows, starts, labels, options, plan, memory: best_svm(rows, labels, NO_START, options),
        st.tuples(
            problems([SQUARED_HINGE, HINGE]) | problems([SQUARED_HINGE], centre=0.0),
            st.sampled_from([1, 64, 1000]),
            st.sampled_from([0, 10**6]),
        ).map(lambda p: (p[0][0], p[0][0].indptr[:-1], *p[0][1:], passes.Plan(p[1], 20, 3000), p[2])),
        seen=lambda result, rows, starts, labels, options, plan, memory: objectives(
            result, rows, labels, options, **svm_form(options)
        ),
        rtol=3e-3,
        atol=1e-3,
        examples=12,
    ),
    resuming_together.resume_svm_together: Twin(
        lambda rows, starts, several, labels, *rest: best_svm(rows, labels, NO_START, rest[-1]),
        with_fresh_rows(standing(problems([SQUARED_HINGE]) | problems([SQUARED_HINGE], centre=0.0))),
        seen=lambda result, rows, starts, several, labels, *rest: objectives(result, rows, labels, rest[-1]),
        rtol=3e-3,
        atol=1e-3,
        examples=12,
    ),
    resuming.resume_svm: Twin(
        best_svm,
        standing(problems([SQUARED_HINGE, HINGE]) | problems([HINGE], l1=(0.3,)) | problems([HINGE], centre=0.0)),
        seen=lambda result, rows, labels, state, options: objectives(
            result, rows, labels, options, **svm_form(options)
        ),
        rtol=3e-3,
        atol=1e-3,
        examples=12,
    ),
    sweeps.descend: Twin(
        best_of_working_set,
        working_sets(problems([SQUARED_HINGE, HINGE]) | problems([HINGE], l1=(0.3,))),
        writes=(1, 2, 3),
        seen=reached,
        rtol=3e-3,
        atol=1e-3,
        examples=12,
    ),
    sweeps.sum_support: Twin(naive_sum_of_support, sums_of_support(), writes=(2,), rtol=1e-5, atol=1e-5),
    logistic.solve_logistic: Twin(
        best_logistic,
        problems([LOGISTIC], centre=np.nan) | problems([LOGISTIC], centre=0.0),
        seen=lambda *arguments: objectives(*arguments, loss="logistic"),
        rtol=2e-3,
        atol=1e-3,
        examples=15,
    ),
    l1.solve_l1: Twin(
        best_l1,
        resumed(problems([SQUARED_HINGE])).map(lambda p: (p[0], to_columns(p[0], p[0].features.size), *p[1:])),
        seen=lambda result, rows, columns, labels, start, options: objectives(
            result, rows, labels, options, l1=1.0, l2=0.0
        ),
        rtol=3e-3,
        atol=2e-3,
        examples=12,
    ),
    l1_logistic.fit_l1_logistic: Twin(
        best_separator, separators(), writes=(5, 6), seen=read_separator, rtol=2e-3, atol=1e-3, examples=15
    ),
}
