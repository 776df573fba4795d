import time

import numpy as np
import pytest
from contracts import make_rows
from scipy import sparse

import tailwise
from tailwise import memory
from tailwise.data.mapped import read_rows, write_rows
from tailwise.kernels.solvers.problems import Weights
from tailwise.kernels.solvers.together import bytes_at_once
from tailwise.trees import assembling, blocks, training
from tailwise.trees.blocks import runs_of_neighbours
from tailwise.trees.packing import bare_nodes
from tailwise.trees.problems import Planted
from tailwise.trees.structure import tree_from_nested
from tailwise.trees.training import train_trees
from tailwise.trees.visiting import upper_nodes


@pytest.mark.parametrize("negatives", ["beam", "siblings"])
def test_the_trees_of_a_model_are_trained_side_by_side(negatives, tmp_path):
    X, Y = make_rows()
    sites = []
    for n_trees in (1, 3):
        with tailwise.workdir(tmp_path / str(n_trees)):
            tailwise.Bonsai(n_trees, max_leaf=8, max_depth=2, negatives=negatives, random_state=0).fit(X, Y)
        sites.append(len(list((tmp_path / str(n_trees)).glob("job-*/site-*"))))
    assert sites[0] == sites[1]


@pytest.mark.parametrize(("room_for", "at_a_time"), [(0.5, 1), (2.0, 2), (100.0, 3)])
def test_as_many_nodes_are_solved_at_a_time_as_memory_serves(tmp_path, monkeypatch, room_for, at_a_time):
    X, Y = make_rows()
    write_rows(tmp_path / "a.rows", [(X, Y)], n_features=X.shape[1], n_labels=Y.shape[1])
    mapped, carried = read_rows(tmp_path / "a.rows")
    tree = tree_from_nested([[label] for label in range(Y.shape[1])])
    costs, working, most = np.ones(tree.target.size), [], []

    def solve(rows, labels):
        working.append(rows)
        time.sleep(0.005)
        most.append(len(working))
        working.pop()
        return nothing(rows, labels)

    monkeypatch.setattr(memory, "_SHARE", 0.0)
    needed = bytes_at_once(*X.shape)
    monkeypatch.setattr(memory, "free_memory", lambda: int(2 * needed * room_for / memory._TAKEN) + 100)
    train_trees(mapped, carried, [Planted(tree, costs, costs)], solve, n_jobs=3)
    assert max(most) == at_a_time


def nothing(rows, labels):
    n = labels.indptr.size - 1
    return Weights(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), np.zeros(n, np.float32))


def test_dear_nodes_are_cut_and_cheap_ones_share_a_block(monkeypatch):
    """A root over 40 nodes of two labels: its edges are cut into blocks of sixteen, nodes of labels come in runs."""
    monkeypatch.setattr(blocks, "_BLOCKS", 4)
    tree = tree_from_nested([[2 * node, 2 * node + 1] for node in range(40)])
    Y = sparse.csr_array(np.eye(80, dtype=np.float32))
    costs = np.ones(tree.target.size)
    sizes = []

    def solve(rows, labels):
        sizes.append((rows.squares.size, labels.indptr.size - 1))
        return nothing(rows, labels)

    maps = []
    whole = training.map_shards
    for module in (training, assembling):
        monkeypatch.setattr(
            module, "map_shards", lambda function, own, **how: maps.append(own) or whole(function, own, **how)
        )
    chunks = train_trees(sparse.csr_array(np.eye(80, dtype=np.float32)), Y, [Planted(tree, costs, costs)], solve)
    upper, packed, leaves = maps
    assert [block.edges.size for block in upper] == [16, 16, 8]
    assert all(block.nodes.tolist() == [0] for block in upper)
    assert [(run.first, run.last) for run in packed] == [(0, 1)]
    assert 4 <= len(leaves) <= 5 and sum(block.nodes.size for block in leaves) == 40
    assert all((np.diff(block.nodes) == 1).all() for block in leaves)
    assert sizes.count((80, 16)) == 2 and sizes.count((80, 8)) == 1 and sizes.count((2, 2)) == 40
    np.testing.assert_array_equal(chunks.target, tree.target)
    np.testing.assert_array_equal(chunks.first_edge, tree.first_edge)


def test_the_last_blocks_are_smaller():
    n = 4_000
    costs = np.ones(n)
    nodes, edges = np.arange(n), np.arange(n)
    parts = blocks.Block(0, nodes, np.arange(n + 1), edges, np.full(n, -1, np.int32), costs)
    cut = blocks.cut_parts([parts], [np.ones(n, bool)], 16)
    sizes = [block.nodes.size for block in cut]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] >= 3 * sizes[-2]
    np.testing.assert_array_equal(np.concatenate([block.edges for block in cut]), edges)


def test_levels_of_narrow_nodes_are_trained_together():
    """Four levels of two edges each over nodes of labels: three together, and those below each of its ends alone."""
    nested = [[2 * node, 2 * node + 1] for node in range(16)]
    while len(nested) > 2:
        nested = [nested[n : n + 2] for n in range(0, len(nested), 2)]
    tree = tree_from_nested(nested)
    costs = np.ones(tree.target.size)
    X = sparse.csr_array(np.eye(32, dtype=np.float32))
    found = []

    def solve(rows, labels, above=None):
        found.append((rows.squares.size, [] if above is None else above.tolist()))
        return nothing(rows, labels)

    chunks = train_trees(X, X, [Planted(tree, costs, costs)], solve, in_levels=True, n_jobs=1)
    levels = [-1, -1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert found == [(32, levels)] + 8 * [(4, [])] + 16 * [(2, [])]
    np.testing.assert_array_equal(chunks.target, tree.target)


def test_nodes_are_packed_in_runs_that_labels_interrupt(monkeypatch):
    """Nodes 1 to 4 lie below the root; node 2 has a label beside its nodes, node 4 has labels alone."""
    tree = tree_from_nested([[[0, 1], [2, 3]], [[4, 5], [6, 7], 8], [[9, 10], [11, 12]], [13, 14]])
    monkeypatch.setattr(blocks, "_BLOCKS", 1)
    trained = {node: [(np.arange(*tree.edges(node)), weights_of(2))] for node in range(4)}
    runs = runs_of_neighbours(0, tree, trained)
    assert [(run.first, run.last, run.size) for run in runs] == [(0, 2, 4), (2, 3, 2), (3, 4, 2)]
    upper = upper_nodes({0: bare_nodes(2), 2: bare_nodes(1), 3: bare_nodes(1)}, tree.n_nodes, None)
    assert upper.chunks.bits.size == upper.nodes.size == tree.n_nodes == 11


def weights_of(n):
    return Weights(np.array([0, n]), np.arange(n, dtype=np.int32), np.ones(n, np.float32), np.zeros(1, np.float32))
