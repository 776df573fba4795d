"""Experiment ``losses``: what corrected losses are worth when labels go missing at a known rate.

After figure 3 of *Unbiased Loss Functions for Extreme Classification With Missing Labels*. MNIST is taken as ten
binary labels. Training labels are dropped at propensity p, the same for all; a network with one hidden ReLU layer is
trained for 10 epochs with the plain loss, the unbiased one and the convex surrogate, and judged on complete labels:
by the plain loss it should have minimised, by the accuracy of its yes-or-no decisions, and by whether its best label
is right, which does not ask where the threshold lies.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.data import drop_labels
from tailwise.data.files import read_bytes
from tailwise.embedding.binary_network import BinaryNetwork
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.experiments.running import Record, Summary
from tailwise.losses import get_loss

CELLS_AT_ONCE = True
LOSSES = ("cross_entropy", "hinge", "squared_hinge", "squared_error")
CORRECTIONS = ("none", "unbiased", "convex")
MEASURES = {
    "accuracy": "binary accuracy, %",
    "best_label": "best label right, %",
    "test_loss": "loss on complete labels",
}
_TITLES = {"none": "plain", "unbiased": "unbiased", "convex": "convex surrogate"}
_MNIST_FOLDERS = ("mnist", "data/mnist", "../shared/data/mnist")


class Images(NamedTuple):
    """Training and test rows with complete labels."""

    name: str
    X: sparse.csr_array
    Y: sparse.csr_array
    X_test: sparse.csr_array
    Y_test: sparse.csr_array


def choose(size: str, options: Record) -> Record:
    """Rows, propensities and seeds of each size."""
    usual = {
        "rows": 12_000,
        "test_rows": 10_000,
        "propensities": [0.1, 0.2, 0.4, 0.6, 0.8, 1.0],
        "repeats": 3,
        "epochs": 10,
        "hidden": 128,
        "batch_size": 256,
        "learning_rate": 0.002,
    }
    by_size: dict[str, Record] = {
        "quick": {"rows": 1_500, "test_rows": 1_000, "propensities": [0.2, 1.0], "repeats": 2, "batch_size": 32},
        "default": {},
        "full": {"rows": 60_000, "propensities": [round(0.1 * i, 1) for i in range(1, 11)]},
    }
    return {"data": options.get("data", ""), **usual, **by_size[size]}


def cells(settings: Record) -> list[Record]:
    """Every loss × correction × propensity × repeat; what is the same by definition is computed once."""
    return [
        {"loss": loss, "correction": correction, "propensity": p, "repeat": repeat}
        for repeat in range(settings["repeats"])
        for p in settings["propensities"]
        for loss in LOSSES
        for correction in CORRECTIONS
        if _stands_for(loss, correction, p) == correction
    ]


def _stands_for(loss: str, correction: str, p: float) -> str:
    """The correction that gives the same loss: at p = 1 all do, and the unbiased squared error is convex."""
    if p == 1:
        return "none"
    return "unbiased" if (loss, correction) == ("squared_error", "convex") else correction


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, Images]:
    """The images, with as many training rows as the settings say."""
    images = load_images(settings["data"])
    keep = np.random.default_rng(settings["seed"]).permutation(images.X.shape[0])[: settings["rows"]]
    n = settings["test_rows"]
    return settings, images._replace(
        X=images.X[keep], Y=images.Y[keep], X_test=images.X_test[:n], Y_test=images.Y_test[:n]
    )


def compute(shared: tuple[Record, Images], cell: Record, n_jobs: int | None) -> Record:
    """Drop labels, train, judge on complete labels. Losses of one repeat see the same labels and initial weights."""
    settings, images = shared
    p = cell["propensity"]
    seed = [settings["seed"], cell["repeat"], round(100 * p)]
    model = BinaryNetwork(
        loss=cell["loss"],
        correction=cell["correction"],
        propensity=np.full(images.Y.shape[1], p),
        hidden=(settings["hidden"],),
        epochs=settings["epochs"],
        batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate"],
        random_state=np.random.default_rng([*seed, 1]),
        n_jobs=n_jobs,
    )
    model.fit(images.X, drop_labels(images.Y, p, random_state=np.random.default_rng([*seed, 2])))
    scores = model.raw_scores(images.X_test)
    truth = images.Y_test.toarray()
    loss = get_loss(cell["loss"])
    return {
        "accuracy": 100 * float(np.mean((scores >= loss.threshold) == (truth > 0))),
        "best_label": 100 * float(np.mean(truth[np.arange(len(truth)), scores.argmax(axis=1)])),
        "test_loss": float(loss(scores.astype(np.float64), truth).sum(axis=1).mean()),
        "training_loss": model.losses_[-1],
        "data": images.name,
    }


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """Means and standard deviations over repeats, the verdict for each loss, and the plots."""
    rows = []
    for loss in LOSSES:
        for correction in CORRECTIONS:
            for p in settings["propensities"]:
                stands = _stands_for(loss, correction, p)
                same = [r for r in results if (r["loss"], r["correction"], r["propensity"]) == (loss, stands, p)]
                row: Record = {"loss": loss, "correction": correction, "propensity": p, "repeats": len(same)}
                for measure in MEASURES:
                    values = np.array([r[measure] if r[measure] is not None else np.inf for r in same])
                    row[measure] = round(float(values.mean()), 4)
                    row[f"{measure}_sd"] = round(float(values.std(ddof=1)), 4) if len(values) > 1 else 0.0
                rows.append(row)
    data = results[0]["data"]
    facts = f"{data}, {settings['rows']:,} rows, {settings['epochs']} epochs, {settings['repeats']} repeats"
    return Summary(rows, [facts, *_findings(settings, rows)], {"losses": _plot(settings, rows, data)})


def _findings(settings: Record, rows: list[Record]) -> list[str]:
    at = {(r["loss"], r["correction"], r["propensity"]): r for r in rows}
    found = []
    for loss in LOSSES:
        for p in [p for p in settings["propensities"] if p < 1]:
            values = [at[loss, correction, p] for correction in CORRECTIONS]
            parts = [
                f"{_TITLES[r['correction']]} {r['accuracy']:.2f} ± {r['accuracy_sd']:.2f} %, "
                f"loss {r['test_loss']:.3g}, best label {r['best_label']:.1f} %"
                for r in values
            ]
            best = max(values, key=lambda r: r["accuracy"])
            found.append(
                f"{loss.replace('_', ' ')}, p = {p}: {'; '.join(parts)}. Most accurate: {_TITLES[best['correction']]}."
            )
    return found


def _plot(settings: Record, rows: list[Record], data: str) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    figure, axes = make_figure(len(MEASURES), len(LOSSES), width=3.5, height=2.8)
    for column, loss in enumerate(LOSSES):
        for i, (measure, title) in enumerate(MEASURES.items()):
            axis = axes[i, column]
            for j, correction in enumerate(CORRECTIONS):
                mine = [r for r in rows if (r["loss"], r["correction"]) == (loss, correction)]
                line(
                    axis,
                    j,
                    [r["propensity"] for r in mine],
                    [r[measure] for r in mine],
                    [r[f"{measure}_sd"] for r in mine],
                    label=_TITLES[correction],
                )
            if measure == "test_loss":
                axis.set_yscale("log")
                axis.set_xlabel("propensity of the training labels")
            if column == 0:
                axis.set_ylabel(title)
            if i == 0:
                axis.set_title(loss.replace("_", " "))
    axes[0, 0].legend(frameon=False, fontsize=8)
    figure.suptitle(f"{data}: trained on missing labels, judged on complete ones")
    return figure


def load_images(folder: str = "") -> Images:
    """MNIST from its four idx files in ``folder`` or a usual place; scikit-learn's digits without them."""
    for candidate in [folder] if folder else _MNIST_FOLDERS:
        if (found := Path(candidate)).is_dir():
            parts = [_read_idx(found, f"{part}-{kind}") for part in ("train", "t10k") for kind in _IDX_KINDS]
            return _as_images("MNIST", *parts)
    if folder:
        raise InvalidInput(f"data={folder!r} is not a folder; pass the one that holds MNIST's four idx files")
    from sklearn.datasets import load_digits

    pixels, digits = load_digits(return_X_y=True)
    cut = len(digits) * 2 // 3
    return _as_images("scikit-learn's digits", pixels[:cut] * 16, digits[:cut], pixels[cut:] * 16, digits[cut:])


_IDX_KINDS = ("images-idx3-ubyte", "labels-idx1-ubyte")


def _read_idx(folder: Path, name: str) -> np.ndarray:
    path = next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)
    if path is None:
        raise InvalidInput(f"{folder} lacks {name} (or {name}.gz); it needs MNIST's four idx files")
    data = read_bytes(path)
    n_dimensions = data[3] if len(data) > 4 and data[:3] == b"\x00\x00\x08" else 0
    start = 4 + 4 * n_dimensions
    shape = struct.unpack(f">{n_dimensions}I", data[4:start]) if n_dimensions and len(data) >= start else ()
    if not shape or len(data) - start != np.prod(shape, dtype=np.int64):
        raise DataFormatError(
            path, None, f"{len(data):,} bytes that start with {data[:4]!r}", "a whole idx file of bytes"
        )
    return np.frombuffer(data, np.uint8, offset=start).reshape(shape)


def _as_images(name: str, train: Any, digits: Any, test: Any, test_digits: Any) -> Images:
    def rows(pixels: Any) -> sparse.csr_array:
        return sparse.csr_array(np.asarray(pixels, np.float32).reshape(len(pixels), -1) / np.float32(255))

    def labels(values: Any) -> sparse.csr_array:
        return sparse.csr_array(np.eye(10, dtype=np.float32)[np.asarray(values)])

    return Images(name, rows(train), labels(digits), rows(test), labels(test_digits))
