from contracts import ModelContract

from tailwise import CPLST, CS, LEML, MLCSSP


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
