import numpy as np
import pytest
from scipy.special import expit, logit

from tailwise.persistence.checks import Violation
from tailwise.tail.smoothed import SmoothedTrees

COLUMNS = np.array([2, 0], np.int64)


@pytest.fixture(scope="module")
def learnt():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(3000, 3)).astype(np.float32)
    features[::7, 2] = np.nan
    hits = rng.random(3000) < expit(features[:, 0] - 2 * np.nan_to_num(features[:, 1]))
    return features, SmoothedTrees.fit(features, hits, np.ones(3000), columns=COLUMNS, n_cubic=1, max_iter=10)


def test_the_log_odds_are_the_mean_of_both(learnt):
    features, model = learnt
    lowest = np.where(np.isnan(features), model.surface.low[0], features)
    smooth, trees = model.surface(lowest[:, COLUMNS]), model.trees.probabilities(features)
    np.testing.assert_allclose(
        logit(model.probabilities(features)), (logit(smooth) + logit(trees)) / 2, rtol=1e-4, atol=1e-5
    )
    assert model.surface.n_cubic == 1


def test_contributions_sum_to_the_log_odds(learnt):
    features, model = learnt
    for row in features[:15]:
        start, moves = model.contributions(row)
        assert start + moves.sum() == pytest.approx(float(logit(model.probabilities(row[None])[0])), abs=1e-4)
    start, moves = model.contributions(features[1])
    assert moves[1] == pytest.approx(model.trees.contributions(features[1])[1][1] / 2), "the surface does not see it"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": np.array([2, 3], np.int64)}, "columns holds 3"),
        ({"columns": np.array([2], np.int64)}, "of a surface"),
        ({"trees": None}, "trees of trees_ is a NoneType"),
        ({"surface": None}, "surface of trees_ is a NoneType"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(learnt, change, message):
    learnt[1].check(3)
    with pytest.raises(Violation, match=message):
        learnt[1]._replace(**change).check(3)
