"""Which c, λ, rate and passes suit RankNet's linear block? ``python -m benchmarks ranknet_linear [train|out-of-fold]``.

The paper gives none of them. A fifth of EURLex-4K's training rows is held out; Bonsai is trained on the rest, once, and
every setting of ``RankNet.as_published`` is judged on the rows held out. One setting is changed at a time, from the
best so far by P@1 + PSP@1 + PSP@5 (the weight of accuracy against the tail is a choice, as it is in the paper).
"""

from __future__ import annotations

from typing import Any

from benchmarks.harness import matrices, save_results

METRICS = tuple(f"{name}@{k}" for name in ("p", "psp") for k in (1, 3, 5))
AIM = ("p@1", "psp@1", "psp@5")
START: dict[str, Any] = {"learning_rate": 0.003, "balance": 0.1, "margin": 0.1, "n_negatives": 300, "epochs": 3}
STEPS: dict[str, list[Any]] = {
    "learning_rate": [0.001, 0.01],
    "balance": [0.01, 0.03, 1.0],
    "margin": [0.0, 0.3],
    "epochs": [6],
    "n_negatives": [1000],
}


def main(arguments: list[str]) -> None:
    """Search along one setting after the other, and print every figure."""
    import numpy as np

    import tailwise as tw
    from tailwise.experiments.sharing import share_fits

    data = matrices("eurlex-4k")
    order = np.random.default_rng(0).permutation(data.X_train.shape[0])
    held, rest = np.sort(order[: order.size // 5]), np.sort(order[order.size // 5 :])
    X, Y, X_held, Y_held = data.X_train[rest], data.Y_train[rest], data.X_train[held], data.Y_train[held]
    propensity = tw.JainPropensity().fit(Y)
    base = share_fits(tw.Bonsai(random_state=0))
    rows = []

    def judge(title: str, model: Any) -> float:
        top = model.fit(X, Y).predict_topk(X_held, 5)
        scored = tw.evaluate(Y_held, top, METRICS, propensity=propensity, confidence=None)
        rows.append({"setting": title, **{m: scored[m].value for m in METRICS}})
        print(f"{title:95} " + "  ".join(f"{m} {scored[m].value:.1f}" for m in METRICS), flush=True)
        return float(sum(scored[m].value for m in AIM))

    for scores in arguments or ["train"]:
        judge("Bonsai", base)
        judge("simple form", tw.PropensityReranker(base))

        def try_out(setting: dict[str, Any], scores: str = scores) -> float:
            return judge(
                f"{scores}: {setting}", tw.RankNet.as_published(base, **setting, scores=scores, random_state=0)
            )

        best, value = START, try_out(START)
        for name, values in STEPS.items():
            for other in values:
                tried = {**best, name: other}
                found = try_out(tried)
                if found > value:
                    best, value = tried, found
        print(f"best on {scores} scores: {best}", flush=True)
    save_results("ranknet_linear", {"rows": rows})
