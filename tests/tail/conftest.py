import pytest
from contracts import make_rows


@pytest.fixture(scope="session")
def rows():
    return make_rows(n_samples=300, seed=5)
