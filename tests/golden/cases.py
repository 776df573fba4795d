"""Every public model with its default parameters, on rows that never change."""

from __future__ import annotations

import numpy as np
from llvmlite.binding import get_host_cpu_name
from scipy import sparse

import tailwise as tw
from tailwise.kernels.text.names import COUNT, N_FACTS

PROCESSOR = get_host_cpu_name()
"""What kernels are compiled for: on another kind sums are rounded otherwise."""


def make_synthetic():
    """600 rows for training and 200 to predict, 120 features, 60 labels of long-tailed frequency; numpy alone."""
    rng = np.random.default_rng(20_24)
    n, n_features, n_labels = 800, 120, 60
    frequency = 1 / np.arange(1, n_labels + 1)
    X, Y = np.zeros((n, n_features), np.float32), np.zeros((n, n_labels), np.float32)
    words = [rng.choice(n_features, size=6, replace=False) for _ in range(n_labels)]
    for row in range(n):
        chosen = rng.choice(n_labels, size=3, replace=False, p=frequency / frequency.sum())
        Y[row, chosen] = 1
        for label in chosen:
            X[row, rng.choice(words[label], size=4, replace=False)] += rng.integers(1, 5, size=4)
        X[row, rng.choice(n_features, size=5, replace=False)] += 1
    X, Y = sparse.csr_array(X), sparse.csr_array(Y)
    return X[:600], Y[:600], X[600:]


def load_eurlex():
    """1,000 training rows and 200 test rows of EURLex-4K."""
    eurlex = tw.load_dataset("eurlex-4k")
    return eurlex.X_train[:1000], eurlex.Y_train[:1000], eurlex.X_test[:200]


SYNTHETIC_ONLY = ("XMLCNN", "AttentionXML", "MatchedNames")
"""Models to which a value of X is a token or a fact of a label: the weights of EURLex-4K are none."""


class Finds(tw.MatchedNames):
    """Every two features of the synthetic rows become two facts of one label."""

    def fit(self, X, Y):
        return super().fit(self._facts(X), Y)

    def predict_topk(self, X, k):
        return super().predict_topk(self._facts(X), k)

    def _facts(self, X):
        columns = X.indices // 2 * N_FACTS + COUNT + X.indices % 2
        return sparse.csr_array((X.data, columns, X.indptr), shape=(X.shape[0], X.shape[1] // 2 * N_FACTS))


CASES = {
    "Popularity": lambda: tw.Popularity(),
    "Centroid": lambda: tw.Centroid(),
    "NearestRows": lambda: tw.NearestRows(),
    "DiSMEC": lambda: tw.DiSMEC(random_state=0),
    "DiSMEC logistic": lambda: tw.DiSMEC(loss="logistic", random_state=0),
    "PWDiSMEC": lambda: tw.PWDiSMEC(random_state=0),
    "ProXML": lambda: tw.ProXML(random_state=0),
    "PPDSparse": lambda: tw.PPDSparse(random_state=0),
    "PDSparse": lambda: tw.PDSparse(random_state=0),
    "Parabel": lambda: tw.Parabel(random_state=0),
    "Bonsai": lambda: tw.Bonsai(random_state=0),
    "FastXML": lambda: tw.FastXML(random_state=0),
    "PfastXML": lambda: tw.PfastXML(random_state=0),
    "PfastreXML": lambda: tw.PfastreXML(random_state=0),
    "GLaS": lambda: tw.GLaS(random_state=0),
    "SampledSoftmax": lambda: tw.SampledSoftmax(random_state=0),
    "CPLST": lambda: tw.CPLST(),
    "LEML": lambda: tw.LEML(),
    "MLCSSP": lambda: tw.MLCSSP(random_state=0),
    "CS": lambda: tw.CS(random_state=0),
    "SLEEC": lambda: tw.SLEEC(random_state=0),
    "RobustXML": lambda: tw.RobustXML(),
    "LPSR": lambda: tw.LPSR(tw.DiSMEC(random_state=0), random_state=0),
    "WSABIE": lambda: tw.WSABIE(random_state=0),
    "XMLCNN": lambda: tw.XMLCNN(n_filters=16, bottleneck=64, word_dim=16, epochs=3, random_state=0),
    "AttentionXML": lambda: tw.AttentionXML(16, word_dim=16, flat_labels=20, epochs=3, random_state=0),
    "MatchedNames": lambda: Finds(random_state=0),
    "PropensityReranker": lambda: tw.PropensityReranker(tw.DiSMEC(random_state=0)),
    "CentroidReranker": lambda: tw.CentroidReranker(tw.DiSMEC(random_state=0)),
    "Calibrated": lambda: tw.Calibrated(tw.DiSMEC(random_state=0), random_state=0),
    "TailCalibrated": lambda: tw.TailCalibrated(tw.DiSMEC(random_state=0), random_state=0),
    "RankNet": lambda: tw.RankNet(tw.DiSMEC(random_state=0), random_state=0),
    "TailAugmented": lambda: tw.TailAugmented(tw.DiSMEC(random_state=0), random_state=0),
    "Columns": lambda: tw.Columns(tw.DiSMEC(random_state=0), columns=[(0, 60)]),
    "Ensemble": lambda: tw.Ensemble([tw.DiSMEC(random_state=0), tw.Centroid()], random_state=0),
    "Stacked": lambda: tw.Stacked([tw.DiSMEC(random_state=0), tw.Bonsai(random_state=0)], random_state=0),
    "Sublinear": lambda: tw.Sublinear(tw.DiSMEC(random_state=0)),
    "TradeOff": lambda: tw.TradeOff(tw.DiSMEC(random_state=0), random_state=0),
}
