"""What is left of a time that training may take goes into settings: those of a chosen model, by rows held out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from scipy import sparse

from tailwise.base import XMCModel
from tailwise.parallel import count_jobs
from tailwise.parameters import signature_of
from tailwise.propensity import Propensity
from tailwise.tail import PropensityReranker
from tailwise.text.effort import Plan
from tailwise.tuning import Trial, tune
from tailwise.tuning.compositions import own_ranges, parts_of
from tailwise.tuning.result import USUAL, shown_value

_MOST_TRIALS = 100
_FITS = 2.25
"""What choosing takes at least, in fits of the model: one on most rows, and that of the best on all."""


def choose_settings(
    plan: Plan,
    X: sparse.csr_array,
    Y: sparse.csr_array,
    *,
    minutes: float,
    tail: float,
    propensity: Propensity | None,
    random_state: int | None,
    tell: Callable[[str], Any],
) -> XMCModel:
    """The plan's model with the settings that are best in P@5, or in PSP@5 where ``tail`` leans to rare labels.

    ``minutes`` are of this machine's clock, and the fit of the model on all rows, which is left to the caller, fits in.
    A parameter that is not at its class's default was set by somebody, and stays. ``tell`` is told what was tried.
    """
    needed = plan.minutes / count_jobs(None)
    if minutes < _FITS * needed:
        left = max(0.0, minutes)
        tell(f"settings stay as they are: training alone takes about {needed:.1f} minutes, and {left:.1f} are left")
        return plan.model
    free = _free_parameters(plan.model)
    if not free:
        tell("settings stay as they are: the model has none that are worth trying")
        return plan.model
    metric = "psp@5" if tail else "p@5"
    judged = PropensityReranker(plan.model, tail=tail, propensity=propensity) if tail else plan.model
    prefix = "base__" if tail else ""

    def told(trial: Trial) -> None:
        setting = _shown({name.removeprefix(prefix): value for name, value in trial.parameters.items()})
        end = "" if trial.whole else ", given up"
        tell(f"trial {trial.number}: {setting}: {metric} {trial.values[-1]:.2f}{end} ({trial.seconds:.1f} s)")

    begun = time.monotonic()
    found = tune(
        judged,
        X,
        Y,
        parameters=[prefix + name for name in free],
        metric=metric,
        n_trials=_MOST_TRIALS,
        minutes=minutes,
        then_fit=True,
        propensity=propensity,
        random_state=random_state or 0,
        on_trial=told,
    )
    changed = {
        name.removeprefix(prefix): value
        for name, value in found.parameters.items()
        if value != found.trials[USUAL].parameters[name]
    }
    usual, best = (found.trials[number].values[-1] for number in (USUAL, found.best))
    chosen = f"{_shown(changed)}, {metric} {usual:.2f} → {best:.2f} there" if changed else "as they were"
    seconds = time.monotonic() - begun
    tell(f"chose settings in {seconds:.0f} s, of {len(found.trials):,} tried on rows held out: {chosen}")
    model = found.model.get_params(deep=False)["base"] if tail else found.model
    assert isinstance(model, XMCModel)
    return model


def _free_parameters(model: XMCModel) -> list[str]:
    """What is worth trying and not set by anybody."""
    parts = dict(parts_of(model))
    free = []
    for name in own_ranges(model):
        prefix = max((prefix for prefix in parts if name.startswith(prefix)), key=len)
        part, parameter = parts[prefix], name.removeprefix(prefix)
        if getattr(part, parameter) == signature_of(type(part))[parameter].default:
            free.append(name)
    return free


def _shown(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name} {shown_value(value)}" for name, value in parameters.items())
