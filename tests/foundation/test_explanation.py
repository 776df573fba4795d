"""What a model can say of a score: the cases that no single model shows."""

import numpy as np
import pytest
from contracts import make_rows

import tailwise as tw
from tailwise.errors import InvalidInput, Unsupported
from tailwise.explanation import Explanation, Part
from tailwise.tail import classifier_norms


@pytest.fixture(scope="module")
def rows():
    return make_rows()


def test_features_lie_on_the_first_branch_that_has_any():
    words = Explanation.sum_of(0, [Part("bias", 1.0), Part("feature 3", 2.0, 3)])
    whole = Explanation(0, 0.7, (Part("votes", 0.2), Part("probability", 0.5, of=words)))
    assert [part.feature for part in whole.features()] == [3]
    assert Explanation(0, 0.2, (Part("votes", 0.2),)).features() == []
    assert list(whole.lines()) == [
        "+0.5000  probability",
        "    +2.0000  feature 3",
        "    +1.0000  bias",
        "+0.2000  votes",
    ]
    assert list(whole.lines(features=False)) == ["+0.5000  probability", "    +1.0000  bias", "+0.2000  votes"]


@pytest.mark.parametrize("model", [tw.Bonsai(max_leaf=4), tw.Parabel(max_leaf=4), tw.DiSMEC(), tw.Centroid()])
def test_norms_of_linear_weights(rows, model):
    norms = classifier_norms(model.fit(*rows))
    weights = model.label_weights()
    assert weights.shape == (15, 40)
    np.testing.assert_allclose(norms, np.linalg.norm(weights.toarray(), axis=1), rtol=1e-5)
    assert norms[0] == 0 and (norms[2:] > 0).all(), "label 0 has no row"


def test_label_weights_of_a_tree_are_those_of_its_leaves(rows):
    """With one node that holds every label, a tree is a one-vs-rest model."""
    X, Y = rows
    tree = tw.Bonsai(n_trees=1, prune=0.0, random_state=0).fit(X, Y)
    top = tree.predict_topk(X, 15)
    margins = (tree.rows_(X) @ tree.label_weights().T).toarray() + tree.chunks_.bias[np.argsort(~tree.chunks_.target)][
        np.cumsum(np.asarray(Y.sum(axis=0)).ravel() > 0) - 1
    ]
    for i in range(0, X.shape[0], 11):
        present = top.labels[i] >= 0
        expected = np.exp(-(np.maximum(0, 1 - margins[i, top.labels[i][present]]) ** 2))
        np.testing.assert_allclose(top.scores[i][present], expected, rtol=2e-3)


@pytest.mark.parametrize("model", [tw.PfastreXML(n_trees=2), tw.Popularity(), tw.NearestRows()])
def test_models_without_linear_weights_say_so(rows, model):
    model.fit(*rows)
    with pytest.raises(Unsupported, match=f"{type(model).__name__} has no linear weights by label; one-vs-rest"):
        model.label_weights()
    with pytest.raises(InvalidInput, match="has no linear weights"):
        classifier_norms(model)


def test_update_is_refused_with_the_way_out(rows):
    with pytest.raises(Unsupported, match="FastXML cannot learn from new rows alone; fit it again"):
        tw.FastXML(n_trees=1).fit(*rows).update(*rows)
