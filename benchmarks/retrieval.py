"""How fast are labels found among 100,000 and 1,000,000, and which ones does approximate search lose?

Rows are searched one at a time on one thread, as a server would. Label vectors have unit length and lie in clusters, as
trained ones do; a query is a label's vector plus noise, frequent labels more often. An approximate index chooses its
effort on 256 other queries so that it keeps 0.95 of the labels. Recall@5 is against exact search, overall and for the
rarest tenth of the labels. The last lines search labels that GLaS has learned on EURLex-4K.

``python -m benchmarks retrieval [n_labels …]``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.harness import matrices, measure, save_results

QUESTION = "How fast are labels found among 100,000 and 1,000,000, at which recall?"
DIM = 128
QUERIES = 500
SAMPLE = 256
LIMIT_MS = {100_000: 1.0, 1_000_000: 10.0}


def main(arguments: list[str]) -> None:
    """Measure each index at each size."""
    from tailwise import ExactIndex, FaissIndex

    rows = []
    for n_labels in [int(a) for a in arguments] or list(LIMIT_MS):
        vectors, queries, counts = make_labels(n_labels, DIM)
        queries, sample = queries[:QUERIES], queries[QUERIES:]
        rows.append(look("exact", ExactIndex(n_jobs=1), vectors, queries[:50], counts))
        rows.append(look("ivf", FaissIndex("ivf", n_jobs=1), vectors, queries, counts, sample))
        if n_labels <= 100_000:
            hnsw = FaissIndex("hnsw", links=16, build_effort=64, n_jobs=1)
            rows.append(look("hnsw", hnsw, vectors, queries, counts, sample))
    if not arguments:
        rows += learned_labels()
    show(rows)
    save_results("retrieval", {"dim": DIM, "rows": rows})


def make_labels(n_labels: int, dim: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Clustered unit vectors, queries near them, and Zipf-like training counts."""
    rng = np.random.default_rng(seed)

    def unit(array: np.ndarray) -> np.ndarray:
        return (array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32)

    n_clusters = int(n_labels**0.5)
    centres = unit(rng.standard_normal((n_clusters, dim)))
    noise = rng.standard_normal((n_labels, dim), dtype=np.float32) / np.float32(dim**0.5)
    vectors = unit(centres[rng.integers(n_clusters, size=n_labels)] + 1.5 * noise)
    counts = np.maximum(1, 10_000 / (1 + rng.permutation(n_labels)) ** 0.7).astype(np.int64)
    wanted = rng.choice(n_labels, size=QUERIES + SAMPLE, p=counts / counts.sum())
    queries = unit(vectors[wanted] + unit(rng.standard_normal((QUERIES + SAMPLE, dim))))
    return vectors, queries, counts


def look(
    name: str, index: Any, vectors: np.ndarray, queries: np.ndarray, counts: np.ndarray, sample: Any = None
) -> dict[str, Any]:
    """Build time, latency a row (median and 95 % quantile), and recall."""
    from tailwise.embedding import recall_report

    with measure() as m:
        index.build(vectors, queries=sample)
    effort = getattr(index, "effort_", None)
    name = name if effort is None else f"{name}, effort {effort}"
    index.search(queries[:1], 5)
    index.search(queries[:3], 5)
    cpu, times = time.process_time(), []
    for query in queries:
        start = time.perf_counter()
        index.search(query[None], 5)
        times.append(1000 * (time.perf_counter() - start))
    cpu = 1000 * (time.process_time() - cpu) / len(queries)
    report = recall_report(index, queries, counts)
    found = {"labels": len(vectors), "index": name, "build CPU-s": m.cpu, "build MB": m.peak_mb, "CPU ms": cpu}
    found |= {"median ms": float(np.median(times)), "95 % ms": float(np.quantile(times, 0.95))}
    found |= {"recall@5": report.overall, "by decile": report.by_decile.round(4).tolist()}
    print(f"  {len(vectors):,} labels, {name}: {cpu:.2f} CPU-ms a row; {report}", flush=True)
    return found


def learned_labels() -> list[dict[str, Any]]:
    """The same for vectors that GLaS has learned, searched with EURLex-4K's test rows."""
    from tailwise import ExactIndex, FaissIndex, GLaS

    data = matrices("eurlex-4k")
    model = GLaS(dim=DIM, epochs=5, early_stopping=False, random_state=0).fit(data.X_train, data.Y_train)
    known = model.index_.labels_
    sample = model.encode(data.X_train)[:SAMPLE]
    queries, counts = model.encode(data.X_test)[:QUERIES], model.label_counts_[known]
    made = {"learned, exact": ExactIndex(n_jobs=1), "learned, ivf": FaissIndex("ivf", n_jobs=1)}
    made |= {"learned, hnsw": FaissIndex("hnsw", n_jobs=1)}
    return [look(name, index, model.index_.vectors_, queries, counts, sample) for name, index in made.items()]


def show(rows: list[dict[str, Any]]) -> None:
    """The table, with the limit beside the latency."""
    table = Table(title=f"one row at a time, one thread, k = 5, d = {DIM}")
    columns = (
        "labels",
        "index",
        "build CPU-s",
        "build MB",
        "CPU ms",
        "median ms",
        "95 % ms",
        "recall@5",
        "rarest tenth",
    )
    for column in (*columns, "limit"):
        table.add_column(column, justify="left" if column == "index" else "right")
    for row in rows:
        limit = LIMIT_MS.get(row["labels"])
        met = (
            ""
            if limit is None
            else f"{limit:g} ms: {'met' if row['CPU ms'] < limit and row['recall@5'] >= 0.95 else '–'}"
        )
        table.add_row(
            f"{row['labels']:,}",
            row["index"],
            f"{row['build CPU-s']:.1f}",
            f"{row['build MB']:.0f}",
            f"{row['CPU ms']:.2f}",
            f"{row['median ms']:.2f}",
            f"{row['95 % ms']:.2f}",
            f"{row['recall@5']:.3f}",
            f"{row['by decile'][0]:.3f}",
            met,
        )
    Console(width=160).print(table)
