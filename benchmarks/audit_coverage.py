"""Do an audit's intervals hold the truth, and what are 500 answers worth? ``python -m benchmarks audit_coverage``.

Complete labels are known: of ``make_longtail``, and of EURLex-4K, whose labels are taken to be complete; labels are
then dropped along a curve that is not Jain's guess. The model is trained once, out of fold; questions and answers are
drawn anew ``--draws`` times (200), from reviewers who say yes to 3 % of wrong and no to 6 % of right labels. Beside it,
what a queue of the best-scored pairs would say, and training with the estimated, the guessed and the true propensities,
judged on complete labels. ``--only longtail`` or ``--only eurlex`` runs one; ``--figure FILE`` draws the plot of
docs/audit.md from all that was kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import RESULTS, measure, save_results
from benchmarks.tail_modules import share_fits

WRONG_YES, WRONG_NO = 0.03, 0.06
CURVES_A_DRAW = 20
NAMES = ("head", "torso", "tail")


class Case(NamedTuple):
    """Data with its truth."""

    name: str
    data: Any
    true_propensity: np.ndarray
    model: Any


def longtail() -> Case:
    import tailwise as tw

    data = tw.make_longtail(8000, 4000, 1000, propensity=tw.JainPropensity(0.25, b=1.5), random_state=0)
    return Case("longtail", data, data.propensity, tw.DiSMEC(n_jobs=1))


def eurlex() -> Case:
    from dataclasses import replace

    import tailwise as tw
    from tailwise.data import drop_labels, planted_propensity

    data = tw.load_dataset("eurlex-4k")
    kept = planted_propensity(tw.JainPropensity(1.0, b=2.0), data.Y_train)
    dropped = replace(
        data,
        Y_train=drop_labels(data.Y_train, kept, 1),
        Y_test=drop_labels(data.Y_test, kept, 2),
        Y_train_complete=data.Y_train,
        Y_test_complete=data.Y_test,
    )
    return Case("eurlex", dropped, kept, tw.Centroid(n_jobs=1))


CASES = {"longtail": longtail, "eurlex": eurlex}


def plan_of(case: Case) -> Any:
    """The plan, made once and kept: training is the expensive part."""
    from tailwise.audit import plan_audit
    from tailwise.audit.packing import pack, unpack

    path = RESULTS / f"audit-{case.name}.npz"
    if not path.exists():
        with measure() as m:
            plan = plan_audit(case.model, case.data.X_train, case.data.Y_train, n_questions=500)
        print(f"  planned in {m.cpu:.0f} CPU-s, {m.peak_mb:.0f} MB", flush=True)
        RESULTS.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pack(plan))
    return unpack(path.read_bytes(), path)


class Truth(NamedTuple):
    """What estimates are held against: in percent."""

    missing: np.ndarray
    precision: float
    psp: float
    recorded: np.ndarray
    right: np.ndarray


def truth_of(case: Case, plan: Any, top: Any) -> Truth:
    from tailwise import evaluate
    from tailwise.tail.candidates import is_hit

    pool, complete = plan.pool, case.data.Y_train_complete
    counts, all_counts = (np.bincount(Y.indices, minlength=Y.shape[1]) for Y in (case.data.Y_train, complete))
    masks = [(pool.strata == s) & (counts > 0) for s in range(3)]
    right = is_hit(pool.labels, complete, pool.rows)
    first = (pool.recorded_place >= 0) & (pool.recorded_place < 5)
    return Truth(
        np.array([100 * (1 - counts[m].sum() / all_counts[m].sum()) for m in masks]),
        100 * (first.sum() + right[pool.place < 5].sum()) / (5 * pool.n_rows),
        evaluate(case.data.Y_test, top, "psp@5", propensity=case.true_propensity, confidence=None)["psp@5"].value,
        np.array([counts[m].sum() for m in masks]),
        right,
    )


def one_draw(case: Case, plan: Any, top: Any, seed: int) -> dict[str, Any]:
    """Estimates of one audit, as (value, low, high)."""
    from scipy.special import stdtrit

    from tailwise import JainPropensity, evaluate
    from tailwise.audit import estimate_audit, plan_questions, simulate_answers

    drawn = plan_questions(plan.pool, plan.settings, random_state=seed)
    answers = simulate_answers(
        drawn.questions, case.data.Y_train_complete, wrong_yes=WRONG_YES, wrong_no=WRONG_NO, random_state=seed
    )
    found = estimate_audit(drawn, answers, n_bootstrap=200, random_state=seed)
    pool = plan.pool

    def psp(a: float, b: float) -> float:
        known = JainPropensity(a, b=b).fit_counts(pool.label_counts, pool.n_samples)
        return evaluate(case.data.Y_test, top, "psp@5", propensity=known, confidence=None)["psp@5"].value

    value = psp(found.propensity.a, found.propensity.b)
    spread = float(np.std([psp(a, b) for a, b in found.curves[:CURVES_A_DRAW]]))
    reach = float(stdtrit(CURVES_A_DRAW - 1, 0.975)) * spread
    precision = found.precision[5][1]
    return {
        "answers": found.n_answers,
        **{
            n: [found.strata[n].missing.value, found.strata[n].missing.low, found.strata[n].missing.high] for n in NAMES
        },
        **{f"{n} at least": [found.strata[n].missing_in_pool.value] for n in NAMES},
        "P@5": [precision.value, precision.low, precision.high],
        "PSP@5": [value, value - reach, value + reach],
        "curve": [found.propensity.a, found.propensity.b],
    }


def _three(found: Any) -> list[float]:
    return [found.value, found.low, found.high]


def queue(plan: Any, truth: Truth, n: int) -> list[float]:
    """Missing shares as a queue of the ``n`` best pairs shows them: nothing is known beyond what it asked."""
    pool = plan.pool
    best = np.argsort(-pool.missing, kind="stable")[:n]
    strata = pool.strata[pool.labels[best]]
    found = np.bincount(strata[truth.right[best]], minlength=3)
    return (100 * found / (truth.recorded + found)).tolist()


def guessed_precision(case: Case, plan: Any) -> float:
    """True P@5 as Jain's guess estimates it from the recorded hits."""
    from tailwise import JainPropensity

    pool = plan.pool
    inverse = JainPropensity().fit(case.data.Y_train).inverse_
    first = (pool.recorded_place >= 0) & (pool.recorded_place < 5)
    return float(100 * inverse[pool.recorded_labels[first]].sum() / (5 * pool.n_rows))


def trained(case: Case, curve: list[float]) -> dict[str, dict[str, float]]:
    """P@k on complete labels of a model that ranks by the calibrated chance over the propensity, with three of them."""
    import tailwise as tw

    told = {
        "Jain's guess": tw.JainPropensity(),
        "estimated": tw.JainPropensity(curve[0], b=curve[1]),
        "true": tw.GivenPropensity(case.true_propensity),
    }
    calibrated = share_fits(tw.Calibrated(case.model, per="frequency-bin", random_state=0))
    found = {}
    for name, propensity in told.items():
        model = tw.PropensityReranker(calibrated, propensity=propensity).fit(case.data.X_train, case.data.Y_train)
        top = model.predict_topk(case.data.X_test, 5)
        result = tw.evaluate(case.data.Y_test_complete, top, ["p@1", "p@3", "p@5"])
        found[name] = {m: result[m].value for m in result}
        print(f"  trained with {name:13} " + "  ".join(f"{m} {v:.2f}" for m, v in found[name].items()), flush=True)
    return found


def run_case(name: str, draws: int) -> dict[str, Any]:
    case = CASES[name]()
    plan = plan_of(case)
    print(plan)
    model = case.model.fit(case.data.X_train, case.data.Y_train)
    top = model.predict_topk(case.data.X_test, 5)
    truth = truth_of(case, plan, top)
    # A line a draw, kept as it is made: a run that is stopped goes on where it was.
    kept = RESULTS / f"audit_coverage_{name}.draws.jsonl"
    found = [json.loads(line) for line in kept.read_text().splitlines()][:draws] if kept.exists() else []
    for seed in range(len(found), draws):
        found.append(one_draw(case, plan, top, seed))
        with kept.open("a") as file:
            file.write(json.dumps(found[-1]) + "\n")
        if seed % 20 == 19:
            print(f"  {name}: {seed + 1} of {draws} draws", file=sys.stderr, flush=True)
    targets = dict(zip(NAMES, truth.missing.tolist(), strict=True)) | {"P@5": truth.precision, "PSP@5": truth.psp}
    by_queue = queue(plan, truth, plan.settings.n_questions)
    summary = {}
    print(f"\n{name}: {draws} draws of {np.mean([f['answers'] for f in found]):.0f} answers")
    for what, target in targets.items():
        values = np.array([f[what] for f in found])
        covered = float(((values[:, 1] <= target) & (target <= values[:, 2])).mean())
        width = float((values[:, 2] - values[:, 1]).mean() / 2)
        summary[what] = {
            "truth": target,
            "mean": float(values[:, 0].mean()),
            "sd": float(values[:, 0].std()),
            "rmse": float(np.sqrt(((values[:, 0] - target) ** 2).mean())),
            "covered": covered,
            "half width": width,
        }
        shown = f"queue {by_queue[NAMES.index(what)]:.1f}" if what in NAMES else ""
        print(
            f"  {'missing % ' if what in NAMES else ''}{what:6} truth {target:.1f}  mean {values[:, 0].mean():.1f}  "
            f"sd {values[:, 0].std():.1f}  covered {100 * covered:.1f} %  ± {width:.1f}  {shown}"
        )
    recorded, guess = (
        float(100 * ((plan.pool.recorded_place >= 0) & (plan.pool.recorded_place < 5)).sum() / (5 * plan.pool.n_rows)),
        guessed_precision(case, plan),
    )
    rmse = summary["P@5"]["rmse"]
    factors = {"recorded": abs(recorded - truth.precision) / rmse, "guess": abs(guess - truth.precision) / rmse}
    print(
        f"  true P@5 {truth.precision:.1f}: recorded labels say {recorded:.1f}, Jain's guess {guess:.1f}; the audit "
        f"errs by {rmse:.1f}, {factors['recorded']:.1f} and {factors['guess']:.1f} times less"
    )
    middle = found[int(np.argsort([f["curve"][0] for f in found])[draws // 2])]["curve"]
    return {
        "summary": summary,
        "queue": dict(zip(NAMES, by_queue, strict=True)),
        "precision": {"recorded": recorded, "guess": guess, "factors": factors},
        "trained": trained(case, middle),
        "draws": found,
    }


def draw_figure(results: dict[str, Any], path: Path) -> None:
    """Every draw's interval for the missing share of each stratum, the truth, and the queue."""
    from tailwise.experiments.plotting import COLOURS, make_figure, save

    figure, axes = make_figure(len(results), 3)
    for row, (name, result) in zip(axes, results.items(), strict=True):
        for axis, stratum in zip(row, NAMES, strict=True):
            values = np.array([one[stratum] for one in result["draws"]][:100])
            truth = result["summary"][stratum]["truth"]
            inside = (values[:, 1] <= truth) & (truth <= values[:, 2])
            for mask, colour in ((inside, COLOURS[0]), (~inside, COLOURS[3])):
                axis.vlines(np.flatnonzero(mask), values[mask, 1], values[mask, 2], color=colour, linewidth=1)
            axis.axhline(truth, color="black", linewidth=1, label="truth")
            axis.axhline(result["queue"][stratum], color=COLOURS[1], linestyle="--", label="queue of the best")
            axis.set(title=f"{name}, {stratum}", xlabel="draw", ylabel="missing, %", ylim=(0, 100))
    axes[0, 0].legend(frameon=False, fontsize=8)
    save(figure, path.with_suffix(""))


def main(arguments: list[str]) -> None:
    """Run the cases and print, keep and draw what was found."""

    def option(name: str, default: str = "") -> str:
        return arguments[arguments.index(name) + 1] if name in arguments else default

    wanted = [name for name in CASES if option("--only", name) == name]
    for name in wanted:
        save_results(f"audit_coverage_{name}", run_case(name, int(option("--draws", "200"))))
    if option("--figure"):
        kept = {name: RESULTS / f"audit_coverage_{name}.json" for name in CASES}
        draw_figure({n: json.loads(p.read_text()) for n, p in kept.items() if p.exists()}, Path(option("--figure")))
