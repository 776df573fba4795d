import numpy as np
import pytest

from tailwise.errors import InvalidInput
from tailwise.trees.structure import MAX_CHILDREN, tree_from_nested, tree_from_user

SEEN = np.ones(5, int)


def labels_below(tree, node):
    """The labels below a node by walking down."""
    found = []
    for edge in range(*tree.edges(node)):
        target = tree.target[edge]
        found += [~target] if target < 0 else labels_below(tree, target)
    return found


def test_ranges_equal_a_walk_down():
    tree = tree_from_nested([np.array([7, 2]), [0, [np.array([1, 3]), 4], 6], 5])
    for node in range(tree.n_nodes):
        first, last = tree.edges(node)
        np.testing.assert_array_equal(tree.order[tree.start[first] : tree.stop[last - 1]], labels_below(tree, node))
        for edge in range(first, last):
            below = tree.order[tree.start[edge] : tree.stop[edge]]
            target = tree.target[edge]
            np.testing.assert_array_equal(below, [~target] if target < 0 else labels_below(tree, target))


def test_parents_and_groups_of_the_same_shape_give_the_same_tree():
    parents = np.array([5, 5, 6, 6, -1, -1, -1])
    for tree in (parents, parents.tolist()):
        built = tree_from_user(tree, SEEN)
        groups = tree_from_user([4, [0, 1], [2, 3]], SEEN)
        assert all(np.array_equal(a, b) for a, b in zip(built, groups, strict=True))


def test_a_label_may_be_a_parent():
    tree = tree_from_user([-1, 0, 0, 1, -1], SEEN)
    assert sorted(labels_below(tree, 0)) == [0, 1, 2, 3, 4]
    inner = tree.target[tree.target >= 0]
    assert [sorted(labels_below(tree, node)) for node in inner] == [[0, 1, 2, 3], [1, 3]]


def test_unseen_labels_and_bare_nodes_are_left_out():
    tree = tree_from_user([[0, [1]], [2, 3], [4]], np.array([1, 0, 1, 0, 1]))
    assert tree.n_nodes == 1
    np.testing.assert_array_equal(np.sort(tree.order), [0, 2, 4])
    assert tree_from_user([[0, 1]], np.zeros(2, int)).target.size == 0


@pytest.mark.parametrize(
    ("tree", "text"),
    [
        ([-1, 0], r"tree has 2 parents but Y has 5 labels"),
        ([-1, 0, 0, 9, 0], r"tree\[3\]=9 is not a node"),
        ([-1, 2, 1, 0, 0], r"tree has a cycle: 2 of its 5 nodes"),
        ([[0, 1], [2, 3, 7]], r"label 7, but Y has the labels 0…4"),
        ([[0, 1], [2, 3, 3]], r"tree holds label 3 2 times \(2 labels"),
        ([[0, "a"], [2, 3]], r"tree holds 'a'; groups are nested lists"),
        ("eurovoc", r"tree='eurovoc' is neither"),
        (b"5", r"tree=b'5' is neither"),
        ([[0, True], [2, 3]], r"tree holds True"),
    ],
)
def test_error_texts(tree, text):
    with pytest.raises(InvalidInput, match=text):
        tree_from_user(tree, SEEN)


def test_a_node_with_too_many_children_is_refused():
    n = MAX_CHILDREN + 1
    with pytest.raises(InvalidInput, match=r"65,536 children; give it at most 65,535"):
        tree_from_user(np.full(n, -1), np.ones(n, int))
