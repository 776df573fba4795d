"""How long do 12 metrics take on 150,000 rows with 5 predictions out of 670,000 labels, and on 740,000 rows?

Truth and predictions are synthetic: five labels a row from a power law, half of the first predictions correct. Ours is
measured with and without 95 % intervals (1,000 bootstrap replicates), after a warm-up on a few rows that compiles.
napkinxc has no intervals.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.harness import RESULTS, Contender, measure

QUESTION = "How long do 12 metrics take on 150,000 and on 740,000 rows x top 5 x 670,000 labels?"
REPEATS = 3
THREADS = 1

N_ROWS, N_LABELS, K = 150_000, 670_000, 5
MANY_ROWS = 740_000
"""The test rows of Amazon-3M; Wikipedia-500K has 783,743, WikiLSHTC-325K 587,084."""
METRICS = [f"{name}@{k}" for name in ("p", "ndcg", "psp") for k in (1, 3, 5)] + ["psndcg@5", "recall@5", "coverage@5"]


def contenders() -> list[Contender]:
    """Ours first."""
    return [
        Contender("tailwise, with intervals", "run_tailwise", arguments={"confidence": 0.95}),
        Contender("tailwise, values only", "run_tailwise", arguments={"confidence": None}),
        Contender(
            "tailwise, with intervals, 740,000 rows",
            "run_tailwise",
            arguments={"confidence": 0.95, "n_rows": MANY_ROWS},
        ),
        Contender(
            "tailwise, values only, 740,000 rows", "run_tailwise", arguments={"confidence": None, "n_rows": MANY_ROWS}
        ),
        Contender("napkinxc, values only", "run_napkinxc", where="peers", needs=("napkinxc",)),
    ]


def data(n_rows: int = N_ROWS) -> tuple[Any, Any, Any]:
    """Truth (csr_matrix), predicted labels (n, 5) and inverse propensities; made once, read by every contender."""
    folder: Path = RESULTS / "data" / ("metric_speed" if n_rows == N_ROWS else f"metric_speed-{n_rows}")
    if not (folder / "inverse.npy").exists():
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        chance = 1.0 / (np.arange(N_LABELS) + 10.0)
        cumulative = np.cumsum(chance) / chance.sum()
        drawn = np.searchsorted(cumulative, rng.random((n_rows, 4 * K))).clip(0, N_LABELS - 1)
        rows = [list(dict.fromkeys(row))[: 2 * K] for row in drawn.tolist()]
        truth = [sorted(row[:K]) for row in rows]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in truth])])
        indices = np.concatenate(truth)
        Y = sparse.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape=(n_rows, N_LABELS))
        labels = np.full((n_rows, K), -1, np.int32)
        for i, row in enumerate(rows):
            guesses = row[K:] if i % 2 else [row[0], *row[K:]]
            labels[i, : len(guesses[:K])] = guesses[:K]
        counts = np.bincount(indices, minlength=N_LABELS)
        sparse.save_npz(folder / "truth.npz", Y)
        np.save(folder / "labels.npy", labels)
        np.save(folder / "inverse.npy", 1 + (np.log(n_rows) - 1) * 2.5**0.55 * (counts + 1.5) ** -0.55)
    return (
        sparse.csr_matrix(sparse.load_npz(folder / "truth.npz")),
        np.load(folder / "labels.npy"),
        np.load(folder / "inverse.npy"),
    )


def run_tailwise(confidence: float | None, n_rows: int = N_ROWS) -> dict[str, Any]:
    from tailwise import evaluate

    Y, labels, inverse = data(n_rows)
    evaluate(Y[:100], labels[:100], METRICS, 1 / inverse, confidence=confidence, n_jobs=THREADS)
    with measure() as m:
        result = evaluate(Y, labels, METRICS, 1 / inverse, confidence=confidence, n_jobs=THREADS)
    return {"evaluate": m, "PSP@5": result["psp@5"].value, "coverage@5": result["coverage@5"].value}


def run_napkinxc() -> dict[str, Any]:
    from napkinxc import metrics as peer

    Y, labels, inverse = data()
    predicted = [[label for label in row if label >= 0] for row in labels.tolist()]
    truth = [Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(N_ROWS)]
    with measure() as m:
        # One call gives the values at 1 … 5: six calls are all twelve metrics.
        peer.precision_at_k(truth, predicted, k=K)
        peer.ndcg_at_k(truth, predicted, k=K)
        psp = peer.psprecision_at_k(truth, predicted, inverse, k=K)
        peer.psndcg_at_k(truth, predicted, inverse, k=K)
        peer.recall_at_k(truth, predicted, k=K)
        coverage = peer.coverage_at_k(truth, predicted, k=K)
    return {"evaluate": m, "PSP@5": 100 * float(psp[-1]), "coverage@5": 100 * float(coverage[-1])}
