from contracts import ModelContract

from tailwise import Bonsai, Parabel


class TestParabel(ModelContract):
    def make(self, **params):
        return Parabel(**({"max_leaf": 4, "n_trees": 2} | params))


class TestBonsai(ModelContract):
    def make(self, **params):
        return Bonsai(**({"arity": 4, "max_leaf": 3, "n_trees": 2} | params))
