"""``tune``: the settings of a model that rows held out find best."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import XMCModel
from tailwise.data.splitting import split_rows
from tailwise.display import describe
from tailwise.metrics import evaluate
from tailwise.metrics.names import METRIC, parse_metric
from tailwise.parameters import Integer, Number, OrNone, check_parameters
from tailwise.propensity import resolve_propensity
from tailwise.tail.tradeoff import MaxLoss
from tailwise.tuning.compositions import chosen_ranges, with_parameters
from tailwise.tuning.result import USUAL, Trial, Tuning
from tailwise.tuning.rungs import Rung, at_depth, ladder
from tailwise.tuning.study import Study, finite, is_whole, open_study
from tailwise.validation import as_rng, check_features, check_labels, label_counts

N_TRIALS = 30


def tune(
    model: XMCModel,
    X: Any,
    Y: Any,
    *,
    parameters: Any = None,
    metric: str = "p@5",
    max_loss: dict[str, float] | None = None,
    n_trials: int = N_TRIALS,
    minutes: float | None = None,
    then_fit: bool = False,
    validation_fraction: float = 0.2,
    propensity: Any = None,
    study: str | Path | None = None,
    random_state: int = 0,
    on_trial: Callable[[Trial], Any] = lambda trial: None,
) -> Tuning:
    """Choose parameters of ``model``, or of the models it is made of, on rows held out of X and Y.

    Settings are tried on a ninth of rows and labels or less, the best third of them on three times as much, and so on
    (successive halving). The first trial is the model as it is; then C, or whatever is searched by ratios, is moved in
    two steps; what follows is guessed from what was seen (the tree-structured Parzen estimator of Optuna, extra
    ``tune``). The model is not fitted: ``tune(…).model.fit(X, Y)``.

    Parameters
    ----------
    model : XMCModel
        Any model, or wrappers around models; it is cloned.
    X, Y : matrices
        The training rows.
    parameters : None, list or dict
        What to choose: None is everything that the model and its parts find worth trying; a list names some of it; a
        dict gives ranges too, such as ``{"base__C": (0.1, 10), "members__0__loss": ["hinge", "logistic"]}``.
    metric : str
        What to maximise.
    max_loss : dict or None
        Points that may be lost of other metrics against the model as it is, such as ``{"p@1": 1.0}``.
    n_trials : int
        How many settings to try, those of an earlier run of the same ``study`` among them.
    minutes : float or None
        No trial begins later than this; what is chosen then depends on the machine's speed.
    then_fit : bool
        Whether the best is to be fitted on all rows within ``minutes`` too: no trial begins that, as long as the first,
        would leave no time for it.
    validation_fraction : float
        The share of the rows to judge by.
    propensity : Propensity, array or None
        For propensity-scored metrics; None is ``JainPropensity()``, fitted to all rows.
    study : path or None
        A file that keeps the trials: the same call goes on where it was.
    random_state : int
        The same number gives the same trials.
    on_trial : function
        Called with each :class:`Trial` as it ends.

    Examples
    --------
    >>> from tailwise import NearestRows, make_longtail
    >>> data = make_longtail(600, 200, 30, random_state=0)
    >>> found = tune(NearestRows(), data.X_train, data.Y_train, parameters={"k": (2, 60)}, n_trials=6)
    >>> found.gain >= 0 and 2 <= found.parameters["k"] <= 60
    True
    """
    check_parameters(model)
    METRIC.check("metric", metric)
    max_loss = OrNone(MaxLoss()).check("max_loss", max_loss) or {}
    Integer(low=1).check("n_trials", n_trials)
    OrNone(Number(low=0)).check("minutes", minutes)
    seed = Integer(low=0).check("random_state", random_state)
    ranges = chosen_ranges(model, parameters)
    X = check_features(X, owner="tune")
    Y = check_labels(Y, n_rows=X.shape[0])
    split = split_rows(Y, validation_fraction, random_state=seed)
    known = np.asarray(resolve_propensity(propensity, Y), np.float64)
    judge = _Judge(X, Y, ladder(Y, split.train, split.test, as_rng(seed)), known, metric, max_loss)
    facts = {
        "model": describe(model),
        "data": _digest(X, Y),
        "metric": metric,
        "max_loss": max_loss,
        "parameters": {name: str(range_) for name, range_ in ranges.items()},
        "random_state": seed,
        "validation_fraction": validation_fraction,
    }
    begun = time.monotonic()
    with open_study(None if study is None else Path(study), ranges, seed, facts) as trials:
        while len(trials.trials) < n_trials:
            if trials.trials and minutes is not None:
                first = trials.trials[USUAL].user_attrs["seconds"]
                ahead = first * (1 + 1 / (1 - validation_fraction)) if then_fit else 0.0
                if time.monotonic() - begun + ahead > 60 * minutes:
                    break
            on_trial(_try(trials, model, judge))
        kept, importance = trials.trials, trials.importance()
    found = [_trial(number, frozen) for number, frozen in enumerate(kept)]
    best = max((t.number for t in found if t.whole), key=lambda number: kept[number].value)
    intervals = {number: tuple(kept[number].user_attrs["interval"]) for number in (USUAL, best)}
    chosen = with_parameters(model, found[best].parameters)
    return Tuning(chosen, metric, max_loss, found, best, intervals, ranges, importance)


class _Judge(NamedTuple):
    """Fits a model on the rows of a rung and judges it on those held out."""

    X: sparse.csr_array
    Y: sparse.csr_array
    rungs: list[Rung]
    propensity: np.ndarray
    metric: str
    max_loss: dict[str, float]

    def values(self, model: XMCModel, rung: int) -> tuple[dict[str, float], tuple[float, float]]:
        """Every metric that counts, in percent, and the interval of the first."""
        own = self.rungs[rung]
        X_train, Y_train, X_held_out, Y_held_out = own.matrices(self.X, self.Y)
        share = own.labels.size / self.Y.shape[1]
        names = {name: at_depth(name, share) for name in (self.metric, *self.max_loss)}
        width = max(parse_metric(name).k or 5 for name in names.values())
        top = model.fit(X_train, Y_train).predict_topk(X_held_out, width)
        counts, propensity = label_counts(self.Y)[own.labels], self.propensity[own.labels]
        result = evaluate(Y_held_out, top, set(names.values()), propensity=propensity, label_counts=counts)
        first = result[names[self.metric]]
        values = {name: finite(result[shown].value) for name, shown in names.items()}
        return values, (finite(first.low), finite(first.high))


def _try(trials: Study, model: XMCModel, judge: _Judge) -> Trial:
    """One setting, up the rungs until it is given up or has come to all rows."""
    before = trials.trials
    number = len(before)
    trial = trials.ask()
    made = with_parameters(model, trial.params)
    begun = time.monotonic()
    values: list[dict[str, float]] = []
    interval = (0.0, 0.0)
    lost: dict[str, float] = {}
    worth: float | None = None
    for rung in range(len(judge.rungs)):
        found, interval = judge.values(made, rung)
        values.append(found)
        usual = found if number == USUAL else before[USUAL].user_attrs["values"][rung]
        lost = {name: usual[name] - found[name] for name in judge.max_loss}
        worth = _worth(found[judge.metric], lost, judge.max_loss)
        if trials.should_stop(trial, worth, rung) and rung + 1 < len(judge.rungs):
            worth = None
            break
    facts = {"values": values, "lost": lost, "seconds": time.monotonic() - begun, "interval": list(interval)}
    trials.tell(trial, worth, facts)
    return _trial(number, trials.trials[number])


def _worth(value: float, lost: dict[str, float], max_loss: dict[str, float]) -> float:
    """The metric; where more is lost of another than may be, how much too much, negative."""
    worst = max((lost[name] - points for name, points in max_loss.items()), default=0.0)
    return -worst if worst > 0 else value


def _trial(number: int, frozen: Any) -> Trial:
    kept = frozen.user_attrs
    metric = next(iter(kept["values"][0]))
    values = [found[metric] for found in kept["values"]]
    return Trial(number, dict(frozen.params), values, dict(kept["lost"]), kept["seconds"], is_whole(frozen))


def _digest(X: sparse.csr_array, Y: sparse.csr_array) -> str:
    whole = hashlib.sha256(repr((X.shape, Y.shape)).encode())
    for array in (X.indptr, X.indices, X.data, Y.indptr, Y.indices):
        whole.update(np.ascontiguousarray(array).data)
    return whole.hexdigest()[:16]
