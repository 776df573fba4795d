"""Training what the papers report and printing ours beside the published figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scipy import sparse

from tailwise.atomic import write_whole
from tailwise.data import Dataset, load_dataset, make_longtail
from tailwise.display import Table
from tailwise.errors import DownloadError, InvalidInput
from tailwise.experiments.methods import Method
from tailwise.experiments.published import published
from tailwise.measure import measured
from tailwise.metrics import evaluate
from tailwise.pages.page import page
from tailwise.propensity import JainPropensity
from tailwise.validation import label_counts

PRECISION = ("p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5")
RANKING = ("ndcg@1", "ndcg@3", "ndcg@5", "psndcg@1", "psndcg@3", "psndcg@5")
COMPARED = (*PRECISION, *RANKING)
SHOWN = ("coverage@5", "recall@5:head", "recall@5:torso", "recall@5:tail")
COSTS = ("train_seconds", "train_cpu_seconds", "ms_a_row", "peak_mb", "compile_seconds")
WARM_UP_ROWS = 256
"""Enough that their labels fill more than one leaf of a label tree: otherwise clustering is not compiled."""


class Reproduced(NamedTuple):
    """One method on one dataset."""

    method: str
    values: dict[str, float]
    published: dict[str, float]
    train_seconds: float
    train_cpu_seconds: float
    ms_a_row: float
    peak_mb: float
    compile_seconds: float
    """What the first use cost beforehand; in none of the other figures."""

    def difference(self, metric: str) -> float | None:
        """Ours minus the published figure; None where none was published."""
        return self.values[metric] - self.published[metric] if metric in self.published else None


def demo_dataset() -> tuple[Dataset, str]:
    """EURLex-4K, or a synthetic long-tail set where it cannot be fetched, with a sentence that says which."""
    try:
        return load_dataset("eurlex-4k"), ""
    except DownloadError as error:
        synthetic = make_longtail(n_samples=8000, n_features=5000, n_labels=2000, random_state=0)
        return synthetic, f"EURLex-4K cannot be fetched ({error}); a synthetic long-tail set stands in for it"


def reproduce(
    data: Dataset, methods: Iterable[Method], *, on_row: Callable[[list[Reproduced]], Any] = lambda rows: None
) -> list[Reproduced]:
    """Fit and judge each method; ``on_row`` gets the rows so far after each.

    Each method is first used on a few rows, so that the times are those of compiled code: what a second run takes.
    """
    if not data.has_test:
        raise InvalidInput(f"{data.name} has no test rows to judge methods on; choose a data set that has")
    propensity = JainPropensity().fit(data.Y_train)
    counts = label_counts(data.Y_train)
    rows: list[Reproduced] = []
    for method in methods:
        with measured() as compiling:
            _use_on_few_rows(method.make(), data.X_train, data.Y_train)
        model = method.make()
        with measured() as training:
            model.fit(data.X_train, data.Y_train)
        with measured() as predicting:
            topk = model.predict_topk(data.X_test, 5)
        result = evaluate(
            data.Y_test, topk, [*COMPARED, *SHOWN], propensity=propensity, label_counts=counts, confidence=None
        )
        figures = (
            {metric: published(data.name, method.published, metric) for metric in COMPARED} if method.published else {}
        )
        rows.append(
            Reproduced(
                method.name,
                {metric: float(result[metric].value) for metric in (*COMPARED, *SHOWN)},
                {metric: value for metric, value in figures.items() if value is not None},
                training.seconds,
                training.cpu_seconds,
                1000 * predicting.seconds / max(1, data.n_test),
                training.peak_mb,
                compiling.seconds,
            )
        )
        on_row(rows)
    return rows


def _use_on_few_rows(model: Any, X: sparse.csr_array, Y: sparse.csr_array) -> None:
    few = slice(WARM_UP_ROWS)
    model.fit(X[few], Y[few]).predict_topk(X[few], 5)


def tables(title: str, rows: Iterable[Reproduced]) -> tuple[Table, Table]:
    """What people read: ours, the published figures and the difference, on a line each; nDCG in a table of its own."""
    rows = list(rows)
    shown = ["cov@5", "head", "torso", "tail", "train", "CPU", "row", "memory"]
    lines = _lines(rows, PRECISION, lambda row: [f"{row.values[m]:.1f}" for m in SHOWN] + _costs(row))
    foot = [_FOOT] if title else ()
    first = Table(title, ["method", "", *(m.upper() for m in PRECISION), *shown], lines, foot, left=2)
    names = [m.replace("psndcg", "PSnDCG").replace("ndcg", "nDCG") for m in RANKING]
    second = Table(title, ["method", "", *names], _lines(rows, RANKING), [_RANKING_FOOT] if title else (), left=2)
    return first, second


def _costs(row: Reproduced) -> list[str]:
    return [
        f"{row.train_seconds:.1f} s",
        f"{row.train_cpu_seconds:.1f} s",
        f"{row.ms_a_row:.2f} ms",
        f"{row.peak_mb:,.0f} MB",
    ]


def _lines(
    rows: Iterable[Reproduced], metrics: Sequence[str], more: Callable[[Reproduced], list[str]] = lambda row: []
) -> list[list[str]]:
    lines = []
    for row in rows:
        also = more(row)
        lines.append([row.method, "ours", *(f"{row.values[m]:.1f}" for m in metrics), *also])
        if any(m in row.published for m in metrics):
            blank = [""] * len(also)
            figures = [f"{row.published[m]:.1f}" if m in row.published else "" for m in metrics]
            lines.append(["", "published", *figures, *blank])
            differences = [row.difference(m) for m in metrics]
            lines.append(["", "difference", *("" if d is None else f"{d:+.1f}" for d in differences), *blank])
    return lines


def write_tables(folder: str | Path, title: str, rows: list[Reproduced]) -> list[Path]:
    """Write ``table.md``, ``table.csv`` and ``table.html`` into ``folder``; returns their paths."""
    shown = tables(title, rows)
    parts = zip(("table", "ranking"), ("Ours beside the published figures", "nDCG and PSnDCG"), shown, strict=True)
    html = page(title, "", [(anchor, heading, part.html()) for anchor, heading, part in parts], "")
    texts = {
        "table.md": "\n\n".join(part.markdown() for part in shown) + "\n",
        "table.csv": to_csv(rows),
        "table.html": html,
    }
    paths = [Path(folder) / name for name in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        write_whole(path, text)
    return paths


def to_csv(rows: list[Reproduced]) -> str:
    """One line a method, full precision, plain column names."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["method", *COMPARED, *SHOWN, *(f"published {m}" for m in COMPARED), *COSTS])
    for row in rows:
        figures = [row.published.get(m, "") for m in COMPARED]
        values = [f"{row.values[m]:.4f}" for m in (*COMPARED, *SHOWN)]
        writer.writerow([row.method, *values, *figures, *(f"{row._asdict()[cost]:.4f}" for cost in COSTS)])
    return out.getvalue()


_FOOT = (
    "Percent. cov@5 is coverage@5; head, torso and tail are recall@5 on those labels. Published is the "
    "repository's figure, or the papers' highest where it has none. Train and CPU are training time, row is prediction "
    "time a row, memory the process's peak; all of them once the code is compiled."
)

_RANKING_FOOT = (
    "Percent. PSnDCG as the public evaluation code has it: a row's sum divided by that of min(k, its labels) places."
)
