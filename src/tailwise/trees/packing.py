"""From the classifiers of nodes to a model's chunks: nodes packed one by one, runs of them laid end to end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tailwise.kernels.arrays import frozen
from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.sparse.csr import spread
from tailwise.kernels.trees.chunks import Chunks, pack_chunk
from tailwise.kernels.trees.repacking import repack_nodes
from tailwise.parallel import gathered, map_blocks
from tailwise.runs import room
from tailwise.trees.structure import LabelTree

_STARTS = ("first_edge", "first_word", "first_bucket", "first_feature", "first_run", "first_weight")
_ARRAYS = {
    "bias": np.float32,
    "scale": np.float32,
    "bits": np.uint8,
    "words": np.uint64,
    "ranks": np.uint32,
    "directory": np.uint32,
    "features": np.int32,
    "runs": np.uint32,
    "weights": np.int8,
}
NOTHING = Weights(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32))

_BYTES_A_COPY = 1 << 22

Trained = tuple[np.ndarray, Weights]
"""Some of the edges of a node, and their classifiers."""


def by_nodes(tree: LabelTree, edges: np.ndarray, weights: Weights) -> Iterator[tuple[int, Trained]]:
    """The nodes of some edges, ascending, and what each has of these and of their classifiers."""
    node = np.searchsorted(tree.first_edge, edges, side="right") - 1
    ends = np.append(np.flatnonzero(np.diff(node)) + 1, edges.size)
    first = 0
    for last in ends.tolist():
        indptr = weights.indptr[first : last + 1]
        own = slice(indptr[0], indptr[-1])
        part = Weights(indptr - indptr[0], weights.features[own], weights.values[own], weights.bias[first:last])
        yield int(node[first]), (edges[first:last], part)
        first = last


def pack_nodes(tree: LabelTree, nodes: Iterable[list[Trained]], n_features: int) -> Chunks:
    """The chunks of some nodes of ``tree``: of each the classifiers of all its edges, or of some, in any order."""
    scratch = np.zeros((2, n_features), np.int64)
    packed: list[tuple[Any, ...]] = []
    for parts in nodes:
        own, weights = _in_order(parts)
        packed.append((own, weights.bias, *pack_chunk(weights, scratch)))
    columns: list[list[Any]] = [list(column) for column in zip(*packed, strict=True)]
    packed.clear()
    edges, biases, scale, bits, words, ranks, directory, places, runs, entries = columns
    return Chunks(
        roots=np.zeros(1, np.int32),
        first_edge=_starts(edges).astype(np.int32),
        target=tree.target[np.concatenate(edges)],
        bias=np.concatenate(biases),
        scale=np.concatenate(scale),
        bits=np.array(bits, np.uint8),
        first_word=_starts(words),
        words=np.concatenate(words),
        ranks=np.concatenate(ranks),
        first_bucket=_starts(directory),
        directory=np.concatenate(directory),
        first_feature=_starts(places),
        features=np.concatenate(places),
        first_run=_starts(runs),
        runs=np.concatenate(runs),
        first_weight=_starts(entries),
        weights=np.concatenate(entries),
    )


class Change(NamedTuple):
    """Neighbouring nodes of a tree that are packed already but for some of their edges."""

    chunks: Chunks
    nodes: np.ndarray
    """(n,) int64: which nodes of ``chunks`` they were"""
    first_number: np.ndarray
    """(n + 1,) int64 into ``number``"""
    number: np.ndarray
    """int64: which of its edges each edge that a node had is now, or -1"""
    first_solved: np.ndarray
    """(n + 1,) int64 into ``solved`` and ``children``"""
    solved: Weights
    """of edges that have other weights, or are new"""
    children: np.ndarray
    """int64: which edge of its node each of them is"""


def repack(change: Change, target: np.ndarray, bias: np.ndarray, n_features: int) -> Chunks:
    """The chunks of these nodes; ``target`` and ``bias`` are those of all their edges."""
    scratch = np.zeros((2, n_features), np.int64)
    starts, bits, *arrays = repack_nodes(*frozen(change), scratch)
    scale, words, ranks, directory, features, runs, weights = arrays
    return Chunks(
        roots=np.zeros(1, np.int32),
        first_edge=starts[0].astype(np.int32),
        target=target,
        bias=bias,
        scale=scale,
        bits=bits,
        first_word=starts[1],
        words=words,
        ranks=ranks,
        first_bucket=starts[2],
        directory=directory,
        first_feature=starts[3],
        features=features,
        first_run=starts[4],
        runs=runs,
        first_weight=starts[5],
        weights=weights,
    )


def bare_nodes(n: int) -> Chunks:
    """The chunks of ``n`` nodes without edges: where a search ends."""
    starts = {name: np.zeros(n + 1, np.int64) for name in _STARTS}
    # The one bucket of a node without features has a start and an end.
    starts |= {"first_edge": np.zeros(n + 1, np.int32), "first_bucket": 2 * np.arange(n + 1)}
    arrays = {name: np.empty(0, kind) for name, kind in _ARRAYS.items()}
    arrays |= {"bits": np.zeros(n, np.uint8), "directory": np.zeros(2 * n, np.uint32)}
    return Chunks(roots=np.zeros(1, np.int32), target=np.empty(0, np.int32), **starts, **arrays)


def join_trees(trees: list[list[Chunks]], *, n_jobs: int | None = None) -> Chunks:
    """Trees as one set of chunks, each from those of runs of its nodes, in order; nodes and edges are renumbered.

    The arrays are read-only, as those of a mapped model are, so that one compiled search serves both; within a run
    large ones lie on disk.
    """
    roots = np.cumsum([0] + [sum(run.bits.size for run in runs) for runs in trees])
    parts = [run for runs in trees for run in runs]
    shifts = np.repeat(roots[:-1], [len(runs) for runs in trees])
    target = [
        np.where(run.target >= 0, run.target + shift, run.target) for run, shift in zip(parts, shifts, strict=True)
    ]
    joined = {"roots": roots[:-1].astype(np.int32), "target": np.concatenate(target).astype(np.int32)}
    for name in _STARTS:
        starts = [getattr(part, name) for part in parts]
        ends = np.cumsum([0] + [int(own[-1]) for own in starts])
        whole = np.concatenate([[0], *(own[1:] + end for own, end in zip(starts, ends, strict=False))])
        joined[name] = whole.astype(starts[0].dtype)
    copies: list[tuple[np.ndarray, np.ndarray]] = []
    for name, kind in _ARRAYS.items():
        own = [getattr(part, name) for part in parts]
        ends = np.cumsum([array.size for array in own])
        joined[name] = room(int(ends[-1]), kind)
        copies += zip(np.split(joined[name], ends[:-1]), own, strict=True)
    map_blocks(copy_block, gathered(copies, lambda copy: copy[1].nbytes, _BYTES_A_COPY), n_jobs=n_jobs)
    return frozen(Chunks(**joined))


def copy_block(copies: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Write each second array into the first."""
    for place, array in copies:
        place[:] = array


def end_to_end(parts: list[Trained]) -> Trained:
    """The edges of some parts, one after the other, and their weights."""
    if not parts:
        return np.empty(0, np.int64), NOTHING
    if len(parts) == 1:
        return parts[0][0], parts[0][1]._replace(support=None)
    edges = np.concatenate([own for own, _ in parts])
    sizes = np.concatenate([np.diff(weights.indptr) for _, weights in parts])
    features, values, bias = (np.concatenate([weights[n] for _, weights in parts]) for n in (1, 2, 3))
    return edges, Weights(np.append(0, np.cumsum(sizes)), features, values, bias)


def _in_order(parts: list[Trained]) -> Trained:
    """The edges of a node, ascending, and their weights."""
    edges, weights = end_to_end(sorted(parts, key=lambda part: part[0][0]))
    if (np.diff(edges) > 0).all():
        return edges, weights
    order, sizes = np.argsort(edges), np.diff(weights.indptr)
    indptr, entries = spread(weights.indptr[:-1][order], sizes[order])
    return edges[order], Weights(indptr, weights.features[entries], weights.values[entries], weights.bias[order])


def _starts(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum([part.size for part in parts])]).astype(np.int64)
