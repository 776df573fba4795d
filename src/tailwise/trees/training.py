"""Training the classifiers of label trees: each edge against its siblings, on the rows that reach their node.

The blocks of all trees (:mod:`.blocks`) are one site: first those of edges between nodes, then those of edges to
labels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.dual_state import DualStore
from tailwise.kernels.arrays import frozen, read_only
from tailwise.kernels.solvers.problems import Labels, Rows, Support, Weights, pack_rows
from tailwise.kernels.sparse.csr import Csr, csr_parts
from tailwise.kernels.trees.chunks import Chunks
from tailwise.kernels.trees.nodes import Below, Scratch, gather_node, scratch_for
from tailwise.kernels.trees.standing import gather_nodes
from tailwise.memory import LARGE, memory_apart
from tailwise.parallel import count_jobs, map_shards
from tailwise.runs import kept
from tailwise.trees.blocks import (
    Block,
    Part,
    Run,
    cost_of,
    cut_parts,
    label_parts,
    runs_of_neighbours,
    size_of,
    upper_parts,
)
from tailwise.trees.going_on import GoingOn, in_rows_of_all, split
from tailwise.trees.packing import Copied, Trained, by_nodes, join_trees, pack_nodes
from tailwise.trees.structure import LabelTree
from tailwise.trees.updating import Kept
from tailwise.trees.visiting import Upper, is_one_node, upper_levels, upper_nodes

Solve = Callable[..., Weights]
"""Of rows and labels, and where edges are of several levels; or of what :func:`gather_nodes` finds and new rows."""
Visit = Callable[[list[Upper]], list[sparse.csr_array]]

_LEAST_EDGES = 16
"""Of a block: every block scans all rows of its node, and for sixteen edges at the price of one."""
_EDGES_A_PASS = 512
"""The same where rows are on disk: a pass over the rows then serves them all."""
_NOBODY = np.empty(0, np.int32)


class Planted(NamedTuple):
    """A tree to be trained."""

    tree: LabelTree
    positive_costs: np.ndarray
    """(n_edges,): C of the positives of each edge"""
    negative_costs: np.ndarray
    """(n_edges,): C of its negatives"""
    old: Kept | None = None
    """edges that stay as they are"""
    going_on: GoingOn | None = None
    """how edges go on from where their duals stood; None where all are solved from the start"""


def train_trees(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    planted: list[Planted],
    solve: Solve,
    *,
    weight: np.ndarray | None = None,
    visit: Visit | None = None,
    duals: DualStore | None = None,
    in_levels: bool = False,
    go_on: Solve | None = None,
    n_jobs: int | None = None,
    description: str = "",
) -> Chunks:
    """The classifiers of every edge of each tree, pruned and packed.

    An edge's positives are the rows with a label below the edge, its negatives the other rows with a label below its
    node. ``visit``, if given, gets the classifiers of the edges between nodes and returns for each tree a CSR
    (n_nodes, n_samples) of the rows that a search brings to each node: the edges to labels have these as negatives too.
    Costs are times the row's ``weight``, if given. ``duals``, if given, takes where the dual of every edge stands, the
    trees' edges one after the other. ``in_levels`` says that ``solve`` knows edges of several levels (``above``).
    Memory: the result twice, and the rows of one node a thread.
    """
    all_rows, n_features = csr_parts(X), X.shape[1]
    counted = np.ones(X.shape[0]) if weight is None else np.asarray(weight, np.float64)
    carried = Y.T.tocsr()
    below = [_below(one, carried, counted) for one in planted]
    trees = [one.tree for one in planted]
    visitors: list[sparse.csr_array] | None = None

    # Rows on disk are copied where those of a node fit into memory, and left there otherwise.
    memory = memory_apart(X, count_jobs(n_jobs))
    if memory is not None:
        memory //= 2  # the weights of edges between nodes stay in memory until they are packed
    # Blocks follow from it, and processes of a run may have other memories.
    far = X.data.nbytes >= LARGE and kept(lambda: memory is not None)
    least_edges = _EDGES_A_PASS if far else _LEAST_EDGES
    gathered = all_rows if memory is None else _without_values(all_rows)

    @cache
    def whole() -> Rows:
        return pack_rows(all_rows, n_features, weights=counted)

    def span_of(part: Part) -> tuple[int, int]:
        first, last = trees[part.tree].edges(part.node)
        return int(below[part.tree].start[first]), int(below[part.tree].stop[last - 1])

    def came_to(part: Part) -> np.ndarray:
        return _NOBODY if visitors is None else _visitors_of(visitors[part.tree], part.node)

    def train_parts(block: Block) -> list[Weights]:
        scratch = scratch_for(X.shape[0], n_features)
        going = planted[block[0].tree].going_on if block else None
        standing = [part for part in block if going is not None and going.any_stood(part.edges)]
        gone_on = dict(zip((part.node for part in standing), go_on_with(standing, scratch), strict=True))
        return [gone_on[part.node] if part.node in gone_on else train_part(part, scratch) for part in block]

    def train_part(part: Part, scratch: Scratch) -> Weights:
        here, rows, labels = gather_node(gathered, below[part.tree], span_of(part), part.edges, came_to(part), scratch)
        if memory is not None:
            problem = pack_rows(all_rows, n_features, here, counted[here], memory)
        else:
            problem = whole() if here.size == X.shape[0] else frozen(Rows(*rows))
        levels = {} if part.above is None else {"above": part.above}
        found = solve(problem, Labels(*labels), **levels)
        return found._replace(support=None) if duals is None else in_rows_of_all(found, here, X.shape[0])

    def go_on_with(parts: list[Part], scratch: Scratch) -> list[Weights]:
        """Of one tree."""
        if not parts:
            return []
        going, edges = planted[parts[0].tree].going_on, [part.edges for part in parts]
        assert going is not None and go_on is not None
        here, rows, starts, several, labels, stood = gather_nodes(
            all_rows,
            whole().squares,
            below[parts[0].tree],
            np.array([span_of(part) for part in parts]),
            edges,
            None if visitors is None else [came_to(part) for part in parts],
            going.stood(np.concatenate(edges)),
            scratch,
        )
        found = go_on(rows, starts, several, labels, stood, read_only(going.is_fresh[here]))
        return split(in_rows_of_all(found, here, X.shape[0]), several.first_label)

    def finish(part: Part, weights: Weights) -> tuple[Chunks, Support | None] | Weights:
        """The node with its edges to nodes; the weights alone where others have the rest of its edges to labels."""
        own = [(part.edges, weights), *_staying(planted[part.tree], part.node)]
        if sum(edges.size for edges, _ in own) < n_labels_of[part.tree][part.node]:
            return weights
        node = pack_nodes(trees[part.tree], [upper[part.tree][part.node] + own], n_features)
        return node, None if duals is None else weights.support

    def train_leaves(
        block: Block,
    ) -> tuple[Chunks, list[Support | None]] | list[tuple[Chunks, Support | None] | Weights]:
        """Nodes are packed where they were trained."""
        tree = block[0].tree
        if not is_leaf[tree][block[0].node]:
            return [finish(part, weights) for part, weights in zip(block, train_parts(block), strict=True)]
        some = [part for part in block if part.edges.size]
        solved = dict(zip((part.node for part in some), train_parts(some), strict=True))
        supports = [solved[part.node].support for part in some]

        def classifiers(part: Part) -> list[Trained] | Copied:
            if part.edges.size:
                return [(part.edges, solved[part.node]), *_staying(planted[tree], part.node)]
            return _unchanged(planted[tree], part.node, n_features) or _staying(planted[tree], part.node)

        return pack_nodes(trees[tree], map(classifiers, block), n_features), supports if duals is not None else []

    def train(function: Callable[[Block], Any], blocks: list[Block], what: str) -> list[Any]:
        return map_shards(
            function,
            blocks,
            n_jobs=n_jobs,
            description=f"{description}: {what}" if description else "",
            weight=cost_of,
        )

    n_labels_of = [tree.labels_of_nodes() for tree in trees]
    is_leaf = [own == np.diff(tree.first_edge) for tree, own in zip(trees, n_labels_of, strict=True)]
    chosen = [_chosen(one) for one in planted]
    upper_blocks = cut_parts(
        [
            part
            for number, own in enumerate(below)
            for part in upper_parts(number, trees[number], own, in_levels=in_levels)
        ],
        is_leaf,
        least_edges,
    )
    upper: list[dict[int, list[Trained]]] = [{} for _ in trees]
    stand: list[list[tuple[np.ndarray, Support | None]]] = [[] for _ in trees]
    levels: list[dict[int, tuple[Part, Weights]]] = [{} for _ in trees]
    for block, found in zip(upper_blocks, train(train_parts, upper_blocks, "nodes"), strict=True):
        for part, weights in zip(block, found, strict=True):
            for node, own in by_nodes(trees[part.tree], part.edges, weights):
                upper[part.tree].setdefault(node, []).append(own)
            stand[part.tree].append((part.edges, weights.support))
            if is_one_node(trees[part.tree], part, n_labels_of[part.tree]):
                levels[part.tree][part.node] = part, weights
    packed: list[dict[int, Chunks]] = [{} for _ in trees]

    def pack_run(run: Run) -> Chunks:
        own = upper[run.tree]
        return pack_nodes(trees[run.tree], (own[node] for node in range(run.first, run.last)), n_features)

    def search_in(number: int) -> Upper:
        if levels[number]:
            return upper_levels(trees[number], upper[number], levels[number], n_features, n_jobs)
        return upper_nodes(trees[number], packed[number], n_jobs)

    runs_of_nodes = [run for number, own in enumerate(upper) for run in runs_of_neighbours(number, trees[number], own)]
    for run, chunks in zip(
        runs_of_nodes, map_shards(pack_run, runs_of_nodes, n_jobs=n_jobs, weight=size_of), strict=True
    ):
        packed[run.tree][run.first] = chunks
    searched = [] if visit is None else [search_in(number) for number in range(len(trees))]
    for trained, labels in zip(upper, n_labels_of, strict=True):
        # What is packed for good is not needed any more, and weights take twice its room.
        for node in [node for node in trained if not labels[node]]:
            del trained[node]
    if visit is not None:
        visitors = visit(searched)
    leaf_blocks = cut_parts(
        [
            part
            for number, one in enumerate(planted)
            for part in label_parts(
                number,
                one.tree,
                below[number],
                is_leaf[number],
                chosen[number] & (one.tree.target < 0),
                None if visitors is None else visitors[number],
            )
        ],
        is_leaf,
        least_edges,
    )
    left = [set(np.flatnonzero(~leaf & (own > 0)).tolist()) for leaf, own in zip(is_leaf, n_labels_of, strict=True)]
    for block, found in zip(leaf_blocks, train(train_leaves, leaf_blocks, "labels"), strict=True):
        tree = block[0].tree
        if is_leaf[tree][block[0].node]:
            packed[tree][block[0].node], supports = found
            solved = (part.edges for part in block if part.edges.size)
            stand[tree] += zip(solved, supports, strict=bool(supports))
            continue
        for part, result in zip(block, found, strict=True):
            if isinstance(result, Weights):
                upper[tree][part.node].append((part.edges, result))
                stand[tree].append((part.edges, result.support))
                continue
            packed[tree][part.node], support = result
            stand[tree].append((part.edges, support))
            left[tree].remove(part.node)
    if duals is not None:
        _keep_duals(duals, planted, stand)
    for one, own_nodes, trained, nodes in zip(planted, packed, upper, left, strict=True):
        for node in sorted(nodes):
            own_nodes[node] = pack_nodes(one.tree, [trained[node] + _staying(one, node)], n_features)
    return join_trees([[own[node] for node in sorted(own)] for own in packed], n_jobs=n_jobs)


def _without_values(X: Csr) -> Csr:
    return csr_parts(Csr(np.zeros_like(X.indptr), X.indices[:0], X.data[:0]))


def _below(one: Planted, carried: sparse.csr_array, counted: np.ndarray) -> Below:
    rows = carried[one.tree.order]
    return frozen(
        Below(
            one.tree.start.astype(np.int64),
            one.tree.stop.astype(np.int64),
            rows.indptr.astype(np.int64),
            rows.indices.astype(np.int32, copy=False),
            np.asarray(one.positive_costs, np.float64),
            np.asarray(one.negative_costs, np.float64),
            counted,
        )
    )


def _visitors_of(visitors: sparse.csr_array, node: int) -> np.ndarray:
    return visitors.indices[visitors.indptr[node] : visitors.indptr[node + 1]]


def _chosen(one: Planted) -> np.ndarray:
    """(n_edges,) bool: the edges that are solved."""
    return np.ones(one.tree.target.size, bool) if one.old is None else ~one.old.stays


def _keep_duals(
    duals: DualStore,
    planted: list[Planted],
    stand: list[list[tuple[np.ndarray, Support | None]]],
) -> None:
    """Where the dual of every edge stands; those that were not solved stand where they stood."""
    shift = 0
    for one, solved in zip(planted, stand, strict=True):
        for edges, support in solved:
            duals.add(shift + edges, support)
        stays = np.flatnonzero(~_chosen(one))
        if stays.size:
            duals.add(shift + stays, None if one.going_on is None else one.going_on.stood(stays))
        shift += one.tree.target.size


def _staying(one: Planted, node: int) -> list[Trained]:
    """The node's edges to labels that stay as they are."""
    if one.old is None:
        return []
    first, last = one.tree.edges(node)
    return list(one.old.weights(first + np.flatnonzero(one.old.stays[first:last])))


def _unchanged(one: Planted, node: int, n_features: int) -> Copied | None:
    """The node as it was, if it has not changed."""
    return None if one.old is None else one.old.whole(np.arange(*one.tree.edges(node)), n_features)
