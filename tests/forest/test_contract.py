from contracts import ModelContract

from tailwise import FastXML, PfastreXML, PfastXML


class TestFastXML(ModelContract):
    def make(self, **params):
        return FastXML(n_trees=5, max_leaf=4, C=5.0, **params)


class TestPfastXML(ModelContract):
    def make(self, **params):
        return PfastXML(n_trees=5, max_leaf=4, C=5.0, **params)


class TestPfastreXML(ModelContract):
    def make(self, **params):
        return PfastreXML(n_trees=5, max_leaf=4, C=5.0, **params)
