"""Parameters chosen by data: which settings of a model, or of models within models, rows held out find best."""

from tailwise.tuning.result import Trial, Tuning
from tailwise.tuning.search import tune

__all__ = ["Trial", "Tuning", "tune"]
