"""The edges between nodes, as a search reads them that only asks which nodes of labels a row comes to.

Whole levels of edges that were solved together are one node there: a row's features are looked up once for all of
them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailwise.kernels.arrays import read_only
from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.trees.beam import NO_LEVELS
from tailwise.kernels.trees.chunks import Chunks
from tailwise.parallel import map_blocks, row_blocks
from tailwise.trees.blocks import Part
from tailwise.trees.packing import Trained, bare_nodes, join_trees, pack_nodes
from tailwise.trees.structure import LabelTree

_NODES_A_BLOCK = 64


class Upper(NamedTuple):
    """The nodes that a search goes through."""

    chunks: Chunks
    above: np.ndarray
    """As :class:`tailwise.kernels.trees.beam.Search` has it."""
    nodes: np.ndarray
    """the tree's number of each"""


def upper_nodes(packed: dict[int, Chunks], n_nodes: int, n_jobs: int | None) -> Upper:
    """All nodes of a tree, of which ``packed`` has the runs that have edges to nodes, by their first ones."""
    parts, last = [], 0
    for first in [*sorted(packed), n_nodes]:
        if first > last:
            parts.append(bare_nodes(first - last))
        if first < n_nodes:
            parts.append(packed[first])
            last = first + packed[first].bits.size
    return Upper(join_trees([parts], n_jobs=n_jobs), NO_LEVELS, np.arange(n_nodes))


def upper_levels(
    tree: LabelTree,
    trained: dict[int, list[Trained]],
    levels: dict[int, tuple[Part, Weights]],
    n_features: int,
    n_jobs: int | None,
) -> Upper:
    """The nodes without those that lie within ``levels``, each of which is one node; ``trained`` has the others."""
    within = np.zeros(tree.n_nodes, np.bool_)
    for part, _ in levels.values():
        within[_between(tree, part)] = True
    nodes = np.flatnonzero(~within)

    def classifiers(node: int) -> list[Trained]:
        return [(levels[node][0].edges, levels[node][1])] if node in levels else trained.get(node, [])

    def pack(block: tuple[int, int]) -> Chunks:
        return pack_nodes(tree, map(classifiers, nodes[slice(*block)].tolist()), n_features)

    runs = map_blocks(pack, row_blocks(nodes.size, _NODES_A_BLOCK), n_jobs=n_jobs)
    chunks = join_trees([runs], n_jobs=n_jobs)
    above = np.full(chunks.target.size, -1, np.int8)
    number = np.full(tree.n_nodes, -1, np.int32)
    number[nodes] = np.arange(nodes.size)
    for node, (part, _) in levels.items():
        first = chunks.first_edge[number[node]]
        assert part.above is not None
        above[first : first + part.above.size] = part.above
    return Upper(chunks._replace(target=read_only(number[chunks.target])), read_only(above), nodes)


def is_one_node(tree: LabelTree, part: Part, n_labels: np.ndarray) -> bool:
    """Whether ``part`` has levels of edges with no label between them; ``n_labels`` (n_nodes,) are those of nodes."""
    return part.above is not None and not n_labels[_between(tree, part)].any()


def _between(tree: LabelTree, part: Part) -> np.ndarray:
    """The nodes that lie within a part."""
    assert part.above is not None
    return tree.target[part.edges[np.unique(part.above[part.above >= 0])]]
