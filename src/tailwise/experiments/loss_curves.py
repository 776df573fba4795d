"""Experiment ``curves``: what an observed label pays by its score, in plain, unbiased and convex losses.

After figure 2 of *Unbiased Loss Functions for Extreme Classification With Missing Labels*, from the definitions of
:mod:`tailwise.losses`: for the 0-1 loss the unbiased form (equation 37) and the one shifted by a constant (38); for the
others the unbiased form (4) and the convex one (41, 42); for the squared hinge also the square of the convex hinge,
which is something else. Nothing is trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tailwise.experiments.running import Record, Summary
from tailwise.losses import LOSSES, convex_surrogate, convexity, get_loss, unbiased
from tailwise.losses.missing import look_at

OPTIONS = ()
SHOWN = ("zero_one", "hinge", "squared_hinge", "cross_entropy", "squared_error")
_STYLES = {"plain": "--", "unbiased": ":", "convex": "-", "unbiased, shifted": "-", "square of the convex hinge": "-."}


def choose(size: str, options: Record) -> Record:
    """Propensities and how finely the scores are spaced."""
    return {"propensities": [0.25, 0.5, 0.75], "reach": 2.5, "steps": 51 if size == "quick" else 101}


def cells(settings: Record) -> list[Record]:
    """Every loss at every propensity."""
    return [{"loss": loss, "propensity": p} for loss in SHOWN for p in settings["propensities"]]


def prepare(settings: Record, n_jobs: int | None) -> Record:
    """The settings."""
    return settings


def compute(settings: Record, cell: Record, n_jobs: int | None) -> Record:
    """The curves on a grid of scores, whether the unbiased one is convex, and how far the convex one is above."""
    name, p = cell["loss"], cell["propensity"]
    scores = np.linspace(-settings["reach"], settings["reach"], settings["steps"])
    curves = forms(name, p)
    found = convexity(name, p)
    used = curves.get("convex", curves["unbiased"])
    return {
        "scores": scores.tolist(),
        "curves": {form: np.asarray(curve(scores), float).tolist() for form, curve in curves.items()},
        "convex": found.convex,
        "bounded": found.bounded_below,
        "bends_down_at": found.bends_down_at,
        "at_zero": {form: float(curve(np.zeros(1))[0]) for form, curve in curves.items()},
        "used_is_convex": look_at(used).convex,
    }


def forms(name: str, p: float) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """What an observed label pays, by the name of the form.

    >>> {form: float(curve(np.zeros(1))[0]) for form, curve in forms("hinge", 0.5).items()}
    {'plain': 1.0, 'unbiased': 1.0, 'convex': 3.0}
    """
    plain, corrected = get_loss(name), unbiased(name, p)
    found: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "plain": plain.observed,
        "unbiased": corrected.observed,
    }
    if name == "zero_one":
        found["unbiased, shifted"] = lambda scores: corrected.observed(scores) + (1 / p - 1)
    else:
        found["convex"] = convex_surrogate(name, p).observed
    if name == "squared_hinge":
        hinge = convex_surrogate(LOSSES["hinge"], p)
        found["square of the convex hinge"] = lambda scores: hinge.observed(scores) ** 2
    return found


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """A row a curve, which unbiased forms are convex, and the plot."""
    rows = [
        {
            "loss": r["loss"],
            "propensity": r["propensity"],
            "unbiased is convex": r["convex"],
            "unbiased is bounded below": r["bounded"],
            "bends down at": "" if r["bends_down_at"] is None else round(r["bends_down_at"], 3),
            **{f"{form} at 0": round(value, 3) for form, value in _every_form(r["at_zero"]).items()},
            "form to train with is convex": r["used_is_convex"],
        }
        for r in results
    ]
    return Summary(rows, [_said(name, results) for name in SHOWN], {"curves": _plot(settings, results)})


def _every_form(values: dict[str, float]) -> dict[str, Any]:
    return {form: values.get(form, float("nan")) for form in _STYLES}


def _said(name: str, results: list[Record]) -> str:
    mine = [r for r in results if r["loss"] == name]
    title = name.replace("_", " ")
    kinks = sorted({r["bends_down_at"] for r in mine if r["bends_down_at"] is not None})
    if not kinks:
        end = "bounded below" if all(r["bounded"] for r in mine) else "falls without bound"
        return f"{title}: the unbiased form is convex at every p shown, and {end}."
    if name == "zero_one":
        return f"{title}: a step from 1/p to 1 - 1/p, which is negative; shifted by 1/p - 1 from 2/p - 1 to 0."
    weights = ", ".join(f"{2 / r['propensity'] - 1:.3g} at p = {r['propensity']:g}" for r in mine)
    end = "convex" if all(r["used_is_convex"] for r in mine) else "not convex"
    return (
        f"{title}: the unbiased form bends down first at s = {kinks[0]:g}, so it is not convex; "
        f"(2/p - 1) l+ is {end}, with the weight {weights}."
    )


def _plot(settings: Record, results: list[Record]) -> Any:
    from tailwise.experiments.plotting import COLOURS, make_figure

    propensities = settings["propensities"]
    figure, axes = make_figure(1, len(SHOWN), width=3.0, height=3.0)
    for axis, name in zip(axes[0], SHOWN, strict=True):
        for i, p in enumerate(propensities):
            r = next(r for r in results if (r["loss"], r["propensity"]) == (name, p))
            for form, values in r["curves"].items():
                if form == "plain" and i:
                    continue
                if form == "square of the convex hinge" and p != propensities[len(propensities) // 2]:
                    continue
                colour = "black" if form == "plain" else COLOURS[i]
                named = form if form == "plain" else f"{form}, p = {p:g}"
                axis.plot(r["scores"], values, _STYLES[form], color=colour, linewidth=1.2, label=named)
        axis.set(title=name.replace("_", " "), xlabel="score", ylim=(-6, 10))
    axes[0, 0].set(title="zero one (solid: shifted)", ylabel="what an observed label pays")
    every = axes[0, SHOWN.index("squared_hinge")].get_legend_handles_labels()
    figure.legend(*every, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure
