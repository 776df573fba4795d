"""Do tail modules find more of the labels that are truly there? ``python -m benchmarks tail_truth [seed …]``.

On ``make_longtail`` the complete labels are known, and training saw only the observed ones. If labels go missing as the
propensities say, then what raises the propensity-scored estimate on observed labels must raise the plain precision on
complete labels. Settings are the defaults, chosen on validation rows of EURLex-4K.
"""

from __future__ import annotations

import statistics
from typing import Any

from benchmarks.harness import Matrices, save_results
from benchmarks.tail_modules import modules
from tailwise.experiments.sharing import share_fits

TRUE = ("p@1", "p@3", "p@5")
ESTIMATED = ("psp@1", "psp@3", "psp@5")


def contenders() -> dict[str, Any]:
    """DiSMEC plain and in the modules, and a stack: by probability, and with the knob that validation rows choose."""
    import tailwise as tw

    base = share_fits(tw.DiSMEC())
    members = [base, share_fits(tw.PWDiSMEC()), tw.Centroid(), tw.NearestRows(), tw.NearestRows(k=5, sharpness=4.0)]
    stack = share_fits(tw.Stacked(members, random_state=0))
    return modules("DiSMEC") | {
        "PropensityReranker, Calibrated": tw.PropensityReranker(tw.Calibrated(base, random_state=0)),
        "Stacked": stack,
        "TradeOff, Stacked": tw.TradeOff(stack, random_state=0),
    }


def run_seed(seed: int) -> dict[str, dict[str, float]]:
    """True and estimated figures of every contender on one draw of the data."""
    from tailwise import JainPropensity, evaluate, make_longtail

    made = make_longtail(random_state=seed)
    data = Matrices(made.X_train, made.Y_train, made.X_test, made.Y_test)
    propensity = JainPropensity().fit(data.Y_train)
    found = {}
    for name, model in contenders().items():
        top = model.fit(data.X_train, data.Y_train).predict_topk(data.X_test, 5)
        true = evaluate(made.Y_test_complete, top, TRUE, confidence=None)
        estimated = evaluate(data.Y_test, top, ESTIMATED, propensity=propensity, confidence=None)
        found[name] = {m: true[m].value for m in TRUE} | {m: estimated[m].value for m in ESTIMATED}
        print(f"seed {seed}  {name:30} " + "  ".join(f"{m} {v:.1f}" for m, v in found[name].items()), flush=True)
    return found


def main(arguments: list[str]) -> None:
    """Print the figures of each seed, and the mean gain over the plain model with its spread."""
    seeds = [int(a) for a in arguments] or [0, 1, 2]
    found = [run_seed(seed) for seed in seeds]
    print("\nagainst plain DiSMEC, points of P@1/3/5 on complete labels (mean over seeds, lowest to highest):")
    for name in list(found[0])[1:]:
        cells = []
        for metric in TRUE:
            gains = [result[name][metric] - result["plain"][metric] for result in found]
            cells.append(f"{metric} {statistics.mean(gains):+.1f} ({min(gains):+.1f} to {max(gains):+.1f})")
        print(f"  {name:30} " + "   ".join(cells))
    save_results("tail_truth", {"seeds": seeds, "found": found})
