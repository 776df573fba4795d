import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive.trees import assign, represent
from scipy import sparse
from strategies import examples, generators, rows_and_labels, sparse_rows

from tailwise.kernels.solvers.problems import pack_rows
from tailwise.kernels.sparse.csr import csr_parts
from tailwise.kernels.trees import clustering as kernels
from tailwise.kernels.trees.clustering import Centroids, assign_nearest, unit_centroids
from tailwise.rows import unit_rows
from tailwise.trees import Bonsai, bonsai, clustering, growing, representation
from tailwise.trees.clustering import find_clusters, split_in_many, split_in_two
from tailwise.trees.growing import grow_trees
from tailwise.trees.representation import represent_labels


def random_rows(seed, n=40, d=30, density=0.2):
    rng = np.random.default_rng(seed)
    return sparse.random_array((n, d), density=density, format="csr", dtype=np.float32, rng=rng)


def random_labels(seed, n=40, n_labels=12):
    rng = np.random.default_rng(seed)
    Y = rng.random((n, n_labels)) < rng.random(n_labels) * 0.4
    Y[:, 0], Y[:, 1], Y[3] = False, True, False
    return sparse.csr_array(Y.astype(np.float32))


@examples(25)
@given(rows_and_labels((1, 40), (1, 30), (1, 12), signed=True))
def test_representations_equal_the_twin(rows):
    X, Y = rows
    given_in = represent(X.toarray(), Y.toarray())
    unscaled = Y.toarray().T @ Y.toarray()
    norms = np.linalg.norm(unscaled, axis=1, keepdims=True)
    given_out = unscaled / np.where(norms > 0, norms, 1)
    np.testing.assert_allclose(represent_labels(unit_rows(X), Y, "input").toarray(), given_in, atol=1e-5)
    np.testing.assert_allclose(represent_labels(unit_rows(X), Y, "output").toarray(), given_out, atol=1e-5)
    joint = represent_labels(unit_rows(X), Y, "joint").toarray()
    np.testing.assert_allclose(joint, np.hstack([given_in, given_out]) / np.sqrt(2), atol=1e-5)


def test_long_label_vectors_keep_their_largest_entries():
    X, Y = random_rows(1, density=0.5), random_labels(1)
    vectors = representation.LabelVectors(unit_rows(X), Y, keep=5).of_all()
    for cut, whole in zip(vectors.toarray(), represent(X.toarray(), Y.toarray()), strict=True):
        assert (cut != 0).sum() <= 5
        if (whole != 0).sum() >= 5:
            assert (cut != 0).sum() >= 4
            assert whole[cut != 0].min() >= whole[cut == 0].max()
            np.testing.assert_allclose(np.linalg.norm(cut), 1, rtol=1e-5)


def packed(vectors):
    vectors = sparse.csr_array(vectors)
    return pack_rows(csr_parts(vectors), vectors.shape[1])


@examples(25)
@given(sparse_rows((2, 41), (1, 30)), generators())
def test_halves_are_balanced_and_stable(rows, rng):
    n = rows.shape[0]
    vectors = represent_labels(unit_rows(rows), sparse.eye_array(n, format="csr", dtype=np.float32))
    assignment = split_in_two(np.arange(n), vectors, rng)
    assert assignment.sum() == n - n // 2
    centroids = np.stack([vectors.toarray()[assignment == side].sum(axis=0) for side in (0, 1)])
    centroids /= np.maximum(np.linalg.norm(centroids, axis=1, keepdims=True), 1e-12)
    own = (vectors.toarray() * centroids[assignment]).sum()
    better = (vectors.toarray() * centroids[1 - assignment]).sum()
    assert own >= better - 1e-4


def test_clusters_that_are_there_are_found():
    rng = np.random.default_rng(0)
    topics = np.repeat(np.arange(3), 20)
    vectors = np.zeros((60, 30), np.float32)
    for i, topic in enumerate(topics):
        vectors[i, topic * 10 + rng.choice(10, 6, replace=False)] = 1
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    halves = split_in_two(np.arange(40), sparse.csr_array(vectors), np.random.default_rng(0))
    assert len(set(halves[:20])) == len(set(halves[20:])) == 1 and halves[0] != halves[-1]
    found = max(
        (split_in_many(sparse.csr_array(vectors), 3, np.random.default_rng(seed)) for seed in range(5)),
        key=lambda assignment: len(set(zip(topics, assignment, strict=True))) == 3,
    )
    assert len(set(zip(topics, found, strict=True))) == len(set(found)) == 3


def test_k_means_moves_every_label_to_its_nearest_centroid():
    vectors = represent_labels(unit_rows(random_rows(3, n=60)), sparse.eye_array(60, format="csr", dtype=np.float32))
    assignment = split_in_many(sparse.csr_array(vectors), 7, np.random.default_rng(1))
    dense = vectors.toarray()
    centroids = np.zeros((7, dense.shape[1]))
    np.add.at(centroids, assignment, dense)
    centroids /= np.maximum(np.linalg.norm(centroids, axis=1, keepdims=True), 1e-12)
    cosines = dense @ centroids.T
    # The last round may still have gained a little.
    assert (cosines.max(axis=1) - cosines[np.arange(60), assignment]).mean() < 0.02


@examples(25)
@given(sparse_rows(30, 12), sparse_rows(5, 12), st.integers(6, 30))
def test_crowded_clusters_keep_their_nearest_labels(vectors, centroids, room):
    by_feature = sparse.csr_array(centroids.T)
    by_feature.data[by_feature.indices == 1] *= 5
    assignment = np.empty(30, np.int32)
    listed = Centroids(by_feature.indptr.astype(np.int64), by_feature.indices.astype(np.int32), by_feature.data)
    assign_nearest(packed(vectors), listed, 5, room, assignment)
    np.testing.assert_array_equal(assignment, assign(vectors.toarray() @ by_feature.toarray(), room))


def test_too_many_inner_products_to_keep_change_nothing():
    rng = np.random.default_rng(0)
    vectors, centroids = (
        sparse.random_array((n, 30), density=0.1, format="csr", dtype=np.float32, rng=rng) for n in (2100, 2000)
    )
    by_feature = sparse.csr_array(centroids.T)
    listed = Centroids(by_feature.indptr.astype(np.int64), by_feature.indices.astype(np.int32), by_feature.data)
    assignment = np.empty(2100, np.int32)
    assign_nearest(packed(vectors), listed, 2000, 3, assignment)
    assert kernels._MOST_KEPT < 2100 * 2000 and np.bincount(assignment).max() == 3
    np.testing.assert_array_equal(assignment, assign(vectors.toarray() @ by_feature.toarray(), 3))


def test_labels_that_resemble_nothing_are_spread():
    vectors = np.vstack([np.eye(200, 260), np.pad(np.ones((200, 60)), ((0, 0), (200, 0)))]).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    sizes = np.bincount(split_in_many(sparse.csr_array(vectors), 40, np.random.default_rng(0)))
    assert sizes.max() <= 1.5 * 400 / 40


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grown_trees_hold_every_label_once_and_do_not_depend_on_threads(n_jobs):
    vectors = represent_labels(unit_rows(random_rows(5, n=200)), sparse.eye_array(200, format="csr", dtype=np.float32))
    labels = np.flatnonzero(np.arange(200) % 7)
    trees = grow_trees(vectors, labels, split_in_two, [3, 4], max_leaf=10, max_depth=64, n_jobs=n_jobs)
    assert not np.array_equal(trees[0].order, trees[1].order)
    for tree in trees:
        np.testing.assert_array_equal(np.sort(tree.order), labels)
        leaf = np.array([(tree.target[slice(*tree.edges(node))] < 0).all() for node in range(tree.n_nodes)])
        assert np.diff(tree.first_edge)[leaf].max() <= 10 and (np.diff(tree.first_edge)[~leaf] == 2).all()
    again = grow_trees(vectors, labels, split_in_two, [3, 4], max_leaf=10, max_depth=64, n_jobs=1)
    for tree, other in zip(trees, again, strict=True):
        for part, same in zip(tree, other, strict=True):
            np.testing.assert_array_equal(part, same)


def test_labels_that_do_not_fall_apart_and_depth_end_the_growth():
    equal = sparse.csr_array(np.ones((30, 2), np.float32) / np.sqrt(2))
    tree = grown(equal, lambda labels, *_: np.zeros(labels.size, np.int32), max_leaf=5, max_depth=9)
    assert tree.n_nodes == 1 and tree.target.size == 30
    cut = grown(equal, in_clusters(4), max_leaf=5, max_depth=9)
    assert cut.n_nodes > 1 and np.sort(cut.order).tolist() == list(range(30))
    vectors = represent_labels(unit_rows(random_rows(5, n=100)), sparse.eye_array(100, format="csr", dtype=np.float32))
    (flat,) = grow_trees(vectors, np.arange(100), split_in_two, [0], max_leaf=2, max_depth=1)
    assert flat.n_nodes == 3


def test_centroids_of_many_labels_are_found_from_a_sample(monkeypatch):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 2000)
    vectors = np.zeros((2000, 30), np.float32)
    vectors[np.arange(2000), 10 * group] = 3
    vectors[np.arange(2000), 10 * group + rng.integers(1, 10, 2000)] += 1
    sizes = []
    monkeypatch.setattr(
        clustering,
        "unit_centroids",
        lambda rows, *rest: sizes.append(rows.indptr.size - 1) or unit_centroids(rows, *rest),
    )
    starts = (split_in_many(sparse.csr_array(vectors), 3, np.random.default_rng(seed)) for seed in range(20))
    found = next(own for own in starts if all(np.unique(group[own == k]).size == 1 for k in range(3)))
    assert np.bincount(found, minlength=3).min() > 500
    assert set(sizes) == {3 * clustering.SAMPLE}


def in_clusters(n):
    return lambda labels, vectors, rng: find_clusters(labels, vectors, n, rng)


def grown(vectors, split, **how):
    (tree,) = grow_trees(vectors, np.arange(vectors.shape[0]), split, [0], **how)
    return tree


@pytest.mark.parametrize("piece", [64, 10_000])
def test_labels_of_a_large_node_are_assigned_in_pieces(monkeypatch, piece):
    monkeypatch.setattr(growing, "_LABELS_A_PIECE", piece)
    monkeypatch.setattr(clustering, "SAMPLE", 5)
    group = np.random.default_rng(0).permutation(np.arange(400) % 4)
    vectors = sparse.csr_array(np.eye(4, dtype=np.float32)[group])

    def split(labels, own, rng):
        # Starts that miss a group would tell of the draw, not of the pieces.
        return next(
            found
            for found in (find_clusters(labels, own, 4, np.random.default_rng(seed)) for seed in range(99))
            if found.centroids.clusters.size == 16 and (found.centroids.values > 0.9).sum() == 4
        )

    tree = grown(vectors, split, max_leaf=150, max_depth=9)
    for node in range(1, 5):
        first, last = tree.edges(node)
        assert np.unique(group[~tree.target[first:last]]).size == 1 and last - first == 100


def test_nodes_of_the_last_level_are_split_on_until_they_are_small():
    vectors = unit_rows(random_rows(2, n=300))
    plain = grown(vectors, in_clusters(3), max_leaf=10, max_depth=1)
    assert plain.n_nodes == 4 and np.diff(plain.first_edge)[1:].max() > 10
    tree = grown(
        vectors,
        in_clusters(3),
        max_leaf=10,
        max_depth=1,
        split_on=in_clusters(2),
    )
    np.testing.assert_array_equal(np.sort(tree.order), np.arange(300))
    assert tree.edges(0) == (0, 3)
    assert np.diff(tree.first_edge)[1:].max() <= 10


def test_bonsai_bounds_the_labels_of_a_node_however_many_there_are():
    X = unit_rows(random_rows(4, n=600, d=60))
    model = Bonsai(1, arity=3, max_leaf=8, max_depth=2, n_jobs=1, random_state=0).fit(X, sparse.eye_array(600).tocsr())
    assert np.diff(model.chunks_.first_edge).max() <= 8


def sizes_below_the_root(model, n_labels):
    X = unit_rows(random_rows(4, n=n_labels, d=60))
    Y = sparse.eye_array(n_labels, dtype=np.float32).tocsr()
    (tree,) = model._grow(X, Y, np.ones(n_labels), [0])
    first, last = tree.edges(0)
    return (tree.stop - tree.start)[first:last]


@pytest.mark.parametrize(("arity", "keep"), [(8, 128), (7, 64)])
def test_clusters_are_even_and_of_shorter_vectors_where_labels_are_many(arity, keep, monkeypatch):
    kept = []

    def vectors(*given, keep, **how):
        kept.append(keep)
        return representation.LabelVectors(*given, keep=keep, **how)

    monkeypatch.setattr(bonsai, "LabelVectors", vectors)
    assert sizes_below_the_root(Bonsai(1, arity=arity), 600).max() <= np.ceil(1.5 * 600 / arity)
    assert kept == [keep]


def test_more_labels_than_three_levels_serve_have_more_clusters_at_the_root(monkeypatch):
    monkeypatch.setattr(bonsai, "_ARITY", 5)
    monkeypatch.setattr(bonsai, "LANES", 4)
    monkeypatch.setattr(bonsai, "_LABELS_A_CLUSTER", 10)
    assert sizes_below_the_root(Bonsai(1), 320).size == 8
    assert sizes_below_the_root(Bonsai(1), 500).size == 8, "ten, but twelve edges would cost what eight do not"
    assert sizes_below_the_root(Bonsai(1), 605).size == 12, "eleven, which cost what twelve do"
    assert sizes_below_the_root(Bonsai(1), 251).size == 8
    assert sizes_below_the_root(Bonsai(1), 245).size == 7, "in reach of five"
    assert sizes_below_the_root(Bonsai(1, arity=5), 640).size == 5
    assert sizes_below_the_root(Bonsai(1), 120).size == 5
