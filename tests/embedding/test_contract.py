"""The models keep the contract of every model."""

from contracts import ModelContract

from tailwise.embedding import WSABIE, GLaS, SampledSoftmax


class TestGLaS(ModelContract):
    def make(self, **params):
        return GLaS(**{"dim": 16, "epochs": 15, "batch_size": 64, "learning_rate": 0.02, **params})


class TestSampledSoftmax(ModelContract):
    def make(self, **params):
        return SampledSoftmax(
            **{"dim": 16, "epochs": 15, "batch_size": 64, "n_negatives": 16, "learning_rate": 0.02, **params}
        )


class TestWSABIE(ModelContract):
    def make(self, **params):
        return WSABIE(**{"dim": 16, **params})
