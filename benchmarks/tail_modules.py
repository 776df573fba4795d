"""What does each tail module add to each kind of model on EURLex-4K? ``python -m benchmarks tail_modules [model …]``.

Every module's settings are its defaults, which were chosen on validation rows cut from the training set. The
published figure stands in parentheses where the papers give one for the same features (bag of words). The models named
are added to what earlier runs found; without names all four run. A fit that two modules need is made once.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.harness import RESULTS, Matrices, matrices, save_results

BASES = ("DiSMEC", "Parabel", "Bonsai", "FastXML")
METRICS = (
    *(f"{name}@{k}" for name in ("p", "ndcg", "psp", "psndcg") for k in (1, 3, 5)),
    "coverage@5",
    "recall@5:tail",
)


def share_fits(base: Any) -> Any:
    """``base`` as a model whose clones, fitted on the same rows, are fitted once."""
    from sklearn.base import clone

    from tailwise.tail.wrapper import Wrapper

    fitted: dict[tuple, Any] = {}

    class Shared(Wrapper):
        scores_are_probabilities = property(lambda self: self.base.scores_are_probabilities)

        def __init__(self, base: Any) -> None:
            self.base = base

        def _fit(self, X: Any, Y: Any, weight: Any) -> None:
            parts = (X.indices, X.data, Y.indices, Y.indptr, *([] if weight is None else [weight]))
            key = (repr(self.base), *(hash(part.tobytes()) for part in parts))
            if key not in fitted:
                fitted[key] = clone(self.base).fit(X, Y, weight)
            self.base_ = fitted[key]

        def _predict_topk(self, X: Any, k: int) -> Any:
            return self.base_.predict_topk(X, k)

    return Shared(base)


def modules(name: str) -> dict[str, Any]:
    """The model ``name`` plain and in every wrapper, unfitted."""
    import tailwise as tw

    cls = getattr(tw, name)
    base = share_fits(cls(**({"random_state": 0} if "random_state" in cls().get_params() else {})))
    augmented = share_fits(tw.TailAugmented(base, random_state=0))
    damped = share_fits(tw.Sublinear(base))
    return {
        "plain": base,
        "PropensityReranker": tw.PropensityReranker(base),
        "RankNet": tw.RankNet(base, random_state=0),
        "RankNet on training scores": tw.RankNet(base, scores="train", random_state=0),
        "TailAugmented": augmented,
        "RankNet+TailAugmented": tw.RankNet(augmented, random_state=0),
        "Sublinear": damped,
        "RankNet+Sublinear": tw.RankNet(damped, random_state=0),
    }


def run_model(name: str, data: Matrices) -> list[dict[str, Any]]:
    """Fit and evaluate one model in every wrapper; prints a line each."""
    from tailwise import JainPropensity, evaluate
    from tailwise.experiments.published import published

    propensity = JainPropensity().fit(data.Y_train)
    rows = []
    for module, model in modules(name).items():
        top = model.fit(data.X_train, data.Y_train).predict_topk(data.X_test, 5)
        scored = evaluate(
            data.Y_test, top, METRICS, propensity=propensity, label_counts=model.label_counts_, confidence=None
        )
        method = {"plain": name, "RankNet": f"RankNet+{name}"}.get(module, "")
        row: dict[str, Any] = {"model": name, "module": module}
        cells = []
        for metric in METRICS:
            row[metric] = scored[metric].value
            known = published("eurlex-4k", method, metric) if method else None
            cells.append(f"{metric} {scored[metric].value:.1f}" + (f" ({known:.1f})" if known else ""))
        rows.append(row)
        print(f"{name:8} {module:26} " + "  ".join(cells), flush=True)
    return rows


def main(arguments: list[str]) -> None:
    """Run the models named, and print the table of all that is known."""
    names = arguments or list(BASES)
    data = matrices("eurlex-4k")
    path = RESULTS / "tail_modules.json"
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    for name in names:
        known = [row for row in known if row["model"] != name] + run_model(name, data)
        save_results("tail_modules", {"rows": known})
    print(markdown(sorted(known, key=lambda row: BASES.index(row["model"]))))


def markdown(rows: list[dict[str, Any]]) -> str:
    """The rows as a table for the documentation."""
    lines = ["| | P@1/3/5 | nDCG@3/5 | PSP@1/3/5 | PSnDCG@3/5 | coverage@5 | tail recall@5 |", "|---" * 7 + "|"]
    for row in rows:
        cells = [
            " / ".join(f"{row[f'{name}@{k}']:.1f}" for k in ranks)
            for name, ranks in (("p", (1, 3, 5)), ("ndcg", (3, 5)), ("psp", (1, 3, 5)), ("psndcg", (3, 5)))
        ]
        title = row["model"] if row["module"] == "plain" else f"{row['model']}, {row['module']}"
        lines.append(
            "| " + " | ".join([title, *cells, f"{row['coverage@5']:.1f}", f"{row['recall@5:tail']:.1f}"]) + " |"
        )
    return "\n".join(lines)
