import numpy as np
import pytest
from contracts import ModelContract

from tailwise import Centroid, Popularity


class TestPopularity(ModelContract):
    def make(self, **params):
        return Popularity(**params)


class TestCentroid(ModelContract):
    def make(self, **params):
        return Centroid(**params)


def test_rows_without_any_label_are_no_silent_success():
    with pytest.warns(UserWarning, match="no row of Y has a label: Centroid has nothing to learn from") as caught:
        Centroid().fit(np.eye(3), np.zeros((3, 4)))
    assert caught[0].filename == __file__
