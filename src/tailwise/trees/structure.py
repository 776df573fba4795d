"""The shape of a label tree, however it came to be: grown by clustering, or brought by the user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tailwise.errors import InvalidInput

MAX_CHILDREN = 2**16 - 1


class LabelTree(NamedTuple):
    """A tree whose leaves are labels. Nodes are numbered from the root, level by level; the root is node 0.

    The edges below node v are ``first_edge[v]:first_edge[v + 1]``. ``target[e]`` is the node that edge e leads to, or
    ``~label`` (negative) where it ends in a label. ``order`` lists the labels so that those below edge e are
    ``order[start[e]:stop[e]]``, and those below a node are those of its edges, one after the other.
    """

    first_edge: np.ndarray
    target: np.ndarray
    order: np.ndarray
    start: np.ndarray
    stop: np.ndarray

    @property
    def n_nodes(self) -> int:
        """How many nodes have children; labels are not counted."""
        return self.first_edge.shape[0] - 1

    def edges(self, node: int) -> tuple[int, int]:
        """The half-open range of edges below ``node``."""
        return int(self.first_edge[node]), int(self.first_edge[node + 1])

    def labels_of_nodes(self) -> np.ndarray:
        """How many edges of each node end in a label, (n_nodes,)."""
        node_of = np.repeat(np.arange(self.n_nodes), np.diff(self.first_edge))
        return np.bincount(node_of[self.target < 0], minlength=self.n_nodes)


def tree_from_nested(root: Any) -> LabelTree:
    """A tree from nested lists: an integer is a label, a list is a node, an integer array a node of labels.

    >>> tree = tree_from_nested([np.array([4, 2]), [0, np.array([1, 3])]])
    >>> tree.first_edge, tree.target
    (array([0, 2, 4, 6, 8], dtype=int32), array([ 1,  2, -5, -3, -1,  3, -2, -4], dtype=int32))
    >>> tree.order
    array([4, 2, 0, 1, 3], dtype=int32)
    """
    nodes, targets = [root], []
    for node in nodes:
        if isinstance(node, np.ndarray):
            targets.append(node)
            continue
        below = np.empty(len(node), np.int32)
        for j, item in enumerate(node):
            if isinstance(item, list | np.ndarray):
                below[j] = ~len(nodes)
                nodes.append(item)
            else:
                below[j] = item
        targets.append(below)
    first_edge = np.append(0, np.cumsum([len(below) for below in targets])).astype(np.int32)
    # Labels are what they are so far, and nodes negative.
    target = ~np.concatenate(targets).astype(np.int32)
    return tree_from_edges(first_edge, target)


def tree_from_edges(first_edge: np.ndarray, target: np.ndarray) -> LabelTree:
    """A tree from where its edges lead to, nodes numbered level by level."""
    return LabelTree(first_edge, target, *_label_ranges(first_edge, target))


def _label_ranges(first_edge: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    edge_to = np.append(-1, np.flatnonzero(target >= 0))  # nodes are numbered in the order of the edges to them
    levels = [(0, 1)]
    while levels[-1][0] < levels[-1][1]:
        first, last = first_edge[list(levels[-1])]
        levels.append((levels[-1][1], levels[-1][1] + int(np.count_nonzero(target[first:last] >= 0))))
    size, start = np.ones(target.size, np.int64), np.zeros(target.size, np.int64)
    for first, last in levels[:0:-1]:
        before, ends = _before(size, first_edge, first, last)
        size[edge_to[first:last]] = np.diff(before[ends])
    for first, last in levels[:-1]:
        before, ends = _before(size, first_edge, first, last)
        begin = start[edge_to[first:last]] if first else 0
        own = slice(first_edge[first], first_edge[last])
        start[own] = before[:-1] + np.repeat(begin - before[ends[:-1]], np.diff(ends))
    order = np.empty((target < 0).sum(), np.int32)
    order[start[target < 0]] = ~target[target < 0]
    return order, start, start + size


def _before(size: np.ndarray, first_edge: np.ndarray, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """The sum of ``size`` before each edge of nodes ``first:last``, and where in that those of each node begin."""
    ends = first_edge[first : last + 1]
    return np.append(0, np.cumsum(size[ends[0] : ends[-1]])), ends - ends[0]


def tree_from_user(tree: Any, label_counts: np.ndarray) -> LabelTree:
    """The tree a user brought, without the labels that have no training rows and the nodes this leaves bare.

    ``tree`` is either a *parent array*: entry l is the parent of label l, entries after the labels are the parents of
    nodes that are not labels, -1 stands for the root; a label that is a parent becomes a node that also holds the
    label itself. Or *groups*: nested lists of labels, each label once.

    >>> tree_from_user([-1, 0, 0], np.array([1, 1, 1])).order
    array([0, 1, 2], dtype=int32)
    >>> tree_from_user([[0, 2], [1]], np.array([1, 1, 1])).target
    array([ 1, -2, -1, -3], dtype=int32)
    """
    n_labels = label_counts.shape[0]
    nested = _nest_parents(tree, n_labels) if _is_parent_array(tree) else _check_groups(tree, n_labels)
    built = tree_from_nested(prune(nested, label_counts))
    widest = int(np.diff(built.first_edge).max(initial=0))
    if widest > MAX_CHILDREN:
        raise InvalidInput(
            f"tree has a node with {widest:,} children; give it at most {MAX_CHILDREN:,} by grouping them"
        )
    return built


def _is_parent_array(tree: Any) -> bool:
    if isinstance(tree, np.ndarray):
        return tree.ndim == 1 and np.issubdtype(tree.dtype, np.integer)
    listed = isinstance(tree, Sequence) and not isinstance(tree, str | bytes)
    return listed and len(tree) > 0 and all(isinstance(item, int | np.integer) for item in tree)


def _nest_parents(tree: Any, n_labels: int) -> list[Any]:
    parents = np.asarray(tree, np.int64)
    n = parents.shape[0]
    if n < n_labels:
        raise InvalidInput(f"tree has {n:,} parents but Y has {n_labels:,} labels; give each label a parent, or -1")
    wrong = np.flatnonzero((parents < -1) | (parents >= n))
    if wrong.size:
        raise InvalidInput(f"tree[{wrong[0]}]={parents[wrong[0]]} is not a node; a parent is in 0…{n - 1}, or -1")
    below: dict[int, list[int]] = {}
    for child, parent in enumerate(parents.tolist()):
        below.setdefault(parent, []).append(child)
    nested: dict[int, list[Any]] = {
        node: [node] if 0 <= node < n_labels else [] for node in [*below, *range(n_labels, n)]
    }
    nested.setdefault(-1, [])
    reached, pending = 0, [-1]
    while pending:
        node = pending.pop()
        for child in below.get(node, ()):
            reached += 1
            nested[node].append(nested.get(child, child))
            if child in below:
                pending.append(child)
    if reached < n:
        raise InvalidInput(f"tree has a cycle: {n - reached:,} of its {n:,} nodes do not lead up to the root (-1)")
    return nested[-1]


def _check_groups(tree: Any, n_labels: int) -> list[Any]:
    if not isinstance(tree, Sequence | np.ndarray) or isinstance(tree, str | bytes):
        raise InvalidInput(f"tree={tree!r} is neither an array of parents nor nested lists of labels")
    counts = np.zeros(n_labels, np.int64)

    def check(item: Any) -> Any:
        if isinstance(item, int | np.integer) and not isinstance(item, bool):
            if not 0 <= item < n_labels:
                raise InvalidInput(f"tree holds the label {item}, but Y has the labels 0…{n_labels - 1}")
            counts[item] += 1
            return int(item)
        if isinstance(item, Sequence | np.ndarray | set | frozenset) and not isinstance(item, str):
            return [check(inner) for inner in (sorted(item) if isinstance(item, set | frozenset) else item)]
        raise InvalidInput(f"tree holds {item!r}; groups are nested lists of label numbers")

    nested = check(tree)
    wrong = np.flatnonzero(counts != 1)
    if wrong.size:
        raise InvalidInput(
            f"tree holds label {wrong[0]} {counts[wrong[0]]} times ({wrong.size:,} labels are not there exactly once); "
            "list each label in one group"
        )
    return nested


def prune(nested: list[Any], label_counts: np.ndarray) -> list[Any]:
    """Without unseen labels, empty nodes and nodes of one child, which would ask a question with one answer."""

    def pruned(item: Any) -> Any:
        if not isinstance(item, list):
            return item if label_counts[item] > 0 else None
        kept = [inner for inner in map(pruned, item) if inner is not None]
        return kept[0] if len(kept) == 1 else kept or None

    root = pruned(nested)
    return root if isinstance(root, list) else [] if root is None else [root]
