"""Do propensities help a forest when labels are missing? ``python -m benchmarks forest_missing_labels [trees [data]]``.

The experiment of figures 3c and 3d of the PfastreXML paper, on EURLex-4K taken as complete and on synthetic data whose
complete labels are known. Training labels are dropped with Jain's curve over the complete frequencies, for several A;
FastXML and PfastXML learn from what is left and are measured by plain nDCG@3 and P@3 on *complete* test labels. First
PfastXML is given the propensities that dropped the labels, then those of a wrong A.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.harness import matrices, save_results

TRUE_A = (0.35, 0.45, 0.55, 0.65, 0.75)
REFERENCE_A = 0.55
WRONG_A = (0.2, 0.35, 0.75, 0.9)
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


def learn_from_what_is_left(data: Complete, true_a: float, assumed_a: float | None, n_trees: int) -> dict[str, Any]:
    """Drop training labels with A = ``true_a``, learn with ``assumed_a`` (None: FastXML), score on complete labels."""
    from tailwise import FastXML, JainPropensity, PfastXML, drop_labels, evaluate

    Y = drop_labels(data.Y, JainPropensity(true_a).fit(data.Y), random_state=1)
    if assumed_a is None:
        model = FastXML(n_trees=n_trees, random_state=0)
    else:
        assumed = JainPropensity(assumed_a).fit(data.Y).propensity_
        model = PfastXML(n_trees=n_trees, propensity=assumed, random_state=0)
    top = model.fit(data.X, Y).predict_topk(data.X_test, 5)
    found = evaluate(data.Y_test, top, METRICS, label_counts=model.label_counts_, confidence=None)
    kept = Y.nnz / data.Y.nnz
    scores = {name: found[name].value for name in METRICS}
    print(
        f"{data.name:9}  dropped with A={true_a:.2f} ({kept:.0%} kept)  "
        f"{'FastXML' if assumed_a is None else f'PfastXML assuming A={assumed_a:.2f}':24}  "
        + "  ".join(f"{name} {value:5.2f}" for name, value in scores.items()),
        flush=True,
    )
    return {"data": data.name, "true A": true_a, "assumed A": assumed_a, "kept": kept, **scores}


def main(arguments: list[str]) -> None:
    """Print and keep one line for each dropping curve, assumed curve and dataset."""
    n_trees = int(arguments[0]) if arguments else 20
    rows = []
    for data in complete_data():
        if arguments[1:] and data.name not in arguments[1:]:
            continue
        for a in TRUE_A:
            rows.append(learn_from_what_is_left(data, a, None, n_trees))
            rows.append(learn_from_what_is_left(data, a, a, n_trees))
        rows += [learn_from_what_is_left(data, REFERENCE_A, a, n_trees) for a in WRONG_A]
    save_results("forest_missing_labels", {"n_trees": n_trees, "rows": rows})
