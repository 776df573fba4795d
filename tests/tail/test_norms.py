import numpy as np
import pytest

from tailwise import Centroid, Popularity
from tailwise.errors import InvalidInput
from tailwise.tail import PropensityReranker, TailAugmented, classifier_norms, plot_classifier_norms


def test_classifier_norms_through_wrappers(rows):
    X, Y = rows
    centroid = Centroid().fit(X, Y)
    norms = classifier_norms(centroid)
    np.testing.assert_allclose(norms, np.linalg.norm(centroid.weights_.toarray(), axis=0), rtol=1e-6)
    wrapped = PropensityReranker(Centroid()).fit(X, Y)
    np.testing.assert_array_equal(classifier_norms(wrapped), norms)
    split = TailAugmented(Centroid(), random_state=0).fit(X, Y)
    np.testing.assert_allclose(classifier_norms(split), (centroid.label_counts_ > 0).astype(float), atol=1e-6)
    assert len(plot_classifier_norms({"plain": centroid, "split": split}).get_lines()) == 2
    with pytest.raises(InvalidInput, match="Popularity has no linear weights"):
        classifier_norms(Popularity().fit(X, Y))
