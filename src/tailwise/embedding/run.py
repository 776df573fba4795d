"""One training run of a network: held-out rows, epochs, the best weights, and the checkpoint."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from tailwise import persistence
from tailwise.early_stopping import EarlyStopping, HeldOut, Parameters, split_off
from tailwise.embedding.checkpoint import Checkpoint, fingerprint, open_checkpoint
from tailwise.embedding.index import ExactIndex
from tailwise.embedding.network import initial_parameters, label_vectors, start_labels_at_their_rows, to_tower
from tailwise.embedding.runtime import Processes
from tailwise.embedding.tower import Tower
from tailwise.embedding.training import Settings, Trainer
from tailwise.parallel import progress
from tailwise.rows import scaled_rows
from tailwise.validation import as_rng

if TYPE_CHECKING:
    from tailwise.embedding.model import TwoTowerModel

_NOT_OF_THE_RESULT = ("n_jobs", "checkpoint", "device", "index")
_START_SCALE = 10.0


class Run:
    """Trains the network of ``model`` on rows ``X`` and labels ``Y`` (each has a row); a row counts ``weight`` times.

    Of the model it reads parameters; it changes nothing there. A subclass says which network, how to start it and how
    it predicts.

    Attributes
    ----------
    X, Y
        The rows that are trained on: those with labels, less the held-out ones.
    counted
        Y, each entry as often as its row counts.
    held_out : HeldOut
    parameters : dict of tensors
        Changed in place by ``trainer``.
    stopping : EarlyStopping
    average : dict of tensors
        The mean of the weights after each epoch, from the epoch on that a subclass says; empty before.
    history : list of dict
        Loss and validation metric of each epoch.
    """

    parameters: Parameters
    held_out: HeldOut
    trainer: Any

    def __init__(
        self,
        model: Any,
        processes: Processes,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        propensity: np.ndarray | None,
        weight: np.ndarray | None = None,
    ) -> None:
        self.model, self.processes = model, processes
        params = model.get_params(deep=False)
        self.digest = fingerprint({k: v for k, v in params.items() if k not in _NOT_OF_THE_RESULT}, X, Y, weight)
        found = open_checkpoint(model.checkpoint, self.digest)
        self.seed = found.seed if found else processes.agree(int(as_rng(model.random_state).integers(2**31)))
        self._split(X, Y, propensity, weight)
        self.parameters, self.trainer = self._build()
        measure = self._validate if self.held_out.Y.shape[0] else None
        self.stopping = EarlyStopping(model.metric, patience=model.patience, measure=measure, copy=copied)
        self.epoch = 0
        self.average: Parameters = {}
        self.history: list[dict[str, float]] = []
        if found:
            self._resume(found)
        else:
            self._start()
            self.stopping.keep(0, self.parameters)

    @abstractmethod
    def _build(self) -> tuple[Parameters, Any]:
        """First parameters, and what trains them in place: ``n_steps``, ``run_epoch``, ``optimizer.state``."""

    def _start(self) -> None:
        """Change the first parameters by what the rows say."""

    def _average_from(self) -> int | None:
        """The epoch from which on the weights that count are the mean over epochs; None: always the last."""
        return None

    @abstractmethod
    def _validate(self, parameters: Parameters) -> float:
        """The metric on the rows that are held out."""

    def _split(
        self, X: sparse.csr_array, Y: sparse.csr_array, propensity: np.ndarray | None, weight: np.ndarray | None
    ) -> None:
        """Hold out rows for validation, each label keeping a row to train on; drop rows without labels."""
        model = self.model
        fraction = model.validation_fraction if model.early_stopping else 0.0
        rng = np.random.default_rng([self.seed, 2**32])
        rows, self.held_out = split_off(X, Y, fraction, rng, metric=model.metric, propensity=propensity)
        self.X, self.Y = X[rows], Y[rows]
        self.counted = self.Y if weight is None else scaled_rows(self.Y, weight[rows])

    def train(self) -> None:
        """Run the epochs that are left."""
        model, leads = self.model, self.processes.leads
        if not self.X.shape[0]:
            return
        steps = self.trainer.n_steps(self.X.shape[0])
        description = f"Training {type(model).__name__}" if leads else ""
        with progress(description, total=(model.epochs - self.epoch) * steps) as advance:
            while self.epoch < model.epochs and not self.stopping.should_stop:
                loss = self.trainer.run_epoch(
                    self.epoch, self.X, self.counted, lambda value: advance(note=f"loss {value:.4g}{self._note()}")
                )
                self.epoch += 1
                measured = self.stopping.judge(self.epoch, self._weights())
                self.history.append({"epoch": float(self.epoch), "loss": loss, **measured})
                if model.checkpoint is not None:
                    if leads:
                        self._save(Path(model.checkpoint))
                    self.processes.wait()

    def _weights(self) -> Parameters:
        """What counts after an epoch: the weights, or their mean over epochs so far (Izmailov et al. 2018)."""
        start = self._average_from()
        if start is None or self.epoch < start:
            return self.parameters
        if not self.average:
            self.average = copied(self.parameters)
        for name, mean in self.average.items():
            mean += (self.parameters[name] - mean) / (self.epoch - start + 1)
        return self.average

    def some_rows(self, wanted: int) -> sparse.csr_array:
        """Up to ``wanted`` rows: held-out ones, which are like those to come, or training rows where none are."""
        rows = self.held_out.X if self.held_out.X.shape[0] else self.X
        return rows[:: max(1, -(-rows.shape[0] // wanted))]

    def _note(self) -> str:
        if not self.history:
            return ""
        metric, last = self.stopping.metric, self.history[-1]
        return f", epoch {self.epoch}: {metric} {last[metric]:.2f}" if metric in last else f", epoch {self.epoch}"

    def _save(self, path: Path) -> None:
        made = Checkpoint(self.digest, seed=self.seed)
        made.epoch_, made.best_epoch_, made.history_ = self.epoch, self.stopping.best_epoch, self.history
        made.parameters_, made.optimizer_ = self.parameters, self.trainer.optimizer.state
        made.best_, made.average_ = self.stopping.best, self.average
        persistence.save(made, path)

    def _resume(self, found: Checkpoint) -> None:
        found.check_fits(self.parameters, self.trainer.optimizer.state)
        self.epoch = self.stopping.epoch = found.epoch_
        self.history, self.average = list(found.history_), copied(found.average_)
        best = self.history[found.best_epoch_ - 1]
        self.stopping.keep(found.best_epoch_, found.best_, best.get(self.stopping.metric))
        for target, source in (
            (self.parameters, found.parameters_),
            (self.trainer.optimizer.state, found.optimizer_),
        ):
            for name, value in source.items():
                target[name].copy_(value)


def copied(parameters: Parameters) -> Parameters:
    """A copy that training does not change."""
    return {name: tensor.detach().clone() for name, tensor in parameters.items()}


class TwoTowerRun(Run):
    """Trains the two towers that a :class:`~tailwise.embedding.model.TwoTowerModel` describes, on unit rows."""

    def _build(self) -> tuple[Parameters, Any]:
        model: TwoTowerModel = self.model
        self.shape = model.build_shape(self.X.shape[1], self.Y.shape[1])
        parameters = initial_parameters(self.shape, _START_SCALE, self.seed, self.processes.device)
        settings = Settings(
            batch_size=model.batch_size,
            epochs=model.epochs,
            learning_rate=model.learning_rate,
            keep_probability=model.input_keep_probability,
            seed=self.seed,
            n_jobs=model.n_jobs,
        )
        return parameters, Trainer(self.shape, parameters, model.build_objective(self.Y), settings, self.processes)

    def _start(self) -> None:
        if not self.model.starts_at_rows:
            return
        tower = to_tower(self.shape, self.parameters)
        start_labels_at_their_rows(self.parameters, tower, self.X, self.counted, self.model.n_jobs)

    def _validate(self, parameters: Parameters) -> float:
        tower, jobs = to_tower(self.shape, parameters), self.model.n_jobs
        index = ExactIndex(n_jobs=jobs).build(label_vectors(self.shape, parameters))
        return self.held_out.measure(lambda X, k: index.search(tower.encode(X, n_jobs=jobs), k))

    def result(self) -> tuple[Tower, np.ndarray]:
        """The row side and the label vectors of the best weights."""
        return to_tower(self.shape, self.stopping.best), label_vectors(self.shape, self.stopping.best)
