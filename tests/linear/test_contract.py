from contracts import ModelContract

from tailwise import DiSMEC, PDSparse, PPDSparse, ProXML, PWDiSMEC


class TestDiSMEC(ModelContract):
    def make(self, **params):
        return DiSMEC(**params)


class TestLogistic(ModelContract):
    def make(self, **params):
        return DiSMEC(**({"loss": "logistic"} | params))


class TestPWDiSMEC(ModelContract):
    def make(self, **params):
        return PWDiSMEC(**params)


class TestPPDSparse(ModelContract):
    def make(self, **params):
        return PPDSparse(**params)


class TestPPDSparseHinge(ModelContract):
    def make(self, **params):
        return PPDSparse(**({"loss": "hinge"} | params))


class TestPDSparse(ModelContract):
    def make(self, **params):
        return PDSparse(**params)


class TestProXML(ModelContract):
    def make(self, **params):
        return ProXML(**({"C": 10.0} | params))
