import numpy as np
import pytest
from contracts import assert_same_bits, make_rows
from naive import forest as naive
from scipy import sparse

from tailwise import ConstantPropensity, FastXML, PfastreXML, PfastXML, TailCentroids
from tailwise.errors import InvalidInput
from tailwise.forest.growth import ideal_scale
from tailwise.rows import idf_weights, unit_rows

SMALL = {"n_trees": 4, "max_leaf": 5, "C": 5.0, "max_features": 0.8, "random_state": 3}


@pytest.fixture(scope="module")
def rows():
    return make_rows(n_samples=150, n_features=40, n_labels=20, seed=5)


@pytest.fixture(scope="module")
def fast(rows):
    return FastXML(**SMALL).fit(*rows)


@pytest.fixture(scope="module")
def pfastre(rows):
    return PfastreXML(**SMALL, alpha=0.6, centroids=TailCentroids(10)).fit(*rows)


def seen(model, X):
    return model.rows_(X)


def leaves_of(model, X):
    forest, weights = model.forest_, naive.separators(model.forest_, X.shape[1])
    return np.array(
        [[naive.leaf_of(forest, weights, t, x) for t in range(forest.n_trees)] for x in seen(model, X).toarray()]
    )


def test_leaves_hold_the_rows_that_reach_them_and_their_label_shares(rows, fast):
    X, Y = rows
    forest, leaves = fast.forest_, leaves_of(fast, X)
    assert forest.n_trees == 4 and forest.bias.size > 40
    assert 4 <= forest.n_top < forest.bias.size, "the twin sees both layouts"
    for leaf in np.unique(leaves):
        own = np.flatnonzero((leaves == leaf).any(axis=1))
        assert forest.n_rows[leaf] == own.size
        held = slice(forest.leaf_indptr[leaf], forest.leaf_indptr[leaf + 1])
        shares = np.zeros(20)
        shares[forest.leaf_labels[held]] = forest.leaf_shares[held]
        np.testing.assert_allclose(shares, Y[own].toarray().mean(axis=0), rtol=1e-6)
        assert (np.diff(forest.leaf_labels[held]) > 0).all()
    inner = forest.children[:, 0] >= 0
    assert set(np.unique(leaves)) == set(np.flatnonzero(~inner))
    np.testing.assert_array_equal(forest.n_rows[:4], X.shape[0])
    assert (forest.n_rows[inner] == forest.n_rows[forest.children[inner]].sum(axis=1)).all()


def test_fast_prediction_equals_the_twin(rows, fast):
    X, Y = rows
    probabilities = naive.forest_probabilities(fast.forest_, seen(fast, X).toarray(), Y.shape[1])
    probabilities[probabilities == 0] = -np.inf
    top = fast.predict_topk(X, 7)
    np.testing.assert_allclose(np.sort(probabilities)[:, ::-1][:, :7], top.scores, rtol=1e-5)
    present = top.labels >= 0
    np.testing.assert_allclose(
        np.take_along_axis(probabilities, top.labels, 1)[present], top.scores[present], rtol=1e-5
    )


@pytest.mark.parametrize("shape", ["cone", "sphere"])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_reranked_prediction_equals_the_twin_over_all_candidates(rows, k, shape):
    X, Y = rows
    pfastre = PfastreXML(**SMALL, alpha=0.6, centroids=TailCentroids(10, shape=shape)).fit(X, Y)
    dense = naive.weighted(X, X)
    with np.errstate(divide="ignore"):
        forest = np.log(naive.forest_probabilities(pfastre.forest_.forest_, dense.astype(np.float32), Y.shape[1]))
    expected = 0.6 * forest + 0.4 * np.nan_to_num(naive.log_q(dense, Y.toarray(), dense, 10, shape))
    top = pfastre.predict_topk(X, k)
    np.testing.assert_allclose(np.sort(expected)[:, ::-1][:, :k], top.scores, rtol=1e-4, atol=1e-4)
    assert np.mean(naive.ranked(expected, k) == top.labels) > 0.99


def test_propensities_weight_the_leaves(rows):
    X, Y = rows
    inverse = np.linspace(1, 4, Y.shape[1])
    model = PfastXML(**SMALL, propensity=1 / inverse).fit(X, Y)
    leaves = leaves_of(model, X)
    leaf = leaves[0, 0]
    own = np.flatnonzero(leaves[:, 0] == leaf)
    held = slice(model.forest_.leaf_indptr[leaf], model.forest_.leaf_indptr[leaf + 1])
    expected = Y[own].toarray().mean(axis=0) * inverse
    np.testing.assert_allclose(model.forest_.leaf_shares[held], expected[expected > 0], rtol=1e-5)


def test_one_implementation(rows, fast):
    X, Y = rows
    assert_same_bits(
        PfastXML(**SMALL, propensity=ConstantPropensity(1.0)).fit(X, Y).predict_topk(X), fast.predict_topk(X)
    )
    pfast = PfastXML(**SMALL).fit(X, Y).predict_topk(X)
    top = PfastreXML(**SMALL, alpha=1.0).fit(X, Y).predict_topk(X)
    present = top.labels >= 0
    np.testing.assert_allclose(np.exp(top.scores[present]), pfast.scores[present], rtol=1e-5)


def test_each_tree_depends_on_its_own_seed_only(rows, fast):
    X, _ = rows
    fewer = FastXML(**SMALL | {"n_trees": 2, "n_jobs": 2}).fit(*rows)
    for i in (0, 3):
        for label in fewer.predict_topk(X[[i]], 2).labels[0]:
            of_two = {vote_of(part, 2) for part in fewer.explain(X[[i]], label).parts}
            of_four = {vote_of(part, 4) for part in fast.explain(X[[i]], label).parts}
            assert of_two == {vote for vote in of_four if vote[0] < 2}


@pytest.mark.parametrize("idf", [True, False])
def test_features_are_weighted_by_idf_unless_refused(rows, idf):
    X, Y = rows
    model = FastXML(**SMALL, idf=idf).fit(X, Y)
    expected = naive.weighted(X, X) if idf else unit_rows(X).toarray()
    np.testing.assert_allclose(seen(model, X).toarray(), expected, rtol=1e-5, atol=1e-7)
    kept = X.copy()
    kept.data[::7] = 0
    gone = kept.copy()
    gone.eliminate_zeros()
    np.testing.assert_array_equal(idf_weights(kept), idf_weights(gone))


def test_each_tree_sees_its_share_of_the_features(rows):
    X, Y = rows
    forest = FastXML(**SMALL | {"max_features": 0.25}).fit(X, Y).forest_
    weights = naive.separators(forest, X.shape[1])
    used = [np.flatnonzero(weights[naive.nodes_below(forest, tree)].any(axis=0)) for tree in range(4)]
    assert all(0 < features.size <= 10 for features in used)
    assert len({tuple(features) for features in used}) == 4
    every = FastXML(**SMALL | {"max_features": 1.0}).fit(X, Y)
    assert naive.separators(every.forest_, X.shape[1]).any(axis=0).sum() > 20


def test_degenerate_nodes_are_leaves():
    one_feature = np.ones((30, 1))
    labels = np.eye(3)[np.arange(30) % 3]
    cases = {
        "identical rows": (one_feature, labels),
        "no labels": (np.eye(30), np.zeros((30, 3))),
        "no features": (sparse.csr_array((30, 4)), labels),
        "one label on every row": (np.eye(30), np.ones((30, 1))),
    }
    for name, (X, Y) in cases.items():
        forest = FastXML(n_trees=2, max_leaf=5, random_state=0).fit(X, Y).forest_
        assert forest.bias.size == 2, name
        np.testing.assert_array_equal(forest.n_rows, 30)
    only_some_labelled = np.zeros((30, 3))
    only_some_labelled[:20] = labels[:20]
    X = np.eye(3)[np.arange(30) % 3]
    model = FastXML(n_trees=3, max_leaf=5, random_state=0).fit(X, only_some_labelled)
    np.testing.assert_array_equal(model.predict_topk(np.eye(3), 1).labels[:, 0], [0, 1, 2])


def test_a_leaf_keeps_its_most_frequent_labels():
    Y = np.triu(np.ones((6, 6)))[:, ::-1]
    model = FastXML(n_trees=1, max_leaf=10, labels_per_leaf=2, random_state=0).fit(np.ones((6, 1)), Y)
    np.testing.assert_array_equal(model.forest_.leaf_labels, [0, 1])
    np.testing.assert_allclose(model.forest_.leaf_shares, [1, 5 / 6])


def test_explain_names_the_votes_that_make_the_score(rows, fast, pfastre):
    X, _ = rows
    x = X[[7]]
    leaves = leaves_of(fast, x)[0]
    top = fast.predict_topk(x, 3)
    for label, score in zip(top.labels[0], top.scores[0], strict=True):
        why = fast.explain(x, label)
        assert why.label == label and why.score == pytest.approx(score, rel=1e-4)
        held = slice(*fast.forest_.leaf_indptr[[leaves[0], leaves[0] + 1]])
        of_first = fast.forest_.leaf_shares[held][fast.forest_.leaf_labels[held] == label]
        assert [vote_of(part, 4)[1] for part in why.parts if vote_of(part, 4)[0] == 0] == pytest.approx(of_first)
    for label, score in zip(*(part[0] for part in pfastre.predict_topk(x, 3)), strict=True):
        forest, tail = pfastre.explain(x, label).parts
        assert forest.value + tail.value == pytest.approx(score, rel=1e-4)
        assert forest.value == pytest.approx(0.6 * np.log(pfastre.forest_.explain(x, label).score))
        assert tail.of.score == pytest.approx(pfastre.centroids_.log_scores(x, np.array([[label]]))[0, 0], rel=1e-4)
    (nobody,) = fast.explain(x, 0).parts
    assert nobody.value == -np.inf and nobody.name == "no leaf that the row reaches has it"


def vote_of(part, n_trees):
    """(tree, share) of a part of a forest's explanation."""
    return int(part.name.split()[1].rstrip(":")), round(part.value * n_trees, 5)


@pytest.mark.parametrize("idf", [True, False])
def test_forest_and_centroids_may_see_rows_differently(rows, idf):
    X, Y = rows
    model = PfastreXML(**SMALL, idf=idf, alpha=0.6, centroids=TailCentroids(10, idf=not idf)).fit(X, Y)
    top = model.predict_topk(X, 3)
    expected = 0.4 * model.centroids_.log_scores(X, top.labels)
    for i in range(0, X.shape[0], 9):
        for label, score, tail in zip(top.labels[i], top.scores[i], expected[i], strict=True):
            assert score == pytest.approx(0.6 * np.log(model.forest_.explain(X[[i]], label).score) + tail, rel=1e-4)


def test_a_wrong_part_is_refused_before_any_work(rows, monkeypatch):
    def work(*_):
        raise AssertionError("work was done before the parameters were checked")

    monkeypatch.setattr(TailCentroids, "fit", work)
    with pytest.raises(InvalidInput, match=r"n_trees=0 is outside \[1, inf\)"):
        PfastreXML(n_trees=0).fit(*rows)
    with pytest.raises(InvalidInput, match="shape='cube' is not one of 'cone', 'sphere'"):
        PfastreXML(centroids=TailCentroids(shape="cube")).fit(*rows)


def test_ideal_scale_is_that_of_a_perfect_ranking():
    np.testing.assert_allclose(
        ideal_scale(np.array([0, 1, 3])), [0, np.log(2), 1 / sum(1 / np.log([2, 3, 4]))], rtol=1e-6
    )


def test_errors_say_the_fix(rows, fast):
    X, Y = rows
    for params, text in [
        ({"n_trees": 0}, r"n_trees=0 is outside \[1, inf\)"),
        ({"max_leaf": 2.5}, "max_leaf=2.5 must be an integer"),
        ({"C": 0}, r"C=0 is outside \(0"),
        ({"tol": 2}, r"tol=2 is outside \[0, 1\]"),
        ({"max_features": 0}, r"max_features=0 is outside \(0, 1\]"),
        ({"idf": 2}, "idf=2"),
    ]:
        with pytest.raises(InvalidInput, match=text):
            FastXML(**params).fit(X, Y)
    with pytest.raises(InvalidInput, match=r"alpha=1.5 is outside \[0, 1\]"):
        PfastreXML(alpha=1.5).fit(X, Y)
    with pytest.raises(InvalidInput, match="propensity"):
        PfastXML(propensity=[0.5]).fit(X, Y)
    with pytest.raises(InvalidInput, match=r"x has 2 rows; pass the one row to explain: X\[\[i\]\]"):
        fast.explain(X[:2], 1)
    with pytest.raises(InvalidInput, match=r"label=20 is outside \[0, 19\]"):
        fast.explain(X[:1], 20)
