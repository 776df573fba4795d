"""The search's memory and its next guess: an Optuna study, and a file of its trials that a later run goes on with.

Each trial has a sampler of its own, seeded by the trial's number, so that a search that was interrupted comes to the
same trials as one that was not.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tailwise.atomic import locked, told_when_unwritable
from tailwise.errors import InvalidInput, import_extra
from tailwise.ranges import Range, Ranges
from tailwise.tuning.rungs import FACTOR

_REMOVE = "name another file, or remove it to begin anew"
_GUESSES = 5
"""Trials before the sampler's own: as it was, and C by two steps."""
_ENOUGH_TO_TELL = 8


class Study:
    """What was tried so far; :meth:`ask` says what to try next, and ``keep`` gets each entry for the journal."""

    def __init__(
        self, optuna: Any, ranges: Ranges, seed: int, keep: Callable[[dict[str, Any]], None] = lambda entry: None
    ) -> None:
        self._optuna, self._ranges, self._seed, self._keep = optuna, ranges, seed, keep
        pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=FACTOR)
        self._study = optuna.create_study(direction="maximize", pruner=pruner)
        self._distributions = {name: _distribution(optuna, range_) for name, range_ in ranges.items()}

    @property
    def trials(self) -> list[Any]:
        """What was tried to its end, whether given up on the way or not."""
        return self._study.get_trials(deepcopy=False)

    def ask(self) -> Any:
        """The next trial; ``.params`` are its settings."""
        number = len(self.trials)
        self._study.sampler = self._optuna.samplers.TPESampler(
            seed=self._seed + number, multivariate=True, n_startup_trials=_GUESSES
        )
        guess = self._guess(number)
        if guess is not None:
            self._study.enqueue_trial(guess)
        return self._study.ask(self._distributions)

    def should_stop(self, trial: Any, value: float, rung: int) -> bool:
        """Whether the trial, with this value on the rung, is not among the best of those that came so far."""
        trial.report(value, FACTOR**rung)
        return trial.number > 0 and trial.should_prune()

    def tell(self, trial: Any, value: float | None, facts: dict[str, Any]) -> None:
        """Keep what a trial reached, None where it was given up, and ``facts`` with it."""
        for name, fact in facts.items():
            trial.set_user_attr(name, fact)
        pruned = {"state": self._optuna.trial.TrialState.PRUNED} if value is None else {}
        done = self._study.tell(trial, value, **pruned)
        # PRUNED takes the last value reported for its own.
        entry = {"parameters": done.params, "rungs": list(done.intermediate_values.values()), "value": value}
        self._keep(entry | {"facts": facts})

    def remember(self, entry: dict[str, Any]) -> None:
        """Take in a trial of an earlier run."""
        states = self._optuna.trial.TrialState
        value, rungs = entry["value"], entry["rungs"]
        self._study.add_trial(
            self._optuna.trial.create_trial(
                state=states.PRUNED if value is None else states.COMPLETE,
                value=rungs[-1] if value is None else value,
                params=entry["parameters"],
                distributions=self._distributions,
                intermediate_values={FACTOR**rung: float(reached) for rung, reached in enumerate(rungs)},
                user_attrs=entry["facts"],
            )
        )

    def importance(self) -> dict[str, float]:
        """The share of each parameter in what made a difference on the smallest rung, where every setting was."""
        tried = [t for t in self.trials if t.intermediate_values]
        if len(tried) < _ENOUGH_TO_TELL or len(self._ranges) < 2:
            return {}
        smallest = self._optuna.create_study(direction="maximize")
        for t in tried:
            value = t.intermediate_values[min(t.intermediate_values)]
            smallest.add_trial(
                self._optuna.trial.create_trial(params=t.params, distributions=t.distributions, value=value)
            )
        evaluator = self._optuna.importance.FanovaImportanceEvaluator(seed=self._seed)
        return {
            k: float(v) for k, v in self._optuna.importance.get_param_importances(smallest, evaluator=evaluator).items()
        }

    def _guess(self, number: int) -> dict[str, Any] | None:
        """Cheap guesses come first.

        Everything as it was; then what is searched by ratios, above all C, in two steps: a quarter and three quarters
        of the way along, then half-way to both sides of the best of the three.
        """
        usual = {name: range_.usual for name, range_ in self._ranges.items()}
        by_ratio = {name: range_ for name, range_ in self._ranges.items() if isinstance(range_, Range) and range_.log}
        if number == 0:
            return usual
        if number >= _GUESSES or not by_ratio:
            return None
        steps = [{name: _along(range_, share) for name, range_ in by_ratio.items()} for share in (0.25, 0.75)]
        if number <= len(steps):
            return usual | steps[number - 1]
        first = self.trials[: len(steps) + 1]
        best = max(first, key=lambda t: t.intermediate_values[min(t.intermediate_values)])
        side = -0.125 if number == len(steps) + 1 else 0.125
        return usual | {name: _beside(range_, best.params[name], side) for name, range_ in by_ratio.items()}


def _along(range_: Range, share: float) -> float:
    value = range_.low * (range_.high / range_.low) ** share
    return round(value) if range_.integer else value


def _beside(range_: Range, value: float, share: float) -> float:
    moved = min(max(value * (range_.high / range_.low) ** share, range_.low), range_.high)
    return round(moved) if range_.integer else moved


def _distribution(optuna: Any, range_: Any) -> Any:
    kinds = optuna.distributions
    if not isinstance(range_, Range):
        return kinds.CategoricalDistribution(range_.values)
    if range_.integer:
        return kinds.IntDistribution(int(range_.low), int(range_.high), log=range_.log)
    return kinds.FloatDistribution(range_.low, range_.high, log=range_.log)


@contextmanager
def open_study(path: Path | None, ranges: Ranges, seed: int, facts: dict[str, Any]) -> Iterator[Study]:
    """The study of the file ``path``, begun or gone on with; None keeps nothing. One of other ``facts`` is refused."""
    optuna = import_extra("optuna", "tune", "tune")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if path is None:
        yield Study(optuna, ranges, seed)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path), told_when_unwritable(path), path.open("a+b") as journal:
        journal.seek(0)
        lines = journal.read().split(b"\n")
        # What a killed run wrote by halves has no end of line.
        journal.truncate(journal.tell() - len(lines.pop()))
        entries = [_entry(path, number, line) for number, line in enumerate(lines, start=1)]
        if not entries:
            _append(journal, facts)
        elif entries[0] != facts:
            name = next(name for name in facts if entries[0].get(name) != facts[name])
            raise InvalidInput(
                f"study={str(path)!r} is of another search: its {name} is {entries[0].get(name)!r}, not "
                f"{facts[name]!r}; name another file, or remove it to begin anew"
            )
        study = Study(optuna, ranges, seed, lambda entry: _append(journal, entry))
        for number, entry in enumerate(entries[1:], start=2):
            try:
                study.remember(entry)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise InvalidInput(f"{path}:{number}: this is no trial of the search ({error}); {_REMOVE}") from error
        yield study


def _entry(path: Path, number: int, line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise InvalidInput(f"{path}:{number}: this is no line of a search by tailwise; {_REMOVE}") from error


def _append(journal: IO[bytes], entry: dict[str, Any]) -> None:
    journal.write(json.dumps(entry).encode() + b"\n")
    journal.flush()
    os.fsync(journal.fileno())


def finite(value: float) -> float:
    """The value; a metric that is none, of rows without labels for instance, counts as 0."""
    return value if math.isfinite(value) else 0.0


def is_whole(trial: Any) -> bool:
    """Whether a trial came to all rows."""
    return trial.state.name == "COMPLETE"
