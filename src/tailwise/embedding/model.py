"""What the embedding models share: fitting with early stopping and checkpoints, predicting by label retrieval."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise import persistence
from tailwise.base import TopK, XMCModel
from tailwise.embedding.checkpoint import Checkpoint, fingerprint, open_checkpoint
from tailwise.embedding.index import ExactIndex, LabelIndex
from tailwise.embedding.runtime import Processes, one_thread_an_operation, require_torch, resolve_device
from tailwise.embedding.tower import Tower
from tailwise.errors import InvalidInput
from tailwise.metrics import evaluate, parse_metric
from tailwise.parallel import count_jobs, progress
from tailwise.propensity import resolve_propensity
from tailwise.rows import unit_rows
from tailwise.validation import as_rng, check_choice, check_features, check_number

_MOST_VALIDATION_ROWS = 5000
_NOT_OF_THE_RESULT = ("n_jobs", "checkpoint", "device", "index")
_DEFAULT_K = 100
_START_SCALE = 10.0
_SAMPLE_QUERIES = 256


class TwoTowerModel(XMCModel):
    """Rows and labels as vectors in one space; a label's score is their inner product.

    Rows are scaled to unit length first. A subclass validates its parameters in ``_check``, describes its network in
    ``_shape`` and its loss in ``_objective``.
    """

    dim: int
    hidden: Any
    activation: str
    input_dropout: float
    batch_size: int
    epochs: int
    learning_rate: float
    early_stopping: bool
    metric: str
    patience: int
    validation_fraction: float
    propensity: Any
    index: Any
    checkpoint: str | None
    device: str
    random_state: Any
    n_jobs: int | None

    tower_: Tower
    index_: LabelIndex
    history_: list[dict[str, float]]
    best_epoch_: int

    def encode(self, X: Any) -> np.ndarray:
        """The rows' vectors, (n, d) float32: what ``index_`` is searched with."""
        self._check_is_fitted()
        X = check_features(X, n_features=self.n_features_in_, allow_no_rows=True)
        return self.tower_.encode(unit_rows(X), n_jobs=self.n_jobs)

    @property
    def label_vectors_(self) -> np.ndarray:
        """The label vectors, (n_labels, d) float32; zeros for labels that no training row has."""
        vectors = np.zeros((self.n_labels_, self.index_.vectors_.shape[1]), np.float32)
        vectors[self.index_.labels_] = self.index_.vectors_
        return vectors

    @abstractmethod
    def _shape(self, n_features: int, n_labels: int) -> Any:
        """The network's :class:`~tailwise.embedding.network.Shape`."""

    @abstractmethod
    def _objective(self, Y: sparse.csr_array) -> Any:
        """The loss, for the labels ``Y`` of the rows that are trained on."""

    def _check(self) -> None:
        for name in ("dim", "batch_size", "epochs", "patience"):
            check_number(name, getattr(self, name), integer=True, low=1)
        for width in self._hidden():
            check_number("hidden", width, integer=True, low=1)
        check_choice("activation", self.activation, ("relu", "linear"))
        check_number("input_dropout", self.input_dropout, low=0, high=1, open_low=True)
        check_number("learning_rate", self.learning_rate, low=0, open_low=True)
        check_number("validation_fraction", self.validation_fraction, low=0, high=1, open_low=True, open_high=True)
        parse_metric(self.metric)
        count_jobs(self.n_jobs)
        if self.checkpoint is not None and not isinstance(self.checkpoint, str):
            raise InvalidInput(f"checkpoint={self.checkpoint!r} must be a str, because parameters are saved as text")
        if self.index is not None and not isinstance(self.index, LabelIndex):
            raise InvalidInput(f"index={self.index!r}; pass None for exact search, or an object: FaissIndex()")

    def _hidden(self) -> tuple[int, ...]:
        if self.hidden is None:
            return ()
        return tuple(self.hidden) if isinstance(self.hidden, list | tuple) else (self.hidden,)

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        self._check()
        require_torch(type(self).__name__)
        known = np.flatnonzero(self.label_counts_ > 0)
        propensity = resolve_propensity(self.propensity, Y)[known] if self.early_stopping else None
        X, Y = unit_rows(X), sparse.csr_array(Y[:, known])
        with one_thread_an_operation(), Processes(resolve_device(self.device)) as processes:
            run = _Run(self, processes, X, Y, propensity)
            run.train()
            self.history_, self.best_epoch_ = run.history, run.best_epoch
            self.tower_, vectors = run.result()
        if self.index is None:
            self.index_ = ExactIndex(n_jobs=self.n_jobs).build(vectors, known)
        else:
            queries = self.tower_.encode(run.some_rows(_SAMPLE_QUERIES), n_jobs=self.n_jobs)
            self.index_ = clone(self.index).build(vectors, known, queries)

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        return self.index_.search(self.tower_.encode(unit_rows(X), n_jobs=self.n_jobs), k)


class _Run:
    """One training run: held-out rows, epochs, the best weights so far, and the checkpoint."""

    def __init__(
        self,
        model: TwoTowerModel,
        processes: Processes,
        X: sparse.csr_array,
        Y: sparse.csr_array,
        propensity: np.ndarray | None,
    ) -> None:
        from tailwise.embedding import network, training

        self.model, self.processes, self.network, self.propensity = model, processes, network, propensity
        params = model.get_params(deep=False)
        self.digest = fingerprint({k: v for k, v in params.items() if k not in _NOT_OF_THE_RESULT}, X, Y)
        found = open_checkpoint(model.checkpoint, self.digest)
        self.seed = found.seed if found else processes.agree(int(as_rng(model.random_state).integers(2**31)))
        self._split(X, Y)
        self.shape = model._shape(X.shape[1], Y.shape[1])
        self.parameters = network.initial_parameters(self.shape, _START_SCALE, self.seed, processes.device)
        settings = training.Settings(
            model.batch_size, model.epochs, model.learning_rate, model.input_dropout, self.seed, model.n_jobs
        )
        self.trainer = training.Trainer(self.shape, self.parameters, model._objective(self.Y), settings, processes)
        self.epoch, self.best_epoch = 0, 0
        self.history: list[dict[str, float]] = []
        if found:
            self._resume(found)
        else:
            tower = network.to_tower(self.shape, self.parameters)
            network.start_labels_at_their_rows(self.parameters, tower, self.X, self.Y, model.n_jobs)
            self.best = _copy(self.parameters)

    def _split(self, X: sparse.csr_array, Y: sparse.csr_array) -> None:
        """Hold out rows for validation, each label keeping a row to train on; drop rows without labels."""
        labelled = np.flatnonzero(np.diff(Y.indptr) > 0)
        held_out = np.empty(0, np.int64)
        if self.model.early_stopping:
            wanted = min(_MOST_VALIDATION_ROWS, round(self.model.validation_fraction * labelled.size))
            held_out = hold_out(Y, np.random.default_rng([self.seed, 2**32]).permutation(labelled), wanted)
        rows = np.setdiff1d(labelled, held_out)
        self.X, self.Y = X[rows], Y[rows]
        self.X_valid, self.Y_valid = X[held_out], Y[held_out]

    def train(self) -> None:
        """Run the epochs that are left."""
        model, leads = self.model, self.processes.leads
        steps = self.trainer.n_steps(max(1, self.X.shape[0]))
        if not self.X.shape[0]:
            return
        description = f"Training {type(model).__name__}" if leads else ""
        with progress(description, total=(model.epochs - self.epoch) * steps) as advance:
            while self.epoch < model.epochs and not self._is_done():
                loss = self.trainer.run_epoch(
                    self.epoch, self.X, self.Y, lambda value: advance(note=f"loss {value:.4g}{self._note()}")
                )
                self.epoch += 1
                self._record(loss)
                if model.checkpoint is not None:
                    if leads:
                        self._save(Path(model.checkpoint))
                    self.processes.wait()

    def result(self) -> tuple[Tower, np.ndarray]:
        """The best weights as arrays."""
        best = {name: value.detach().clone() for name, value in self.best.items()}
        return self.network.to_tower(self.shape, best), self.network.label_vectors(self.shape, best)

    def some_rows(self, wanted: int) -> sparse.csr_array:
        """Up to ``wanted`` rows: held-out ones, which are like those to come, or training rows where none are."""
        rows = self.X_valid if self.X_valid.shape[0] else self.X
        return rows[:: max(1, -(-rows.shape[0] // wanted))]

    def _record(self, loss: float) -> None:
        entry = {"epoch": float(self.epoch), "loss": loss}
        if self.Y_valid.shape[0]:
            entry[self.model.metric] = self._validate()
        self.history.append(entry)
        metric = self.model.metric
        if metric not in entry or self.epoch == 1 or entry[metric] > self.history[self.best_epoch - 1][metric]:
            self.best, self.best_epoch = _copy(self.parameters), self.epoch

    def _validate(self) -> float:
        metric = parse_metric(self.model.metric)
        tower = self.network.to_tower(self.shape, self.parameters)
        vectors = self.network.label_vectors(self.shape, self.parameters)
        k = min(metric.k or _DEFAULT_K, vectors.shape[0])
        found = (
            ExactIndex(n_jobs=self.model.n_jobs)
            .build(vectors)
            .search(tower.encode(self.X_valid, n_jobs=self.model.n_jobs), k)
        )
        counts = np.bincount(self.Y.indices, minlength=self.Y.shape[1])
        values = evaluate(
            self.Y_valid,
            found.padded(metric.k or k),
            [self.model.metric],
            propensity=self.propensity if metric.scored else None,
            label_counts=counts,
            confidence=None,
        )
        return float(values[self.model.metric].value)

    def _is_done(self) -> bool:
        return bool(self.Y_valid.shape[0]) and self.epoch - self.best_epoch >= self.model.patience

    def _note(self) -> str:
        if not self.history:
            return ""
        metric, last = self.model.metric, self.history[-1]
        return f", epoch {self.epoch}: {metric} {last[metric]:.2f}" if metric in last else f", epoch {self.epoch}"

    def _save(self, path: Path) -> None:
        made = Checkpoint(self.digest, self.seed)
        made.epoch_, made.best_epoch_, made.history_ = self.epoch, self.best_epoch, self.history
        made.parameters_, made.optimizer_, made.best_ = self.parameters, self.trainer.optimizer.state, self.best
        persistence.save(made, path)

    def _resume(self, found: Checkpoint) -> None:
        self.epoch, self.best_epoch = found.epoch_, found.best_epoch_
        self.history, self.best = list(found.history_), _copy(found.best_)
        for target, source in (
            (self.parameters, found.parameters_),
            (self.trainer.optimizer.state, found.optimizer_),
        ):
            for name, value in source.items():
                target[name].copy_(value)


def hold_out(Y: sparse.csr_array, order: np.ndarray, wanted: int) -> np.ndarray:
    """Up to ``wanted`` rows, taken in ``order``, that leave each of their labels another row.

    >>> hold_out(sparse.csr_array(np.array([[1, 0], [1, 0], [0, 1]])), np.array([2, 1, 0]), wanted=3).tolist()
    [1]
    """
    left = np.bincount(Y.indices, minlength=Y.shape[1])
    chosen: list[int] = []
    for row in order:
        if len(chosen) >= wanted:
            break
        labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
        if (left[labels] > 1).all():
            left[labels] -= 1
            chosen.append(int(row))
    return np.asarray(chosen, np.int64)


def _copy(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value.detach().clone() for name, value in parameters.items()}
