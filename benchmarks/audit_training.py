"""Do audited propensities train better models than Jain's guess, where that is wrong? ``python -m benchmarks`` tells.

Labels of ``make_longtail`` and EURLex-4K, whose complete ones are known, go missing in three ways: all at one rate,
the frequent ones more often than the rare ones, and along a curve such as the guess has. In each of several worlds one
audit of 500 questions is answered by reviewers who err (``audit_coverage``), and models are trained with Jain's guess,
with the audited and with the true propensities, on what is recorded; *complete* test labels judge them. Differences are
paired by world; the interval is Student's over worlds. Models and measures were chosen with ``--tuning``; the worlds
that are reported have other seeds, rates and curves. ``--only longtail`` or ``--only eurlex`` runs one, ``--way "one
rate"`` one of the three ways.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtrit

from benchmarks.audit_coverage import Case, ask, plan_of, world
from benchmarks.harness import save_results
from tailwise.experiments.sharing import share_fits

WAYS = {
    "report": {"one rate": "0.4", "frequent ones": "falling:0.35,0.4", "like the guess": "jain:0.45,0.8"},
    "tuning": {"one rate": "0.5", "frequent ones": "falling:0.4,0.3", "like the guess": "jain:0.25,1.5"},
}
SEEDS = {
    "report": {"longtail": range(200, 206), "eurlex": range(200, 203)},
    "tuning": {"longtail": range(3), "eurlex": range(2)},
}
METRICS = ["p@1", "p@3", "p@5"]


def judge(case: Case, seed: int) -> dict[str, dict[str, dict[str, float]]]:
    """P@k on complete labels by model and propensity, in percent."""
    import tailwise as tw

    found = ask(case, plan_of(case), seed)
    told = {"guess": None, "audited": found.propensity, "true": tw.GivenPropensity(case.true_propensity)}
    calibrated = share_fits(tw.Calibrated(case.model, per="frequency-bin", random_state=0))
    models = {
        "re-ranked": lambda known: tw.PropensityReranker(calibrated, propensity=known),
        "PWDiSMEC": lambda known: tw.PWDiSMEC(weighting="convex", propensity=known, n_jobs=1, random_state=0),
    }
    data, scores = case.data, {}
    for name, make in models.items():
        scores[name] = {}
        for who, known in told.items():
            top = make(known).fit(data.X_train, data.Y_train).predict_topk(data.X_test, 5)
            result = tw.evaluate(data.Y_test_complete, top, METRICS, confidence=None)
            scores[name][who] = {metric: result[metric].value for metric in METRICS}
    return scores


def paired(scores: list[dict[str, Any]], model: str, metric: str, who: str, beside: str) -> tuple[float, float, float]:
    """The mean over worlds of who's score less that of another, with its 95 % interval."""
    values = np.array([one[model][who][metric] - one[model][beside][metric] for one in scores])
    reach = float(stdtrit(values.size - 1, 0.975)) * float(values.std(ddof=1)) / np.sqrt(values.size)
    return float(values.mean()), float(values.mean()) - reach, float(values.mean()) + reach


def run_case(name: str, where: str, ways: list[str]) -> dict[str, Any]:
    """All worlds of a data set; prints a table for each of the ways."""
    kept = {}
    for way in ways:
        missing = WAYS[where][way]
        scores = [judge(world(name, missing, seed), seed) for seed in SEEDS[where][name]]
        kept[way] = {"missing": missing, "worlds": scores}
        print(f"\n{name}, labels go missing: {way} ({missing}); {len(scores)} worlds, complete test labels", flush=True)
        for model in scores[0]:
            for metric in METRICS:
                mean = {who: float(np.mean([one[model][who][metric] for one in scores])) for who in scores[0][model]}
                gain, low, high = paired(scores, model, metric, "audited", "guess")
                print(
                    f"  {model:10} {metric.upper()}  "
                    + "  ".join(f"{who} {value:.2f}" for who, value in mean.items())
                    + f"  audited less guess {gain:+.2f} [{low:+.2f}, {high:+.2f}]",
                    flush=True,
                )
    return kept


def main(arguments: list[str]) -> None:
    """Run the data sets that are wanted, and keep what was found."""
    where = "tuning" if "--tuning" in arguments else "report"
    ways = [way for way in WAYS[where] if "--way" not in arguments or way in arguments]
    for name in SEEDS[where]:
        if "--only" not in arguments or name in arguments:
            save_results(f"audit_training_{name}_{where}", run_case(name, where, ways))
