"""What does each tail module add to each kind of model on EURLex-4K? ``python -m benchmarks tail_modules [model …]``.

Every module's settings are its defaults, which were chosen on validation rows cut from the training set. The
published figure stands in parentheses where the papers give one for the same features (bag of words).
"""

from __future__ import annotations

import time
from typing import Any

from benchmarks.harness import matrices, measure, save_results

BASES = ("DiSMEC", "Parabel", "Bonsai", "FastXML")
METRICS = (
    *(f"{name}@{k}" for name in ("p", "ndcg", "psp", "psndcg") for k in (1, 3, 5)),
    "coverage@5",
    "recall@5:tail",
)


def modules(base: Any) -> dict[str, Any]:
    """The model plain and in every wrapper, unfitted."""
    from tailwise import PropensityReranker, RankNet, TailAugmented

    augmented = TailAugmented(base, random_state=0)
    return {
        "plain": base,
        "PropensityReranker": PropensityReranker(base),
        "RankNet": RankNet(base, random_state=0),
        "TailAugmented": augmented,
        "RankNet+TailAugmented": RankNet(augmented, random_state=0),
    }


def main(arguments: list[str]) -> None:
    """Fit, evaluate and print every combination."""
    import tailwise
    from tailwise import JainPropensity, evaluate
    from tailwise.experiments.published import published

    data = matrices("eurlex-4k")
    propensity = JainPropensity().fit(data.Y_train)
    results = []
    for name in arguments or BASES:
        cls = getattr(tailwise, name)
        seed = {"random_state": 0} if "random_state" in cls().get_params() else {}
        for module, model in modules(cls(**seed)).items():
            with measure() as training:
                model.fit(data.X_train, data.Y_train)
            start = time.perf_counter()
            top = model.predict_topk(data.X_test, 5)
            seconds = time.perf_counter() - start
            scored = evaluate(
                data.Y_test, top, METRICS, propensity=propensity, label_counts=model.label_counts_, confidence=None
            )
            method = {"plain": name, "RankNet": f"RankNet+{name}"}.get(module, "")
            row = {"model": name, "module": module, "train CPU-s": training.cpu, "predict s": seconds}
            cells = []
            for metric in METRICS:
                row[metric] = scored[metric].value
                known = published("eurlex-4k", method, metric) if method else None
                cells.append(f"{metric} {scored[metric].value:.1f}" + (f" ({known:.1f})" if known else ""))
            results.append(row)
            print(f"{name:8} {module:22} {training.cpu:6.0f} CPU-s  " + "  ".join(cells), flush=True)
    save_results("tail_modules", {"rows": results})
