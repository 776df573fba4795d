"""From the classifiers of blocks to whole trees: what has been trained is packed node by node, and laid end to end."""

from __future__ import annotations

import numpy as np

from tailwise.dual_state import DualStore
from tailwise.kernels.solvers.problems import Support, Weights
from tailwise.kernels.trees.chunks import Chunks
from tailwise.parallel import map_shards
from tailwise.trees.blocks import Block, Part, Run, runs_of_neighbours, size_of
from tailwise.trees.packing import Trained, by_nodes, join_trees, pack_nodes
from tailwise.trees.problems import Planted
from tailwise.trees.visiting import Upper, is_one_node, upper_levels, upper_nodes

PackedLabels = tuple[Chunks, Support | None] | list[tuple[Chunks, Support | None] | Weights]
"""A run of nodes of labels, and their duals; or the same of each node that has nodes below it as well, and the weights
alone where others have the rest of its edges to labels."""


class Assembly:
    """What has been trained of each tree, until all of it is there.

    Duals go to ``duals``, if it is given, the trees' edges one after the other.
    """

    def __init__(self, planted: list[Planted], n_features: int, duals: DualStore | None, n_jobs: int | None) -> None:
        self._planted, self._n_features, self._duals, self._n_jobs = planted, n_features, duals, n_jobs
        sizes = [one.tree.target.size for one in planted]
        self._shift = np.cumsum([0, *sizes]).tolist()
        self._n_labels = [one.tree.labels_of_nodes() for one in planted]
        self.is_leaf = [own == np.diff(one.tree.first_edge) for own, one in zip(self._n_labels, planted, strict=True)]
        """of each tree (n_nodes,) bool: nodes without nodes below them"""
        self._left = [
            set(np.flatnonzero(~leaf & (own > 0)).tolist())
            for leaf, own in zip(self.is_leaf, self._n_labels, strict=True)
        ]
        """nodes of labels and of nodes that are not yet packed for good"""
        self._upper: list[dict[int, list[Trained]]] = [{} for _ in planted]
        self._levels: list[dict[int, tuple[Part, Weights]]] = [{} for _ in planted]
        """levels of edges that a search takes for one node"""
        self._packed: list[dict[int, Chunks]] = [{} for _ in planted]

    def take_upper(self, block: Block, found: list[Weights]) -> None:
        """The classifiers of a block of edges between nodes."""
        for part, weights in zip(block.parts(), found, strict=True):
            for node, own in by_nodes(self._planted[block.tree].tree, part.edges, weights):
                self._upper[block.tree].setdefault(node, []).append(own)
            if is_one_node(self._planted[block.tree].tree, part, self._n_labels[block.tree]):
                self._levels[block.tree][part.node] = part, weights
            self._keep(block.tree, part.edges, weights.support)

    def pack_upper(self) -> None:
        """Pack all edges between nodes: for good, but for nodes that have labels too."""
        runs = [
            run
            for number, (one, own) in enumerate(zip(self._planted, self._upper, strict=True))
            for run in runs_of_neighbours(number, one.tree, own)
        ]

        def pack_run(run: Run) -> Chunks:
            own = self._upper[run.tree]
            nodes = (own[node] for node in range(run.first, run.last))
            return pack_nodes(self._planted[run.tree].tree, nodes, self._n_features)

        for run, chunks in zip(runs, map_shards(pack_run, runs, n_jobs=self._n_jobs, weight=size_of), strict=True):
            self._packed[run.tree][run.first] = chunks

    def upper(self) -> list[Upper]:
        """Of each tree the edges between nodes alone, for a search."""
        return [
            upper_levels(one.tree, trained, levels, self._n_features, self._n_jobs)
            if levels
            else upper_nodes(packed, one.tree.n_nodes, self._n_jobs)
            for one, trained, levels, packed in zip(self._planted, self._upper, self._levels, self._packed, strict=True)
        ]

    def forget_upper(self) -> None:
        """What is packed for good is not needed any more, and weights take twice its room."""
        self._levels = []
        for trained, labels in zip(self._upper, self._n_labels, strict=True):
            for node in [node for node in trained if not labels[node]]:
                del trained[node]

    def pack_labels(self, block: Block, parts: list[Part], found: list[Weights]) -> PackedLabels:
        """What becomes of a block of edges to labels, ``found`` for those of its ``parts`` that have any.

        Nodes are packed where they were trained. Writes nothing.
        """
        planted = self._planted[block.tree]
        if not self.is_leaf[block.tree][block.nodes[0]]:
            return [self._pack_node(block.tree, part, own) for part, own in zip(parts, found, strict=True)]
        solved = [(part.edges, own) for part, own in zip(parts, found, strict=True)]
        chunks = planted.repacked(block.nodes, solved, self._n_features)
        if chunks is None:
            of_node = {part.node: [own] for part, own in zip(parts, solved, strict=True)}
            nodes = (of_node.get(node, []) + planted.staying(node) for node in block.nodes.tolist())
            chunks = pack_nodes(planted.tree, nodes, self._n_features)
        return chunks, None if self._duals is None else _end_to_end([own.support for own in found])

    def _pack_node(self, tree: int, part: Part, weights: Weights) -> tuple[Chunks, Support | None] | Weights:
        own = [(part.edges, weights), *self._planted[tree].staying(part.node)]
        if sum(edges.size for edges, _ in own) < self._n_labels[tree][part.node]:
            return weights
        nodes = [self._upper[tree][part.node] + own]
        return pack_nodes(self._planted[tree].tree, nodes, self._n_features), weights.support

    def take_labels(self, block: Block, packed: PackedLabels) -> None:
        """What :meth:`pack_labels` made."""
        if not isinstance(packed, list):
            self._packed[block.tree][int(block.nodes[0])], support = packed
            self._keep(block.tree, block.edges, support)
            return
        for part, own in zip(block.parts(), packed, strict=True):
            if isinstance(own, Weights):
                self._upper[block.tree][part.node].append((part.edges, own))
                self._keep(block.tree, part.edges, own.support)
            else:
                self._packed[block.tree][part.node], support = own
                self._left[block.tree].remove(part.node)
                self._keep(block.tree, part.edges, support)

    def join(self) -> Chunks:
        """All trees, when all that is trained of them is here."""
        for number, one in enumerate(self._planted):
            stays = np.flatnonzero(~one.solved())
            if stays.size:
                self._keep(number, stays, None if one.going_on is None else one.going_on.kept(stays))
            for node in sorted(self._left[number]):
                parts = [self._upper[number][node] + one.staying(node)]
                self._packed[number][node] = pack_nodes(one.tree, parts, self._n_features)
        return join_trees([[own[node] for node in sorted(own)] for own in self._packed], n_jobs=self._n_jobs)

    def _keep(self, tree: int, edges: np.ndarray, support: Support | None) -> None:
        if self._duals is not None:
            self._duals.add(self._shift[tree] + edges, support)


def _end_to_end(supports: list[Support | None]) -> Support | None:
    """Those of parts as one; None where a solver has no dual."""
    there = [support for support in supports if support is not None]
    if len(there) < len(supports):
        return None
    if not there:
        return Support(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    counts = np.concatenate([np.diff(support.indptr) for support in there])
    positions, values = (np.concatenate(parts) for parts in zip(*(own[1:] for own in there), strict=True))
    return Support(np.append(0, np.cumsum(counts)), positions, values)
