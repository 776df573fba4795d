from contracts import ModelContract

from tailwise import Centroid, Popularity


class TestPopularity(ModelContract):
    def make(self, **params):
        return Popularity(**params)


class TestCentroid(ModelContract):
    def make(self, **params):
        return Centroid(**params)
