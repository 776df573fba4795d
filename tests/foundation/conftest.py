import pytest
from sklearn.base import BaseEstimator

from tailwise import persistence


class Box(persistence.Saveable, BaseEstimator):
    """Holds any value; ``check`` is what its restored state must satisfy."""

    check = None

    def __init__(self, param=None):
        self.param = param

    def _check_state(self):
        if type(self).check is not None:
            type(self).check(self)


Box.__module__ = "tailwise.baselines"


@pytest.fixture
def box():
    import tailwise.baselines

    # Not through monkeypatch: a test may undo its own patches and go on.
    tailwise.baselines.Box = Box

    def make(value, param=None):
        made = Box(param)
        made.value_ = value
        return made

    yield make
    del tailwise.baselines.Box
