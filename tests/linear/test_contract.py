from contracts import ModelContract

from tailwise import DiSMEC, PPDSparse, PWDiSMEC


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
