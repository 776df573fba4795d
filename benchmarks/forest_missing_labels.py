"""Do propensities help a forest when labels are missing? ``python -m benchmarks forest_missing_labels [trees [data]]``.

The experiment of figures 3c and 3d of the PfastreXML paper, on EURLex-4K taken as complete and on synthetic data whose
complete labels are known. Training labels are dropped with Jain's curve over the complete frequencies, for several A;
FastXML and PfastXML learn from what is left and are measured by plain nDCG@3 and P@3 on *complete* test labels, and by
the recall of rare labels. First PfastXML is given the propensities that dropped the labels, then those of a wrong A.
Each PfastXML is set against the FastXML of the same labels, row by row: the intervals (95 %) are those of the
difference. 50 trees, unless told otherwise; everything else by default: about 9 CPU-minutes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.harness import matrices, save_results

TRUE_A = (0.35, 0.55, 0.75)
REFERENCE_A = 0.55
WRONG_A = (0.2, 0.35, 0.75, 0.9)
N_TREES = {"longtail": 50, "eurlex-4k": 50}
METRICS = ("ndcg@3", "p@3", "recall@5:tail")


class Complete(NamedTuple):
    """Rows and their complete labels, for training and for testing."""

    name: str
    X: Any
    Y: Any
    X_test: Any
    Y_test: Any


def complete_data() -> list[Complete]:
    """Synthetic data with all the labels that made it, and EURLex-4K as if nothing were missing."""
    from tailwise import make_longtail

    made = make_longtail(random_state=0)
    return [
        Complete("longtail", made.X_train, made.Y_train_complete, made.X_test, made.Y_test_complete),
        Complete("eurlex-4k", *matrices("eurlex-4k")),
    ]


def learn_from_what_is_left(data: Complete, true_a: float, assumed: tuple[float, ...], n_trees: int) -> dict[str, Any]:
    """Drop training labels with A = ``true_a``; set PfastXML, for each ``assumed`` A, against FastXML."""
    from tailwise import FastXML, JainPropensity, PfastXML, compare, drop_labels

    Y = drop_labels(data.Y, JainPropensity(true_a).fit(data.Y), random_state=1)
    models = {"FastXML": FastXML(n_trees=n_trees, random_state=0)}
    for a in assumed:
        propensity = JainPropensity(a).fit(data.Y).propensity_
        models[f"PfastXML, A={a}"] = PfastXML(n_trees=n_trees, propensity=propensity, random_state=0)
    tops = {name: model.fit(data.X, Y).predict_topk(data.X_test, 5) for name, model in models.items()}
    found = compare(data.Y_test, tops, METRICS, label_counts=models["FastXML"].label_counts_)
    kept = Y.nnz / data.Y.nnz
    print(f"\n{data.name}, labels dropped with A={true_a} ({kept:.0%} kept), {n_trees} trees")
    print(f"  {'':20}" + "".join(f"{metric:>33}" for metric in METRICS))
    rows = {}
    for name in tops:
        cells, rows[name] = "", {}
        for metric in METRICS:
            value = found[name][metric].value
            rows[name][metric] = {"value": value}
            cell = f"{value:.2f}"
            if name != "FastXML":
                gap = found.difference(name, "FastXML", metric)
                rows[name][metric] |= {"gain": gap.value, "low": gap.low, "high": gap.high, "verdict": gap.verdict}
                cell += f"  {gap.value:+.2f} ({gap.low:+.2f} to {gap.high:+.2f})"
            cells += f"{cell:>33}"
        print(f"  {name:20}{cells}", flush=True)
    return {"data": data.name, "true A": true_a, "kept": kept, "models": rows}


def main(arguments: list[str]) -> None:
    """Print and keep a table for each dropping curve and data set, then say where the paper's claims hold."""
    n_trees = dict.fromkeys(N_TREES, int(arguments[0])) if arguments else N_TREES
    assumed = {a: (a, *WRONG_A) if a == REFERENCE_A else (a,) for a in TRUE_A}
    tables = [
        learn_from_what_is_left(data, a, assumed[a], n_trees[data.name])
        for data in complete_data()
        if data.name in arguments[1:] or not arguments[1:]
        for a in TRUE_A
    ]
    print("\nPfastXML against FastXML by nDCG@3 on complete labels:")
    for table in tables:
        for name, row in list(table["models"].items())[1:]:
            print(f"  {table['data']}, dropped with A={table['true A']}, {name}: {row['ndcg@3']['verdict']}")
    save_results("forest_missing_labels", {"n_trees": n_trees, "tables": tables})
