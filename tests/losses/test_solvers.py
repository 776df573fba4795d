import numpy as np
import pytest

from tailwise.losses import convex_surrogate, solver_weights, squared_hinge, tail_weighted
from tailwise.propensity.weighting import propensity_weights

PROPENSITY = np.array([0.05, 0.3, 0.8, 1.0])


@pytest.mark.parametrize(("weighting", "corrected"), [("convex", convex_surrogate), ("tail", tail_weighted)])
def test_linear_models_weigh_positives_as_the_losses_say(weighting, corrected):
    weights = propensity_weights(weighting, PROPENSITY)
    expected, negatives = solver_weights(corrected(squared_hinge, PROPENSITY), 4)
    np.testing.assert_allclose(weights, np.maximum(expected, 1e-3))
    assert (negatives == 1).all()
