"""Training the classifiers of label trees: each edge against its siblings, on the rows that reach their node.

The blocks of all trees (:mod:`.blocks`) are one site: first those of edges between nodes, then those of edges to
labels. :mod:`.problems` solves them, and :mod:`.assembling` makes trees of what is solved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.dual_state import DualStore
from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.trees.chunks import Chunks
from tailwise.parallel import map_shards
from tailwise.trees.assembling import Assembly, PackedLabels
from tailwise.trees.blocks import Block, cost_of, cut_parts, label_parts, upper_parts
from tailwise.trees.problems import Planted, Problems, Solve
from tailwise.trees.visiting import Upper

Visit = Callable[[list[Upper]], list[sparse.csr_array]]


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
    problems = Problems(X, Y, planted, solve, go_on=go_on, weight=weight, keeps_duals=duals is not None, n_jobs=n_jobs)
    trees = Assembly(planted, X.shape[1], duals, n_jobs)
    goes_on = any(one.going_on is not None for one in planted)

    def train(function: Callable[[Block], Any], parts: list[Block], what: str) -> list[tuple[Block, Any]]:
        blocks = cut_parts(parts, trees.is_leaf, problems.least_edges, go_on=goes_on)
        told = f"{description}: {what}" if description else ""
        return list(
            zip(blocks, map_shards(function, blocks, n_jobs=n_jobs, description=told, weight=cost_of), strict=True)
        )

    def train_nodes(block: Block) -> list[Weights]:
        return problems.solve(block.tree, block.parts())

    def train_labels(block: Block) -> PackedLabels:
        parts = [part for part in block.parts() if part.edges.size]
        return trees.pack_labels(block, parts, problems.solve(block.tree, parts))

    inner = [
        upper_parts(number, one.tree, below, in_levels=in_levels)
        for number, (one, below) in enumerate(zip(planted, problems.below, strict=True))
    ]
    for block, found in train(train_nodes, inner, "nodes"):
        trees.take_upper(block, found)
    trees.pack_upper()
    searched = [] if visit is None else trees.upper()
    trees.forget_upper()
    if visit is not None:
        problems.visitors = visit(searched)
    outer = [
        label_parts(
            number,
            one.tree,
            problems.below[number],
            trees.is_leaf[number],
            one.solved() & (one.tree.target < 0),
            None if problems.visitors is None else problems.visitors[number],
        )
        for number, one in enumerate(planted)
    ]
    for block, packed in train(train_labels, outer, "labels"):
        trees.take_labels(block, packed)
    return trees.join()
