"""The networks keep the contract of every model, on sequences."""

import numpy as np
import pytest
from contracts import ModelContract
from scipy import sparse

from tailwise import XMLCNN, AttentionXML

pytest.importorskip("torch")


def make_sequences(n_samples=120, n_columns=40, n_labels=15, seed=0):
    """Rows of up to 40 tokens of 60, of which each label has three of its own; label 0 has no row, label 1 has all."""
    rng = np.random.default_rng(seed)
    X, Y = np.zeros((n_samples, n_columns), np.float32), np.zeros((n_samples, n_labels), np.float32)
    for i in range(n_samples):
        pair = rng.choice(np.arange(2, n_labels), size=2, replace=False)
        Y[i, pair] = 1
        tokens = np.concatenate([3 * pair, 3 * pair + 1, 3 * pair + 2, rng.integers(46, 61, rng.integers(0, 30))])
        X[i, : tokens.size] = rng.permutation(tokens)
    Y[:, 1] = 1
    return sparse.csr_array(X), sparse.csr_array(Y)


SMALL = {"word_dim": 12, "epochs": 8, "batch_size": 16, "learning_rate": 0.02, "patience": 8}


class TestXMLCNN(ModelContract):
    data = staticmethod(make_sequences)

    def make(self, **params):
        return XMLCNN(**{"widths": (1, 2), "n_filters": 8, "bottleneck": 16, "dropout": 0.1, **SMALL, **params})


class TestAttentionXML(ModelContract):
    data = staticmethod(make_sequences)

    def make(self, **params):
        return AttentionXML(**{"hidden": 8, "dropout": 0.1, **SMALL, **params})


class TestAttentionXMLGrouped(ModelContract):
    data = staticmethod(make_sequences)

    def make(self, **params):
        return AttentionXML(**{"hidden": 8, "dropout": 0.1, "flat_labels": 5, "beam": 2, **SMALL, **params})
