import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from tailwise.tail.boosting import BoostedTrees


def test_boosted_trees_equal_scikit_learns_own():
    rng = np.random.default_rng(1)
    features = rng.normal(size=(3000, 4)).astype(np.float32)
    features[rng.random(features.shape) < 0.2] = np.nan
    hits = np.nan_to_num(features[:, 0]) + np.isnan(features[:, 1]) > 0.3
    weights = 1 + rng.random(3000)
    settings = {"max_iter": 30, "random_state": 0, "early_stopping": False, "l2_regularization": 0.5}
    theirs = HistGradientBoostingClassifier(**settings).fit(features, hits, sample_weight=weights)
    ours = BoostedTrees.fit(features, hits, weights, **settings)
    np.testing.assert_allclose(ours.probabilities(features), theirs.predict_proba(features)[:, 1], rtol=1e-5)
    unknown = np.column_stack([features, np.full(3000, np.nan, np.float32)])
    same = BoostedTrees.fit(unknown, hits, weights, **settings)
    np.testing.assert_array_equal(same.probabilities(unknown), ours.probabilities(features))
    constant = BoostedTrees.fit(features, np.zeros(3000, bool), None, **settings)
    assert constant.probabilities(features).max() < 1e-5
