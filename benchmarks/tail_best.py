"""How far does stacking go on EURLex-4K with bag-of-words features? ``python -m benchmarks tail_best [member …]``.

Members and settings were chosen on validation rows cut from the training set. One set of candidate probabilities gives
the whole curve between P@k and PSP@k: rows are ranked by probability · (1/p)^t. ``--nearest`` stacks the same members
with all that is known of a label (``Stacked(nearest=True)``), as seen from damped rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.harness import matrices, measure, save_results

PUBLISHED = {
    "RankNet+Bonsai, bag of words": (45.1, 49.5, 51.8),
    "RankNet+Taug, BERT features": (51.9, 54.3, 55.5),
    "RankNet, BERT features": (48.4, 52.9, 55.7),
}
_KINDS = ("DiSMEC", "PWDiSMEC", "Centroid", "NearestRows", "NearestFew")
MEMBERS = (*_KINDS, *(f"Sublinear({kind})" for kind in _KINDS))
MEMBERS_DAMPED = (*_KINDS, *(f"Undamped({kind})" for kind in _KINDS))
"""The same of rows that are damped already: their squares are the rows as they were, up to their lengths."""


def make_member(name: str) -> Any:
    """An unfitted member by name; NearestFew trusts the five nearest rows."""
    import tailwise as tw

    if name.startswith("Sublinear("):
        return tw.Sublinear(make_member(name.removeprefix("Sublinear(").removesuffix(")")))
    if name.startswith("Undamped("):
        return tw.Sublinear(make_member(name.removeprefix("Undamped(").removesuffix(")")), power=2.0)
    if name == "NearestFew":
        return tw.NearestRows(k=5, sharpness=4.0)
    cls = getattr(tw, name)
    return cls(**({"random_state": 0} if "random_state" in cls().get_params() else {}))


def make_stack(members: Sequence[str], *, nearest: bool) -> Any:
    """The unfitted stack; with ``nearest`` of damped rows."""
    import tailwise as tw

    stack = tw.Stacked([make_member(name) for name in members], nearest=nearest, random_state=0)
    return tw.Sublinear(stack) if nearest else stack


def main(arguments: list[str]) -> None:
    """Fit the stack once, and print the curve on the test rows."""
    import tailwise as tw
    from tailwise.tail import trade_off_curve

    data = matrices("eurlex-4k")
    propensity = tw.JainPropensity().fit(data.Y_train)
    for name, figures in PUBLISHED.items():
        print(f"published: {name:30} PSP@1/3/5 " + " / ".join(f"{value:.1f}" for value in figures))
    nearest = "--nearest" in arguments
    members = [name for name in arguments if name != "--nearest"] or (MEMBERS_DAMPED if nearest else MEMBERS)
    with measure() as training:
        model = make_stack(members, nearest=nearest).fit(data.X_train, data.Y_train)
    top = model.predict_topk(data.X_test, 50)
    curve = trade_off_curve(top, top.scores, data.Y_test, propensity.propensity_)
    print(
        f"Stacked({', '.join(members)}{', nearest=True' * nearest}): "
        f"{training.cpu:.0f} CPU-s, {training.wall:.0f} s, {training.peak_mb:.0f} MB"
    )
    for t, values in zip(curve.tails, curve.values, strict=True):
        print(
            f"  t = {t:.2f}  P "
            + " / ".join(f"{v:.1f}" for v in values[:3])
            + "   PSP "
            + " / ".join(f"{v:.1f}" for v in values[3:])
        )
    save_results(
        "tail_best-nearest" if nearest else "tail_best",
        {
            "members": members,
            "training": training,
            "steps": curve.tails.tolist(),
            "metrics": curve.metrics,
            "values": curve.values.tolist(),
        },
    )
