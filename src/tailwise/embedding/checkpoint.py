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
from tailwise.errors import InvalidInput, ModelFileError
from tailwise.persistence.checks import check_kind, check_that
from tailwise.validation import check_number


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
    parameters_, optimizer_, best_, average_ : dict of tensors
    history_ : list of dict
    """

    epoch_: int
    best_epoch_: int
    parameters_: dict[str, Any]
    optimizer_: dict[str, Any]
    best_: dict[str, Any]
    average_: dict[str, Any]
    history_: list[dict[str, float]]

    def __init__(self, fingerprint: str = "", *, seed: int = 0) -> None:
        self.fingerprint = fingerprint
        self.seed = seed

    def _check_state(self) -> None:
        check_kind("fingerprint", self.fingerprint, str)
        check_number("seed", self.seed, integer=True, low=0)
        check_that(hasattr(self, "average_"), "average_ is missing, as in an earlier version; remove it to start anew")
        for name in ("parameters_", "optimizer_", "best_", "average_"):
            check_kind(name, getattr(self, name, None), dict)
        check_number("epoch_", self.epoch_, integer=True, low=1)
        check_number("best_epoch_", self.best_epoch_, integer=True, low=0, high=self.epoch_)
        n_epochs = len(check_kind("history_", self.history_, list))
        check_that(n_epochs == self.epoch_, f"history_ has {n_epochs} epochs, not {self.epoch_}")
        for entry in self.history_:
            check_kind("an epoch of history_", entry, dict)
        self.check_fits(self.parameters_, self.optimizer_)

    def check_fits(self, parameters: dict[str, Any], optimizer: dict[str, Any]) -> None:
        """Refuse tensors of other names, shapes or types than a run has, which would not all be noticed later."""
        for name, kept, own in (
            ("parameters_", self.parameters_, parameters),
            ("best_", self.best_, parameters),
            ("average_", self.average_, parameters if self.average_ else {}),
            ("optimizer_", self.optimizer_, optimizer),
        ):
            if forms_of(kept) != forms_of(own):
                raise ModelFileError(f"the checkpoint's {name} is not of this run; remove it to start anew")


def forms_of(tensors: Any) -> dict[str, Any]:
    """Shape and dtype of each of a dict of tensors; nothing where it is none."""
    return {
        name: (tuple(getattr(value, "shape", ())), getattr(value, "dtype", None))
        for name, value in (tensors.items() if isinstance(tensors, dict) else ())
    }


def fingerprint(
    params: dict[str, Any], X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None = None
) -> str:
    """A digest of what decides a run's result."""
    digest = hashlib.sha256(json.dumps({k: repr(v) for k, v in sorted(params.items())}).encode())
    for part in (X.data, X.indices, X.indptr, Y.indices, Y.indptr, *(() if weight is None else (weight,))):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def open_checkpoint(path: str | Path | None, expected: str) -> Checkpoint | None:
    """The checkpoint at ``path``, or None where there is none yet; refuses one of another run."""
    if path is None:
        return None
    try:
        if not Path(path).exists():
            return None
    except OSError as error:
        raise InvalidInput(f"checkpoint={str(path)[:80]!r} cannot be used ({error.strerror})") from error
    found = persistence.load(path)
    if not isinstance(found, Checkpoint):
        raise InvalidInput(
            f"checkpoint={str(path)!r} holds a {type(found).__name__}, not a checkpoint; choose another path"
        )
    if not hasattr(found, "epoch_"):
        raise ModelFileError(f"checkpoint={str(path)!r} holds no epoch; remove it to start anew")
    if found.fingerprint != expected:
        raise InvalidInput(
            f"checkpoint={str(path)!r} is of a run with other parameters or other data; "
            "remove it to start anew, or choose another path"
        )
    return found
