import numpy as np
import pytest
from contracts import assert_same_bits, make_rows
from naive.trees import probability, unpack, walk
from scipy import sparse
from sklearn.svm import LinearSVC

from tailwise import Bonsai, ConstantPropensity, JainPropensity, Parabel
from tailwise.errors import InvalidInput
from tailwise.rows import unit_rows
from tailwise.trees.model import EFFORT
from tailwise.trees.weighting import leaf_costs


@pytest.fixture(scope="module")
def rows():
    return make_rows(n_samples=150, n_features=60, n_labels=20)


def objective(w, b, X, z, costs):
    return 0.5 * w @ w + 0.5 * b**2 + (costs * np.maximum(0, 1 - z * (X @ w + b)) ** 2).sum()


@pytest.mark.parametrize(("negatives", "decay"), [("siblings", 0.0), ("beam", 0.2)])
def test_every_edge_is_trained_on_the_rows_that_reach_its_node(rows, monkeypatch, negatives, decay):
    monkeypatch.setitem(EFFORT, "squared_hinge", {"max_sweeps": 200, "bias_centre": 0.0})
    X, Y = unit_rows(rows[0]), rows[1]
    groups = [[2, 3, 4], [5, 6, [7, 8]], [0, 1, *range(9, 20)]]
    model = Parabel(
        tree=groups,
        C_decay=decay,
        prune=0.0,
        tol=1e-3,
        weighting="convex",
        beam=1,
        negatives=negatives,
        random_state=0,
    ).fit(X, Y)
    chunks, Yd = model.chunks_, Y.toarray()
    weights = unpack(chunks, X.shape[1])
    costs = leaf_costs("convex", None, Y)
    below = {node: [] for node in range(chunks.bits.size)}
    for node in reversed(range(chunks.bits.size)):
        for target in chunks.target[chunks.first_edge[node] : chunks.first_edge[node + 1]]:
            below[node] += [~target] if target < 0 else below[target]
    visits = np.zeros((X.shape[0], chunks.bits.size), bool)
    for i, margins in enumerate(X.toarray() @ weights.T + chunks.bias):
        visits[i, [node for _, node in walk(chunks, probability(margins, model.loss), [1])]] = negatives == "beam"
    assert negatives == "siblings" or (visits & ~np.stack([Yd[:, below[node]].any(axis=1) for node in below], 1)).any()
    for node in range(chunks.bits.size):
        for edge in range(chunks.first_edge[node], chunks.first_edge[node + 1]):
            target = chunks.target[edge]
            reach = Yd[:, below[node]].any(axis=1) | (visits[:, node] & (target < 0))
            positive = Yd[reach][:, [~target] if target < 0 else below[target]].any(axis=1)
            if positive.all():
                continue
            cost = np.where(positive, costs[~target] if target < 0 else 1.0, 1.0)
            cost *= positive.sum() ** -decay if target < 0 else Yd[:, below[target]].sum() ** (-decay / 4)
            peer = LinearSVC(C=1.0, tol=1e-6, max_iter=20_000).fit(X[reach], positive, sample_weight=cost)
            z = np.where(positive, 1, -1)
            ours = objective(weights[edge], chunks.bias[edge], X[reach], z, cost)
            best = objective(peer.coef_[0], peer.intercept_[0], X[reach], z, cost)
            assert best * (1 - 1e-3) <= ours <= best * 1.03


@pytest.mark.parametrize("make", [Parabel, Bonsai])
def test_the_length_of_a_row_does_not_matter_unless_asked(rows, make):
    X, Y = rows
    stretched = sparse.csr_array(sparse.diags_array(2.0 ** (np.arange(X.shape[0]) % 9)) @ X)
    model = make(n_trees=1, random_state=0).fit(X, Y)
    assert_same_bits(make(n_trees=1, random_state=0).fit(stretched, Y).predict_topk(stretched), model.predict_topk(X))
    raw = make(n_trees=1, normalize=False, random_state=0).fit(stretched, Y)
    assert (raw.predict_topk(stretched).scores != raw.predict_topk(X).scores).any()


@pytest.mark.parametrize("representation", ["input", "output", "joint"])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_representations_and_losses_learn(rows, representation, loss):
    X, Y = rows
    model = Bonsai(n_trees=1, arity=3, max_leaf=4, representation=representation, loss=loss, prune=0.01, random_state=1)
    top = model.fit(X, Y).predict_topk(X, 3)
    assert np.mean([Y[i, label] for i, labels in enumerate(top.labels) for label in labels]) > 0.8


def test_weighting_lifts_rare_labels():
    rng = np.random.default_rng(0)
    X = np.abs(rng.standard_normal((400, 20))).astype(np.float32)
    Y = np.column_stack([X[:, 0] > -1, (X[:, 1] > 1.8) & (rng.random(400) < 0.3), X[:, 2] > 0.7]).astype(np.float32)
    plain, tail, own = (
        Parabel(n_trees=1, weighting=weighting, random_state=0).fit(X, Y)
        for weighting in ("none", "tail", lambda p: 1 / p - 1)
    )
    rare = [
        np.where(top.labels == 1, top.scores, 0).sum(axis=1)[X[:, 1] > 1.8].mean()
        for top in (plain.predict_topk(X, 3), tail.predict_topk(X, 3))
    ]
    assert rare[1] > 1.5 * rare[0]
    assert_same_bits(own.predict_topk(X), tail.predict_topk(X))


def test_leaf_weights_have_a_mean_of_one_over_all_positives(rows):
    _, Y = rows
    p, counts = JainPropensity().fit(Y).propensity_, np.asarray(Y.sum(axis=0)).ravel()
    powers = {"mild": 0.5, "tail": 1.0, "steep": 1.5}
    named = [(name, (1 / p - 1) ** power) for name, power in powers.items()]
    for weighting, weights in [*named, (lambda p: 3 / p, 1 / p)]:
        expected = weights * counts.sum() / (counts * weights).sum()
        np.testing.assert_allclose(leaf_costs(weighting, None, Y), expected)
    np.testing.assert_allclose(leaf_costs("convex", ConstantPropensity(0.5), Y), 1)
    np.testing.assert_array_equal(leaf_costs("none", None, Y), 1)
    np.testing.assert_allclose(leaf_costs("tail", np.ones(20), Y), 1)
    np.testing.assert_allclose(leaf_costs("tail", np.full(20, 0.5), sparse.csr_array(Y.shape)), 1)


WEIGHED = {
    "Parabel": lambda: Parabel(n_trees=1, max_leaf=4, prune=0.0, tol=1e-4, random_state=0),
    "Bonsai": lambda: Bonsai(
        n_trees=2, arity=4, max_leaf=4, representation="joint", weighting="tail", propensity=np.linspace(0.2, 0.9, 20),
        prune=0.0, tol=1e-4, random_state=0,
    ),
    "logistic": lambda: Bonsai(n_trees=1, max_leaf=4, loss="logistic", C=1.0, prune=0.0, tol=1e-4, random_state=0),
    "siblings": lambda: Parabel(tree=[list(range(9)), list(range(9, 20))], negatives="siblings", prune=0.0, tol=1e-4),
}  # fmt: skip


@pytest.mark.parametrize("make", WEIGHED.values(), ids=WEIGHED)
def test_a_weight_is_how_often_a_row_counts(rows, monkeypatch, make):
    monkeypatch.setitem(EFFORT, "squared_hinge", {"max_sweeps": 300, "bias_centre": 0.0})
    monkeypatch.setitem(EFFORT, "logistic", {"max_rounds": 100})
    X, Y = rows
    weight = np.random.default_rng(1).integers(0, 4, X.shape[0])
    repeated = np.repeat(np.arange(X.shape[0]), weight)
    weighted, other = make().fit(X, Y, sample_weight=weight), make().fit(X[repeated], Y[repeated])
    a, b = weighted.predict_topk(X, 5), other.predict_topk(X, 5)
    np.testing.assert_allclose(a.scores, b.scores, atol=0.01)
    assert (a.labels == b.labels).mean() > 0.97, "but for near ties"
    plain, once = make().fit(X, Y), make().fit(X, Y, sample_weight=np.ones(X.shape[0]))
    assert np.abs(plain.predict_topk(X).scores - a.scores).max() > 0.05, "weights matter"
    assert_same_bits(plain.predict_topk(X), once.predict_topk(X))


def test_a_tree_of_your_own_is_one_tree(rows):
    X, Y = rows
    parents = np.concatenate([np.repeat([20, 21], 10), [-1, -1]])
    model = Bonsai(n_trees=3, tree=parents, random_state=0).fit(X, Y)
    assert model.chunks_.roots.size == 1 and model.chunks_.bits.size == 3
    top = model.predict_topk(X, 3).labels
    assert np.mean([Y[i, label] for i, labels in enumerate(top) for label in labels]) > 0.8


def test_one_label_and_no_label():
    X = sparse.eye_array(6, format="csr")
    only = Parabel().fit(X, np.eye(6, 3)[:, :1]).predict_topk(X, 2)
    assert set(only.labels.ravel()) == {0, -1}
    none = Bonsai().fit(X, np.zeros((6, 3))).predict_topk(X, 2)
    assert (none.labels == -1).all()


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"n_trees": 0}, r"n_trees=0 is outside \[1, inf\)"),
        ({"beam": 2.5}, r"beam=2.5 must be an integer"),
        ({"loss": "hinge"}, r"loss='hinge' is not one of 'squared_hinge', 'logistic'"),
        ({"C": 0}, r"C=0 is outside \(0, inf\)"),
        ({"tol": -1.0}, r"tol=-1.0 is outside"),
        ({"negatives": "all"}, r"negatives='all' is not one of 'beam', 'siblings'"),
        ({"normalize": "l1"}, r"normalize='l1' is not one of True, False"),
        ({"prune": -0.1}, r"prune=-0.1 is outside"),
        ({"weighting": "head"}, r"weighting='head' is not one of 'tail', 'convex', 'mild', 'steep', 'none'"),
        ({"weighting": lambda p: -p}, r"weighting=.* returned .* 20 propensities to as many positive"),
        ({"weighting": "tail", "propensity": [0.5]}, r"propensity"),
        ({"arity": 1}, r"arity=1 is outside"),
        ({"max_depth": 0}, r"max_depth=0 is outside"),
        ({"max_leaf": 0}, r"max_leaf=0 is outside"),
        ({"representation": "both"}, r"representation='both' is not one of 'input', 'output', 'joint'"),
        ({"tree": [0, 1]}, r"tree has 2 parents but Y has 20 labels"),
        ({"n_jobs": 0}, r"n_jobs=0"),
    ],
)
def test_error_texts(rows, params, text):
    with pytest.raises(InvalidInput, match=text):
        Bonsai(**params).fit(*rows)
