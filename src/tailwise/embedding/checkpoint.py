"""Checkpoints: a training run as a folder, from which it continues to the same result."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from tailwise import persistence
from tailwise.errors import InvalidInput


class Checkpoint(persistence.Saveable, BaseEstimator):
    """All that a run needs to continue after an epoch; tensors are kept as safetensors.

    Parameters
    ----------
    fingerprint : str
        Digest of the model's parameters and of the training data.
    seed : int
        What the run drew its random numbers from.

    Attributes
    ----------
    epoch_, best_epoch_ : int
        Epochs done, and the one whose weights validated best.
    parameters_, optimizer_, best_ : dict of tensors
    history_ : list of dict
    """

    epoch_: int
    best_epoch_: int
    parameters_: dict[str, Any]
    optimizer_: dict[str, Any]
    best_: dict[str, Any]
    history_: list[dict[str, float]]

    def __init__(self, fingerprint: str = "", *, seed: int = 0) -> None:
        self.fingerprint = fingerprint
        self.seed = seed


def fingerprint(params: dict[str, Any], X: sparse.csr_array, Y: sparse.csr_array) -> str:
    """A digest of what decides a run's result."""
    digest = hashlib.sha256(json.dumps({k: repr(v) for k, v in sorted(params.items())}).encode())
    for part in (X.data, X.indices, X.indptr, Y.indices, Y.indptr):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def open_checkpoint(path: str | Path | None, expected: str) -> Checkpoint | None:
    """The checkpoint at ``path``, or None where there is none yet; refuses one of another run."""
    if path is None or not Path(path).exists():
        return None
    found = persistence.load(path)
    if not isinstance(found, Checkpoint):
        raise InvalidInput(
            f"checkpoint={str(path)!r} holds a {type(found).__name__}, not a checkpoint; choose another path"
        )
    if found.fingerprint != expected:
        raise InvalidInput(
            f"checkpoint={str(path)!r} is of a run with other parameters or other data; "
            "remove it to start anew, or choose another path"
        )
    return found
