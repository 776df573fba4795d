"""How far does one linear model go for rare labels on EURLex-4K? ``python -m benchmarks tail_single [--validation]``.

``DiSMEC`` on damped rows, its scores made probabilities by one curve (``Calibrated``), by one for each of five groups
of labels of similar frequency, and by all that is known of a label (``TailCalibrated``), with and without the nearest
training rows. Labels are ranked by probability · (1/p)^t; t is chosen on validation rows cut from training rows
(``TradeOff``): the highest PSP@1 that loses at most two points of P@1. Printed are values on the test rows and
differences to the first, with bootstrap intervals. ``--validation`` judges 2,000 training rows held out in place of the
test rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import matrices, measure, save_results

METRICS = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5")
_HELD_OUT = 2000
_MAX_LOSS = {"p@1": 2.0}
_TAILS = (0.0, 0.25, 0.5, 0.75, 1.0)


def wrapped() -> dict[str, Any]:
    """What makes probabilities of the one model's scores, unfitted."""
    import tailwise as tw

    one = tw.DiSMEC(random_state=0)
    return {
        "Calibrated": tw.Calibrated(one, random_state=0),
        "Calibrated by frequency": tw.Calibrated(one, per="frequency-bin", random_state=0),
        "TailCalibrated": tw.TailCalibrated(one, random_state=0),
        "TailCalibrated, nearest": tw.TailCalibrated(one, nearest=True, random_state=0),
    }


def main(arguments: list[str]) -> None:
    """Fit, choose, and compare on the same rows."""
    import tailwise as tw

    data = matrices("eurlex-4k")
    X, Y, X_test, Y_test = data.X_train, data.Y_train, data.X_test, data.Y_test
    if "--validation" in arguments:
        order = np.random.default_rng(0).permutation(X.shape[0])
        held_out, rest = np.sort(order[:_HELD_OUT]), np.sort(order[_HELD_OUT:])
        X, Y, X_test, Y_test = X[rest], Y[rest], X[held_out], Y[held_out]
    propensity = tw.JainPropensity().fit(Y)
    tops: dict[str, dict[str, Any]] = {}
    found = {}
    for name, base in wrapped().items():
        with measure() as training:
            model = tw.Sublinear(tw.TradeOff(base, maximise="psp@1", max_loss=_MAX_LOSS, random_state=0)).fit(X, Y)
        ranking: Any = model.base_
        chosen = ranking.tail_
        for how, tail in (("chosen", chosen), *((f"{tail:.2f}", tail) for tail in _TAILS)):
            ranking.tail_ = tail
            tops.setdefault(how, {})[name] = model.predict_topk(X_test, 5)
        found[name] = {"tail": chosen, "CPU-s": training.cpu}
        print(f"{name}: t = {chosen:g} chosen, {training.cpu:.0f} CPU-s with the choice", flush=True)
    values: dict[str, dict[str, list[float]]] = {}
    for how, own in tops.items():
        compared = tw.compare(Y_test, own, METRICS, propensity=propensity)
        values[how] = {name: [compared[name][metric].value for metric in METRICS] for name in own}
        for name, line in values[how].items():
            precision, scored = (" / ".join(f"{value:.1f}" for value in half) for half in (line[:3], line[3:]))
            print(f"t {how:6} {name:24} P {precision}   PSP {scored}")
        if how in ("chosen", "0.00"):
            print(compared)
    save_results("tail_single", {"validation": "--validation" in arguments, "models": found, "values": values})
