"""What does each tail module add to each kind of model on EURLex-4K? ``python -m benchmarks tail_modules [model …]``.

Every module's settings are its defaults, which were chosen on validation rows cut from the training set, or those of
``as_published``. The published figure stands in parentheses where the papers give one for the same features (bag of
words). The models named are added to what earlier runs found; without names all four run. ``--only TEXT`` runs the
modules with the text in their names. A fit that two modules need is made once.
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


def modules(name: str) -> dict[str, Any]:
    """The model ``name`` plain and in every wrapper, unfitted."""
    import tailwise as tw
    from tailwise.experiments.sharing import share_fits

    cls = getattr(tw, name)
    base = share_fits(cls(**({"random_state": 0} if "random_state" in cls().get_params() else {})))
    augmented = share_fits(tw.TailAugmented(base, random_state=0))
    damped = share_fits(tw.Sublinear(base))
    return {
        "plain": base,
        "PropensityReranker": tw.PropensityReranker(base),
        "RankNet": tw.RankNet(base, random_state=0),
        "RankNet on training scores": tw.RankNet(base, scores="train", random_state=0),
        "RankNet as published": tw.RankNet.as_published(base, random_state=0),
        "RankNet as published, out-of-fold scores": tw.RankNet.as_published(base, scores="out-of-fold", random_state=0),
        "TailAugmented": augmented,
        "TailAugmented as published": tw.TailAugmented.as_published(base, random_state=0),
        "RankNet+TailAugmented": tw.RankNet(augmented, random_state=0),
        "Sublinear": damped,
        "RankNet+Sublinear": tw.RankNet(damped, random_state=0),
    }


def run_model(name: str, data: Matrices, only: str) -> list[dict[str, Any]]:
    """Fit and evaluate one model in every wrapper with ``only`` in its name; prints a line each."""
    from tailwise import JainPropensity, evaluate
    from tailwise.experiments.published import published

    propensity = JainPropensity().fit(data.Y_train)
    rows = []
    for module, model in modules(name).items():
        if only not in module:
            continue
        top = model.fit(data.X_train, data.Y_train).predict_topk(data.X_test, 5)
        scored = evaluate(
            data.Y_test, top, METRICS, propensity=propensity, label_counts=model.label_counts_, confidence=None
        )
        method = {
            "plain": name,
            "RankNet": f"RankNet+{name}",
            "RankNet as published": f"RankNet+{name}",
        }.get(module, "")
        row: dict[str, Any] = {"model": name, "module": module}
        cells = []
        for metric in METRICS:
            row[metric] = scored[metric].value
            known = published("eurlex-4k", method, metric) if method else None
            cells.append(f"{metric} {scored[metric].value:.1f}" + (f" ({known:.1f})" if known else ""))
        rows.append(row)
        print(f"{name:8} {module:40} " + "  ".join(cells), flush=True)
    return rows


def main(arguments: list[str]) -> None:
    """Run the models named, and print the table of all that is known."""
    only = ""
    if "--only" in arguments:
        at = arguments.index("--only")
        only, arguments = arguments[at + 1], arguments[:at] + arguments[at + 2 :]
    names = arguments or list(BASES)
    data = matrices("eurlex-4k")
    path = RESULTS / "tail_modules.json"
    known = json.loads(path.read_text())["rows"] if path.exists() else []
    for name in names:
        found = run_model(name, data, only)
        new = {(row["model"], row["module"]) for row in found}
        known = [row for row in known if (row["model"], row["module"]) not in new] + found
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
