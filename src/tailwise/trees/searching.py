"""Beam searches over blocks of rows: for the best labels, and for the rows that come to a node."""

from __future__ import annotations

from math import ceil

import numpy as np
from scipy import sparse

from tailwise.base import TopK
from tailwise.kernels.arrays import frozen, read_only
from tailwise.kernels.sparse.csr import csr_parts, spread
from tailwise.kernels.trees.beam import Search, search_trees
from tailwise.kernels.trees.chunks import Chunks
from tailwise.kernels.trees.merging import merge_trees
from tailwise.parallel import count_jobs, falling_blocks, map_blocks, map_shards, row_blocks
from tailwise.trees.structure import LabelTree
from tailwise.trees.visiting import Upper

_LEAST_ROWS, _MOST_ROWS = 64, 2048
"""Of a block: many share what is prepared for a node, and the blocks of all threads end at about the same time."""
_VISITORS_A_BLOCK = 1 << 15
_LEAST_VISITORS, _BLOCKS = 256, 48
"""A block of visitors has 256 at least, but there are 48 blocks of all trees if there can be: many workers share them,
and the more rows a block has, the more share what is read of a node."""
_SCORES_A_BLOCK = 1 << 25
_SHARE_ABOVE = 0.7
"""Of the beam, that visitors keep at a depth where most nodes lead to others alone: the rest of ten nodes leads to a
twenty-fifth of the nodes that are found. Inside training rows of three data sets with such trees no metric of `Bonsai`
and `Parabel` fell by more than 0.14 points, and their means by 0.03; with half of the beam P@3 fell by 0.6 on one."""


def find_labels(
    chunks: Chunks,
    X: sparse.csr_array,
    k: int,
    loss: int,
    beam: int,
    path_weight: float,
    *,
    n_jobs: int | None,
) -> TopK:
    """The ``k`` most probable labels of each row.

    Time: ``beam`` nodes a depth, tree and row.
    """
    labels = np.empty((X.shape[0], k), np.int32)
    scores = np.empty((X.shape[0], k), np.float32)
    rows, search = csr_parts(X), Search(loss, read_only(np.array([beam])), float(path_weight))

    def search_block(block: tuple[int, int]) -> None:
        found = search_trees(chunks, search, rows, X.shape[1], block, False)
        merge_trees(*found, chunks.roots.shape[0], block, labels, scores)

    if X.shape[0] == 1:
        # Threads and progress bars would take longer to prepare than the search takes.
        search_block((0, 1))
    else:
        n_threads, most = count_jobs(n_jobs), _rows_at_once(chunks, beam, _MOST_ROWS)
        n_blocks = n_threads * max(1, -(-X.shape[0] // (n_threads * most)))
        size = min(most, max(_LEAST_ROWS, -(-X.shape[0] // n_blocks)))
        map_blocks(search_block, row_blocks(X.shape[0], size), n_jobs=n_jobs)
    return TopK(labels, scores)


def find_visitors(
    upper: list[Upper], trees: list[LabelTree], X: sparse.csr_array, loss: int, beam: int, *, n_jobs: int | None
) -> list[sparse.csr_array]:
    """For each tree the rows that the beam brings to each node that holds labels: CSR (n_nodes, n_samples).

    Memory: 8 bytes for each of up to ``beam`` nodes a depth and row.
    """
    rows = csr_parts(X)
    holds = [tree.labels_of_nodes()[own.nodes] > 0 for own, tree in zip(upper, trees, strict=True)]
    # Read-only as those of a model, so that one compiled search serves both.
    chunks = [frozen(own.chunks) for own in upper]
    beams = [_beams_by_depth(own, held, min(beam, own.bits.size)) for own, held in zip(chunks, holds, strict=True)]

    def visit_block(block: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
        number, first, last = block
        search = Search(loss, beams[number], 1.0, upper[number].above)
        nodes, _, begin, _ = search_trees(chunks[number], search, rows, X.shape[1], (first, last), True)
        n_nodes = np.diff(begin.reshape(-1, last - first + 1), axis=1)
        visitors = np.repeat(np.tile(np.arange(first, last, dtype=np.int32), len(n_nodes)), n_nodes.ravel())
        held = holds[number][nodes]
        return visitors[held], upper[number].nodes[nodes[held]].astype(np.int32)

    at_once = min(_VISITORS_A_BLOCK, max(_LEAST_VISITORS, len(trees) * X.shape[0] // _BLOCKS))
    blocks = [
        (number, *block)
        for number, own in enumerate(chunks)
        for block in falling_blocks(X.shape[0], _rows_at_once(own, beam, at_once))
    ]
    visits = map_shards(visit_block, blocks, n_jobs=n_jobs, weight=lambda block: block[2] - block[1])
    found, nobody = [], (np.empty(0, np.int32), np.empty(0, np.int32))
    for number, tree in enumerate(trees):
        own = [nobody, *(visit for block, visit in zip(blocks, visits, strict=True) if block[0] == number)]
        visitor, node = (np.concatenate(part) for part in zip(*own, strict=True))
        pairs = (np.ones(node.size, np.bool_), (node, visitor))
        found.append(sparse.csr_array(pairs, shape=(tree.n_nodes, X.shape[0])))
    return found


def _beams_by_depth(chunks: Chunks, holds: np.ndarray, beam: int) -> np.ndarray:
    """How many nodes a row keeps at each depth, (n_depths,): fewer where most lead to others alone."""
    level, found = chunks.roots, []
    while level.size:
        _, edges = spread(chunks.first_edge[level], np.diff(chunks.first_edge)[level])
        level = chunks.target[edges]
        level = level[level >= 0]
        if level.size:
            found.append(beam if holds[level].mean() > 0.5 else ceil(_SHARE_ABOVE * beam))
    return read_only(np.array(found or [beam]))


def _rows_at_once(chunks: Chunks, beam: int, most: int) -> int:
    """As many rows as share the reading of a node without filling memory with their scores."""
    widths = np.diff(chunks.first_edge)
    at_roots, elsewhere = widths[chunks.roots].max(initial=1), np.delete(widths, chunks.roots).max(initial=1)
    a_row = min(chunks.target.shape[0], max(int(at_roots), beam * int(elsewhere)) * chunks.roots.shape[0])
    return max(1, min(most, _SCORES_A_BLOCK // max(1, a_row)))
