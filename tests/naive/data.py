"""Plain twins of the readers and writers: split, int, float, and Python lists."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def read_rows(text, n_features, n_labels):
    """Rows of the form ``l1,l2 f:v f:v`` as dense X and Y."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    X = np.zeros((len(lines), n_features), np.float32)
    Y = np.zeros((len(lines), n_labels), np.float32)
    for row, line in enumerate(lines):
        labels, _, features = line.rstrip("\r").partition(" ")
        for label in labels.split(",") if labels else []:
            Y[row, int(label)] = 1
        for pair in features.split():
            index, value = pair.split(":")
            X[row, int(index)] = np.float32(float(value))
    return X, Y


def write_rows(X, Y, base=0):
    """The text of sparse rows, each value in the shortest form that Python knows for its float32."""
    lines = []
    X, Y = sparse.csr_array(X), sparse.csr_array(Y)
    for row in range(X.shape[0]):
        labels = ",".join(str(label) for label in Y.indices[Y.indptr[row] : Y.indptr[row + 1]])
        a, b = X.indptr[row], X.indptr[row + 1]
        pairs = [f"{i + base}:{v!s}" for i, v in zip(X.indices[a:b], X.data[a:b], strict=True)]
        lines.append(" ".join([labels, *pairs]) or " ")
    return "".join(f"{line}\n" for line in lines)


def observed_counts(complete, n_rows, a, b):
    """n that solves n = n* p(n) for Jain's curve, one label at a time, by repeated substitution."""
    c = (np.log(n_rows) - 1) * (b + 1) ** a
    found = []
    for n_star in complete:
        n = float(n_star)
        for _ in range(2000):
            n = 0.5 * n + 0.5 * n_star / (1 + c * (n + b) ** -a)
        found.append(n)
    return np.array(found)
