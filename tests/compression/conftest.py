import numpy as np
import pytest
from contracts import make_rows

from tailwise.rows import unit_rows


@pytest.fixture(scope="session")
def rows():
    """X at unit length and Y, sparse; 160 rows, 30 features, 12 labels, the first without rows."""
    X, Y = make_rows(160, 30, 12)
    return unit_rows(X), Y


@pytest.fixture(scope="session")
def dense(rows):
    """The same as float64 arrays."""
    return tuple(part.toarray().astype(np.float64) for part in rows)


@pytest.fixture(scope="session")
def scores_of():
    """Every label's score as a (n, n_labels) array, from the model's whole ranking."""

    def scores(model, X):
        top = model.predict_topk(X, model.n_labels_)
        found = np.full((X.shape[0], model.n_labels_), -np.inf)
        for i, (labels, values) in enumerate(zip(*top, strict=True)):
            found[i, labels[labels >= 0]] = values[labels >= 0]
        return found

    return scores
