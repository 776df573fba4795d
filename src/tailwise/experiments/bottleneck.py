"""Experiment ``bottleneck``: how many dimensions do vectors of labels need?

After theorems 2.1 and B.1 and figure 1 of *Breaking the Glass Ceiling for Embedding-Based Classifiers for Large Output
Spaces*. (a) Random ±1/√d label vectors, and each row the sum of its labels' vectors (theorem 2.1): in how many
dimensions do a row's labels come first, and do the theorem's six statements hold? (b) Random vectors of rows, and each
label the scaled sum of its rows' (theorem B.1). Both know the labels of the rows: they say what vectors can represent,
not what can be learned. (c) Networks that see only the rows' features, trained without any regularisation: how well do
they rank the labels of their own training rows, and of test rows?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil, log, sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.data import Dataset
from tailwise.embedding import GLaS
from tailwise.experiments.embeddings import accuracy, load_rows, mean_and_deviation, with_dataset
from tailwise.experiments.running import Record, Summary
from tailwise.parallel import row_blocks
from tailwise.validation import check_labels

PARTS = {"random": "random label vectors", "projected": "random row vectors", "trained": "trained network"}
_TOLERANCE = 1 / 3
_ROWS_AT_ONCE = 2048


class Separation(NamedTuple):
    """How vectors rank the labels of rows."""

    first: float
    """The share of rows whose best label is theirs, in percent."""
    all_first: float
    """The share of rows whose labels all score above every other, in percent."""
    lowest: float
    """The smallest score of a row's own label."""
    highest: float
    """The largest score of another label."""


def separation(Y: sparse.csr_array, scores: Callable[[slice], np.ndarray]) -> Separation:
    """Judge the scores (rows, n_labels) of each block of rows against the labels Y; every row has a label.

    >>> Y = sparse.csr_array(np.array([[1, 1, 0], [0, 1, 0]], np.float32))
    >>> separation(Y, lambda rows: np.array([[3.0, 1.0, 2.0], [0.0, 1.0, 0.5]])[rows])
    Separation(first=100.0, all_first=50.0, lowest=1.0, highest=2.0)
    """
    first, all_first, lowest, highest = 0, 0, np.inf, -np.inf
    for rows, own in _blocks(Y):
        values = np.array(scores(rows), np.float32)
        best = values.argmax(axis=1)
        first += int(own[np.arange(len(own)), best].sum())
        mine = np.where(own, values, np.inf).min(axis=1)
        others = np.where(own, -np.inf, values).max(axis=1)
        all_first += int((mine > others).sum())
        lowest, highest = min(lowest, float(mine.min())), max(highest, float(others.max()))
    return Separation(100 * first / Y.shape[0], 100 * all_first / Y.shape[0], lowest, highest)


def _blocks(Y: sparse.csr_array) -> Iterator[tuple[slice, np.ndarray]]:
    for start, stop in row_blocks(Y.shape[0], _ROWS_AT_ONCE):
        yield slice(start, stop), Y[start:stop].toarray() > 0


def random_vectors(n_labels: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """The label vectors of theorem 2.1's proof: entries ±1/√d, so of unit length; (n_labels, d) float32."""
    return ((2 * rng.integers(2, size=(n_labels, dim)) - 1) / sqrt(dim)).astype(np.float32)


def dimension_enough(n_rows: int, n_labels: int, most_labels: int, *, every_label: bool) -> int:
    """The dimension with which theorem 2.1's proof ends: ``⌈18 s ln(4 min(|S|, K^s))⌉``.

    Its union bound runs over rows, though it speaks of rows and labels; ``every_label`` puts the K into the logarithm
    that this takes, as the theorem's own ``s log(K|S|)`` has it.

    >>> dimension_enough(100, 10, 2, every_label=False), dimension_enough(100, 10, 2, every_label=True)
    (216, 299)
    """
    patterns = min(log(n_rows), most_labels * log(n_labels))
    return ceil(18 * most_labels * (log(4) + patterns + (log(n_labels) if every_label else 0)))


def choose(size: str, options: Record) -> Record:
    """Dimensions, repeats and the trained networks of each size."""
    usual = {
        "dataset": "eurlex-4k",
        "dims": [16, 32, 64, 128, 256, 512, 1024],
        "enough": True,
        "draws": 3,
        "trained_dims": [8, 16, 32, 64, 128],
        "hidden": [0],
        "repeats": 2,
        "epochs": 20,
        "learning_rate": 0.01,
    }
    by_size: dict[str, Record] = {
        "quick": {
            "dataset": "synthetic",
            "dims": [8, 64],
            "draws": 2,
            "trained_dims": [4, 32],
            "repeats": 1,
            "epochs": 8,
        },
        "default": {},
        "full": {
            "draws": 5,
            "epochs": 50,
            "hidden": [0, 512],
            "repeats": 5,
            "trained_dims": [4, 8, 16, 32, 64, 128, 256, 512],
        },
    }
    return with_dataset({**usual, **by_size[size]}, options)


def cells(settings: Record) -> list[Record]:
    """One cell a draw of vectors, and one a training; dimension 0 is the one that the theorem says is enough."""
    dims = [*settings["dims"], *([0] if settings["enough"] else [])]
    drawn: list[Record] = [
        {"part": part, "hidden": 0, "dim": dim, "repeat": repeat}
        for part in ("random", "projected")
        for dim in dims
        for repeat in range(settings["draws"])
        if dim or part == "random"
    ]
    return drawn + [
        {"part": "trained", "hidden": hidden, "dim": dim, "repeat": repeat}
        for hidden in settings["hidden"]
        for repeat in range(settings["repeats"])
        for dim in settings["trained_dims"]
    ]


class Shared(NamedTuple):
    """The data, and the labels of the training rows that have some."""

    settings: Record
    data: Dataset
    Y: sparse.csr_array
    labelled: np.ndarray

    @property
    def most_labels(self) -> int:
        """s of the theorem."""
        return int(np.diff(self.Y.indptr).max())


def prepare(settings: Record, n_jobs: int | None) -> Shared:
    """The data; labels without training rows are left out, and rows without labels."""
    data = load_rows(settings, n_jobs)
    Y = check_labels(data.Y_train)
    labelled = np.flatnonzero(np.diff(Y.indptr) > 0)
    known = np.flatnonzero(np.bincount(Y.indices, minlength=Y.shape[1]) > 0)
    return Shared(settings, data, sparse.csr_array(Y[labelled][:, known]), labelled)


def compute(shared: Shared, cell: Record, n_jobs: int | None) -> Record:
    """One draw of vectors, or one training."""
    if cell["part"] == "trained":
        return _train(shared, cell, n_jobs)
    rng = np.random.default_rng([shared.settings["seed"], cell["repeat"], cell["dim"], len(cell["part"])])
    return _draw_labels(shared, cell["dim"], rng) if cell["part"] == "random" else _draw_rows(shared, cell["dim"], rng)


def _draw_labels(shared: Shared, dim: int, rng: np.random.Generator) -> Record:
    """Theorem 2.1's construction. A row's scores are the sums of its labels' rows of the Gram matrix."""
    Y, s = shared.Y, shared.most_labels
    (n, K) = Y.shape
    dim = dim or dimension_enough(n, K, s, every_label=True)
    V = random_vectors(K, dim, rng)
    gram = V @ V.T
    found = separation(Y, lambda rows: Y[rows] @ gram)
    longest = max(float(np.linalg.norm(Y[rows] @ V, axis=1).max()) for rows, _ in _blocks(Y))
    np.fill_diagonal(gram, 0)
    bound = sqrt(2 * log(4 * K**2) / dim)
    return {
        "used_dim": dim,
        **found._asdict(),
        "nearest_pair": float(np.abs(gram).max()),
        "nearest_pair_bound": bound,
        "longest": longest,
        "longest_bound": sqrt(s + s * (s - 1) * bound),
    }


def _draw_rows(shared: Shared, dim: int, rng: np.random.Generator) -> Record:
    """Theorem B.1's construction: rows are random directions, a label the sum of its rows over √A_yy."""
    Y = shared.Y
    rows = rng.standard_normal((Y.shape[0], dim), np.float32) / np.float32(sqrt(dim))
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    V = (sparse.csr_array(Y.T.tocsr()) @ rows) / np.sqrt(counts, dtype=np.float32)[:, None]
    found = separation(Y, lambda part: rows[part] @ V.T)
    together = (Y.T @ Y).toarray() / np.sqrt(np.outer(counts, counts))
    return {
        "used_dim": dim,
        **found._asdict(),
        "off": float(np.abs(V @ V.T - together).max()),
        "off_bound": 1 / (2 * sqrt(counts.max())),
    }


def _train(shared: Shared, cell: Record, n_jobs: int | None) -> Record:
    """A network without regularisation, by the softmax over every label, with a random start."""
    settings, data = shared.settings, shared.data
    model = GLaS(
        dim=cell["dim"],
        hidden=cell["hidden"] or None,
        activation="relu" if cell["hidden"] else "linear",
        start="random",
        logit_adjustment=0.0,
        regularizer=None,
        input_keep_probability=1.0,
        epochs=settings["epochs"],
        learning_rate=settings["learning_rate"],
        early_stopping=False,
        random_state=settings["seed"] + cell["repeat"],
        n_jobs=n_jobs,
    ).fit(data.X_train, data.Y_train)
    encoded = model.encode(data.X_train[shared.labelled])
    found = separation(shared.Y, lambda rows: encoded[rows] @ model.index_.vectors_.T)
    return {"used_dim": cell["dim"], **found._asdict(), "test": accuracy(model, data.X_test, data.Y_test)}


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """Means and deviations over draws or seeds, the theorem's statements, and the plot."""
    rows = []
    for key in dict.fromkeys((r["part"], r["hidden"], r["dim"]) for r in results):
        mine = [r for r in results if (r["part"], r["hidden"], r["dim"]) == key]
        row: Record = {"part": key[0], "hidden": key[1], "dim": mine[0]["used_dim"], "repeats": len(mine)}
        for name in ("first", "all_first", "test"):
            row[name], row[f"{name}_sd"] = (
                mean_and_deviation([r[name] for r in mine]) if name in mine[0] else (None, None)
            )
        row["lowest"] = round(min(r["lowest"] for r in mine), 4)
        row["highest"] = round(max(r["highest"] for r in mine), 4)
        rows.append(row)
    return Summary(rows, _findings(prepared(), rows, results), {"bottleneck": _plot(rows)})


def _findings(shared: Shared, rows: list[Record], results: list[Record]) -> list[str]:
    (n, K), s = shared.Y.shape, shared.most_labels
    said = [f"{shared.data.name or 'synthetic data'}: {n:,} rows with labels, K = {K:,} labels, at most s = {s} a row."]
    for part, title in PARTS.items():
        for hidden in sorted({r["hidden"] for r in rows if r["part"] == part}):
            mine = [r for r in rows if (r["part"], r["hidden"]) == (part, hidden)]
            parts = [
                f"d = {r['dim']:,}: {r['first']:.1f} ± {r['first_sd']:.1f} %, all {r['all_first']:.1f} %"
                + (f", test {r['test']:.1f} ± {r['test_sd']:.1f} %" if r["test"] is not None else "")
                for r in mine
            ]
            layer = f", {hidden} hidden units" if hidden else ""
            said.append(f"{title}{layer}, best label right and all labels first: {'; '.join(parts)}.")
    return [*said, *_statements(shared, results)]


def _statements(shared: Shared, results: list[Record]) -> list[str]:
    """What theorems 2.1 and B.1 state, beside what was drawn."""
    (n, K), s = shared.Y.shape, shared.most_labels
    paper, whole = (dimension_enough(n, K, s, every_label=every) for every in (False, True))
    said = [
        f"Theorem 2.1's proof asks for d = {paper:,}, or {whole:,} with the factor K that its union bound leaves out."
    ]
    random = [r for r in results if r["part"] == "random"]
    separated = [r["used_dim"] for r in random if r["lowest"] >= 1 - _TOLERANCE and r["highest"] <= _TOLERANCE]
    all_dims = sorted({r["used_dim"] for r in random})
    held = [d for d in all_dims if separated.count(d) == sum(r["used_dim"] == d for r in random)]
    said.append(
        "Statements 3 and 4 (own labels at least 2/3, others at most 1/3) held in every draw at d = "
        + (", ".join(f"{d:,}" for d in held) if held else "none of those drawn")
        + f"; of {', '.join(f'{d:,}' for d in all_dims)}."
    )
    close = sum(r["nearest_pair"] <= r["nearest_pair_bound"] for r in random)
    short = sum(r["longest"] <= r["longest_bound"] for r in random)
    said.append(
        f"Of {len(random)} draws, statement 5 (labels far apart) held in {close}, 6 (lengths of rows) in {short}."
    )
    projected = [r for r in results if r["part"] == "projected"]
    near = sum(r["off"] < r["off_bound"] for r in projected)
    largest = projected[-1]
    said.append(
        f"Theorem B.1's statement 6 (inner products within ε = {largest['off_bound']:.4f} of the geometric means) held "
        f"in {near} of {len(projected)} draws; the largest difference at d = {largest['used_dim']:,} was "
        f"{largest['off']:.3f}."
    )
    return said


def _plot(rows: list[Record]) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    figure, axes = make_figure(1, 2, width=4.6)
    curves = list(dict.fromkeys((r["part"], r["hidden"]) for r in rows))
    titles = {"first": "best label right, %", "all_first": "all labels of the row first, %"}
    for axis, (name, title) in zip(axes[0], titles.items(), strict=True):
        for i, (part, hidden) in enumerate(curves):
            mine = [r for r in rows if (r["part"], r["hidden"]) == (part, hidden)]
            dims = [r["dim"] for r in mine]
            label = PARTS[part] + (f", {hidden} hidden" if hidden else "")
            line(axis, i, dims, [r[name] for r in mine], [r[f"{name}_sd"] for r in mine], label=label)
            if part == "trained" and name == "first":
                tested = [r["test"] for r in mine], [r["test_sd"] for r in mine]
                line(axis, i, dims, *tested, label=f"{label}, test rows", linestyle="--")
        axis.set_xscale("log", base=2)
        axis.set_xlabel("d")
        axis.set_title(title)
    axes[0, 0].legend(frameon=False, fontsize=8)
    return figure
