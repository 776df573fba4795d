from contracts import ModelContract

from tailwise import CPLST, CS, LEML, MLCSSP, SLEEC, RobustXML


class TestLEML(ModelContract):
    def make(self, **params):
        return LEML(**{"dim": 10, "l2": 0.1, **params})


class TestCPLST(ModelContract):
    def make(self, **params):
        return CPLST(**{"dim": 10, "l2": 0.1, **params})


class TestMLCSSP(ModelContract):
    def make(self, **params):
        return MLCSSP(**{"dim": 10, "l2": 0.1, **params})


class TestCS(ModelContract):
    def make(self, **params):
        return CS(**{"dim": 40, "l2": 0.1, **params})


class TestSLEEC(ModelContract):
    def make(self, **params):
        return SLEEC(**{"dim": 8, "n_learners": 2, "cluster_rows": 60, "l2": 0.5, **params})


class TestRobustXML(ModelContract):
    def make(self, **params):
        return RobustXML(**{"dim": 4, "l1": 0.1, "l2": 0.1, **params})
