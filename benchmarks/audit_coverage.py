"""Do an audit's intervals hold the truth, and what are 500 answers worth? ``python -m benchmarks audit_coverage``.

Complete labels are known: of ``make_longtail``, and of EURLex-4K, whose labels are taken to be complete; labels are
then dropped, anew in each of several worlds, along a curve that is not Jain's guess, or (``longtail-constant`` and
``eurlex-constant``) all at the same rate. In each world the model is trained once, out of fold; questions and answers
are drawn anew, ``--draws`` times in all (200); reviewers say yes to 3 % of wrong and no to 6 % of right labels.
Beside it stands what a queue of the best-scored pairs would say. What the audit does was chosen in the worlds of
``--tuning``; those that are reported have other seeds and other curves. ``--only longtail`` runs one of the four;
``--figure FILE`` draws the plot of docs/audit.md from all that was kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import RESULTS, measure, save_results

WRONG_YES, WRONG_NO = 0.03, 0.06
NAMES = ("head", "torso", "tail")
WORLDS = {
    "report": {
        "longtail": ("jain:0.3,1.8", range(240, 250)),
        "eurlex": ("jain:0.9,1.6", range(210, 212)),
        "longtail-constant": ("0.4", range(240, 250)),
        "eurlex-constant": ("0.4", range(210, 212)),
    },
    "tuning": {
        "longtail": ("jain:0.25,1.5", range(5)),
        "eurlex": ("jain:1.0,2.0", range(2)),
        "longtail-constant": ("0.5", range(5)),
        "eurlex-constant": ("0.5", range(2)),
    },
}
"""How labels go missing, by a curve or at one rate, and the seeds of the worlds."""


class Case(NamedTuple):
    """Data with its truth."""

    name: str
    data: Any
    true_propensity: np.ndarray
    model: Any


def world(name: str, missing: str, seed: int) -> Case:
    """The data set that ``name`` begins with, whose labels go ``missing`` as a name of a propensity says, or a rate."""
    import tailwise as tw

    way = _way(missing)
    data = (
        tw.make_longtail(8000, 4000, 1000, propensity=way, random_state=seed)
        if name.startswith("longtail")
        else _eurlex(way, seed)
    )
    called = f"{name.partition('-')[0]}-{missing.replace(':', '-').replace(',', '-')}-{seed}"
    return Case(called, data, data.propensity, tw.DiSMEC(n_jobs=1, random_state=0))


def _way(missing: str) -> Any:
    from tailwise.propensity import AuditedPropensity, named_propensity

    if missing.startswith("falling:"):
        a, odds = (float(number) for number in missing.partition(":")[2].split(","))
        return AuditedPropensity(-a, odds=odds)
    return named_propensity(missing) if ":" in missing else float(missing)


def _eurlex(way: Any, seed: int) -> Any:
    from dataclasses import replace

    import tailwise as tw
    from tailwise.data import drop_labels, planted_propensity

    data = tw.load_dataset("eurlex-4k")
    kept = planted_propensity(way, data.Y_train)
    return replace(
        data,
        Y_train=drop_labels(data.Y_train, kept, 2 * seed + 1),
        Y_test=drop_labels(data.Y_test, kept, 2 * seed + 2),
        Y_train_complete=data.Y_train,
        Y_test_complete=data.Y_test,
        propensity=kept,
    )


def plan_of(case: Case) -> Any:
    """The plan, made once and kept: training is the expensive part."""
    from tailwise.audit import plan_audit
    from tailwise.audit.packing import pack, unpack

    path = RESULTS / f"audit-{case.name}.npz"
    if not path.exists():
        with measure() as m:
            plan = plan_audit(case.model, case.data.X_train, case.data.Y_train, n_questions=500)
        print(f"  {case.name}: planned in {m.cpu:.0f} CPU-s, {m.peak_mb:.0f} MB", flush=True)
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


def ask(case: Case, plan: Any, seed: int) -> Any:
    """The estimate of one audit: questions drawn anew, answered by reviewers who err."""
    from tailwise.audit import estimate_audit, plan_questions, simulate_answers

    drawn = plan_questions(plan.pool, plan.settings, random_state=seed)
    answers = simulate_answers(
        drawn.questions, case.data.Y_train_complete, wrong_yes=WRONG_YES, wrong_no=WRONG_NO, random_state=seed
    )
    return estimate_audit(drawn, answers, n_bootstrap=200, random_state=seed)


def one_draw(case: Case, plan: Any, top: Any, seed: int) -> dict[str, Any]:
    """Estimates of one audit, as (value, low, high)."""
    from tailwise import evaluate

    found = ask(case, plan, seed)

    def psp(known: Any) -> float:
        return evaluate(case.data.Y_test, top, "psp@5", propensity=known, confidence=None)["psp@5"].value

    return {
        "answers": found.n_answers,
        **{n: _three(found.strata[n].missing) for n in NAMES},
        **{f"{n} at least": [found.strata[n].missing_in_pool.value] for n in NAMES},
        "P@5": _three(found.precision[5][1]),
        "PSP@5": _three(found.judge(psp)),
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


def run_world(case: Case, draws: int) -> dict[str, Any]:
    """The draws of one world, its truth, and what others say of it."""
    plan = plan_of(case)
    top = case.model.fit(case.data.X_train, case.data.Y_train).predict_topk(case.data.X_test, 5)
    truth = truth_of(case, plan, top)
    # A line a draw, kept as it is made: a run that is stopped goes on where it was.
    kept = RESULTS / f"audit_coverage_{case.name}.draws.jsonl"
    found = [json.loads(line) for line in kept.read_text().splitlines()][:draws] if kept.exists() else []
    for seed in range(len(found), draws):
        found.append(one_draw(case, plan, top, seed))
        with kept.open("a") as file:
            file.write(json.dumps(found[-1]) + "\n")
    first = (plan.pool.recorded_place >= 0) & (plan.pool.recorded_place < 5)
    return {
        "truth": dict(zip(NAMES, truth.missing.tolist(), strict=True)) | {"P@5": truth.precision, "PSP@5": truth.psp},
        "queue": dict(zip(NAMES, queue(plan, truth, plan.settings.n_questions), strict=True)),
        "recorded": float(100 * first.sum() / (5 * plan.pool.n_rows)),
        "guess": guessed_precision(case, plan),
        "draws": found,
    }


def run_case(name: str, draws: int, where: str) -> dict[str, Any]:
    """All worlds of a data set, and what they show together."""
    missing, seeds = WORLDS[where][name]
    worlds = []
    for seed in seeds:
        case = world(name, missing, seed)
        worlds.append(run_world(case, -(-draws // len(seeds))))
        print(f"  {case.name}: {len(worlds[-1]['draws'])} draws", file=sys.stderr, flush=True)
    summary = {}
    answers = np.mean([draw["answers"] for world in worlds for draw in world["draws"]])
    print(
        f"\n{name}, {missing}: {sum(len(world['draws']) for world in worlds)} draws of "
        f"{answers:.0f} answers in {len(worlds)} worlds"
    )
    for what in (*NAMES, "P@5", "PSP@5"):
        rows = [(world["truth"][what], *draw[what]) for world in worlds for draw in world["draws"]]
        truth, value, low, high = np.array(rows).T
        off = value - truth
        summary[what] = {
            "truth": float(truth.mean()),
            "bias": float(off.mean()),
            "sd": float(off.std()),
            "rmse": float(np.sqrt((off**2).mean())),
            "covered": float(((low <= truth) & (truth <= high)).mean()),
            "half width": float((high - low).mean() / 2),
        }
        says = f"queue {np.mean([world['queue'][what] for world in worlds]):.1f}" if what in NAMES else ""
        one = summary[what]
        print(
            f"  {'missing % ' if what in NAMES else ''}{what:6} truth {one['truth']:.1f}  bias {one['bias']:+.2f}  "
            f"sd {one['sd']:.2f}  covered {100 * one['covered']:.1f} %  ± {one['half width']:.1f}  {says}"
        )
    errors = {
        who: float(np.mean([abs(world[who] - world["truth"]["P@5"]) for world in worlds]))
        for who in ("recorded", "guess")
    }
    factors = {who: error / summary["P@5"]["rmse"] for who, error in errors.items()}
    print(
        f"  true P@5: recorded labels are off by {errors['recorded']:.1f}, Jain's guess by {errors['guess']:.1f}; the "
        f"audit by {summary['P@5']['rmse']:.1f}, {factors['recorded']:.1f} and {factors['guess']:.1f} times less"
    )
    return {
        "summary": summary,
        "precision": {"errors": errors, "factors": factors},
        "worlds": worlds,
    }


def draw_figure(results: dict[str, Any], path: Path) -> None:
    """Intervals of the missing share of each stratum, less the truth of their world, and what the queue says."""
    from tailwise.experiments.plotting import COLOURS, make_figure, save

    figure, axes = make_figure(len(results), 3)
    for row, (name, result) in zip(axes, results.items(), strict=True):
        for axis, stratum in zip(row, NAMES, strict=True):
            found = [(one[stratum], w["truth"][stratum]) for w in result["worlds"] for one in w["draws"]]
            values = np.array([np.array(one) - truth for one, truth in found][:: max(1, len(found) // 100)])
            inside = (values[:, 1] <= 0) & (values[:, 2] >= 0)
            for mask, colour in ((inside, COLOURS[0]), (~inside, COLOURS[3])):
                axis.vlines(np.flatnonzero(mask), values[mask, 1], values[mask, 2], color=colour, linewidth=1)
            axis.axhline(0, color="black", linewidth=1, label="truth")
            queue = np.mean([w["queue"][stratum] - w["truth"][stratum] for w in result["worlds"]])
            axis.axhline(queue, color=COLOURS[1], linestyle="--", label="queue of the best")
            axis.set(title=f"{name}, {stratum}", xlabel="draw", ylabel="missing less truth, points", ylim=(-90, 60))
    axes[0, 0].legend(frameon=False, fontsize=8)
    save(figure, path.with_suffix(""))


def main(arguments: list[str]) -> None:
    """Run the cases and print, keep and draw what was found."""

    def option(name: str, default: str = "") -> str:
        return arguments[arguments.index(name) + 1] if name in arguments else default

    where = "tuning" if "--tuning" in arguments else "report"
    for name in WORLDS[where]:
        if option("--only", name) == name:
            save_results(f"audit_coverage_{name}", run_case(name, int(option("--draws", "200")), where))
    if option("--figure"):
        kept = {name: RESULTS / f"audit_coverage_{name}.json" for name in ("longtail", "eurlex")}
        draw_figure({n: json.loads(p.read_text()) for n, p in kept.items() if p.exists()}, Path(option("--figure")))
