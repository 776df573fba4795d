"""What the experiments on embeddings share: their data, the paper's setting at a size, judging, mean and deviation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.data import Dataset, load_dataset, make_longtail
from tailwise.experiments.running import Record
from tailwise.metrics import evaluate
from tailwise.propensity import JainPropensity
from tailwise.validation import check_labels

METRICS = tuple(f"{metric}@{k}" for metric in ("p", "psp") for k in (1, 3, 5))
ACCURACY = "p@1"
"""What the paper calls accuracy."""
LOSSES = {"margin": "summed margin", "negative_mining": "mined negatives", "softmax": "softmax"}
"""What the table calls the losses."""


def with_dataset(settings: Record, options: Record) -> Record:
    """The settings with the data set that the option ``data`` names."""
    return {**settings, **({"dataset": options["data"]} if "data" in options else {})}


def load_rows(settings: Record, n_jobs: int | None) -> Dataset:
    """The data set that the settings name; ``"synthetic"`` is a small one for a look."""
    if settings["dataset"] == "synthetic":
        return make_longtail(800, 400, 60, propensity=1.0, random_state=settings["seed"], n_jobs=n_jobs)
    return load_dataset(settings["dataset"])


def accuracy(model: Any, X: sparse.csr_array, Y: Any) -> float:
    """P@1 in percent over the rows that have a label."""
    labels = check_labels(Y)
    some = np.diff(labels.indptr) > 0
    return float(evaluate(labels[some], model.predict_topk(X[some], 1), [ACCURACY], confidence=None)[ACCURACY].value)


def judged(model: Any, data: Dataset) -> Record:
    """A fitted model's figures on test rows, its P@1 on training rows, and the gap between them."""
    propensity = JainPropensity().fit(data.Y_train)
    found = evaluate(
        data.Y_test, model.predict_topk(data.X_test, 5), list(METRICS), propensity=propensity, confidence=None
    )
    training = accuracy(model, data.X_train, data.Y_train)
    return {
        **{name: float(found[name].value) for name in METRICS},
        "train": training,
        "gap": training - float(found[ACCURACY].value),
    }


def facts(settings: Record, data: Dataset) -> str:
    """On what data, from which setting and with how many seeds an experiment ran."""
    base = ", ".join(f"{name} = {value}" for name, value in settings["base"].items())
    seeds = f"{settings['repeats']} seeds, P@1 in percent"
    return f"{data.name or 'synthetic data'}, the paper's setting with {base}; {seeds}."


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and the standard deviation between repeats (0 for a single one).

    >>> mean_and_deviation([1.0, 3.0])
    (2.0, 1.4142)
    """
    several = np.asarray(values, np.float64)
    return round(float(several.mean()), 4), round(float(several.std(ddof=1)), 4) if several.size > 1 else 0.0
