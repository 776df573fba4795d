"""Experiment ``images``: do samplers and weightings trade head against tail on long-tailed images, as the theory says?

After figures 1 and 3 to 6 of *Disentangling Labeling and Sampling Bias for Learning in Large-output Spaces*. A small
residual network is trained on images cut along a profile (``exp``, ``step``) with the losses over every label and with
every sampler × weighting, of the softmax and, with fewer repeats and profiles, of the contrastive loss. It is judged by
the *balanced* error on complete, balanced test images: the mean of the labels' own errors, on head, torso and tail
labels. Every contender of one repeat sees the same images and starts at the same weights, so differences are taken
repeat by repeat. Learning rates are compared on images held out of the training images.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tailwise.embedding import RowNetwork
from tailwise.experiments.long_tail_images import (
    Images,
    ImageSet,
    cut_to_profile,
    load_image_set,
    profile_counts,
    shift_and_flip,
)
from tailwise.experiments.running import Record, Summary

CELLS_AT_ONCE = True
SLICES = ("head", "torso", "tail", "all")
WEIGHTINGS = ("constant", "importance", "relative", "tail")
FULL = {f"all labels, {loss}": {"sampler": None, "loss": loss} for loss in ("softmax", "logit_adjusted", "contrastive")}
SAMPLED = {
    f"{sampler}, {weighting}": {"sampler": sampler, "weighting": weighting}
    for sampler in ("uniform", "within_batch")
    for weighting in WEIGHTINGS
}
CONTRASTIVE = {f"{name}, contrastive": {**params, "loss": "contrastive"} for name, params in SAMPLED.items()}
CONTENDERS: dict[str, Record] = {**FULL, **SAMPLED, **CONTRASTIVE}
BASE = "all labels, softmax"
CHOSEN_BY = {
    "softmax": (BASE, "within_batch, constant", "within_batch, tail"),
    "contrastive": ("all labels, contrastive", "uniform, importance, contrastive"),
}
"""The contenders by which the learning rate of each loss is chosen."""
_VALIDATION_SHARE = 5
_TITLES = {"cifar10-lt": "CIFAR-10-LT", "omniglot": "Omniglot-LT", "digits": "scikit-learn's digits"}


def choose(size: str, options: Record) -> Record:
    """Data, contenders and repeats of each size."""
    usual = {
        "datasets": ["cifar10-lt", "omniglot"],
        "profiles": ["exp", "step"],
        "repeats": 2,
        "fewer_repeats": 2,
        "contrastive_profiles": ["exp"],
        "few_negatives": {"omniglot": [8]},
        "epochs": {"cifar10-lt": 24, "omniglot": 40},
        "width": 16,
        "first_stride": 2,
        "rates": {
            "cifar10-lt": {"softmax": 0.1, "contrastive": 0.3},
            "omniglot": {"softmax": 0.3, "contrastive": 0.3},
        },
        "compared_rates": [0.03, 0.1, 0.3],
    }
    by_size: dict[str, Record] = {
        "quick": {
            "datasets": ["digits"],
            "repeats": 2,
            "fewer_repeats": 1,
            "few_negatives": {},
            "epochs": {"digits": 8},
            "width": 4,
            "first_stride": 1,
            "rates": {"digits": {"softmax": 0.1, "contrastive": 0.1}},
            "compared_rates": [0.1],
        },
        "default": {},
        "full": {
            "epochs": {"cifar10-lt": 100, "omniglot": 100},
            "repeats": 5,
            "fewer_repeats": 5,
            "contrastive_profiles": ["exp", "step"],
            "few_negatives": {"omniglot": [8, 24, 128]},
        },
    }
    return {"data": options.get("data", ""), **usual, **by_size[size]}


def cells(settings: Record) -> list[Record]:
    """Rates on held-out images; then every contender on every set of images, profile and repeat; then fewer draws."""
    found: list[Record] = [
        {"part": "choosing", "dataset": name, "profile": "exp", "contender": contender, "rate": rate, "repeat": 0}
        for name in settings["datasets"]
        for contenders in CHOSEN_BY.values()
        for contender in contenders
        for rate in settings["compared_rates"]
    ]
    for repeat in range(settings["repeats"]):
        for name in settings["datasets"]:
            for profile in settings["profiles"]:
                seldom = repeat >= settings["fewer_repeats"] or profile not in settings["contrastive_profiles"]
                found += [
                    {"part": "judging", "dataset": name, "profile": profile, "contender": contender, "repeat": repeat}
                    for contender in CONTENDERS
                    if not (seldom and contender in CONTRASTIVE)
                ]
    return found + [
        {"part": "draws", "dataset": name, "profile": "exp", "contender": contender, "m": m, "repeat": repeat}
        for name, numbers in settings["few_negatives"].items()
        for m in numbers
        for contender in SAMPLED
        for repeat in range(settings["fewer_repeats"])
    ]


def prepare(settings: Record, n_jobs: int | None) -> tuple[Record, dict[str, ImageSet]]:
    """The images of every set."""
    return settings, {name: load_image_set(name, settings["data"]) for name in settings["datasets"]}


def compute(shared: tuple[Record, dict[str, ImageSet]], cell: Record, n_jobs: int | None) -> Record:
    """Cut the images, train, and judge on test images, or on held-out training images for the choice of rates."""
    settings, sets = shared
    images = sets[cell["dataset"]]
    n_labels = int(images.train.labels.max()) + 1
    rng = np.random.default_rng([settings["seed"], cell["repeat"]])
    pool, judged = images.train, images.test
    if cell["part"] == "choosing":
        pool, judged = _hold_out(pool, n_labels, rng)
    most, least = images.most[cell["profile"]]
    # What is held out is missing from the largest labels too: the profile then starts lower.
    most = min(most, int(np.bincount(pool.labels).max()))
    counts = profile_counts(cell["profile"], n_labels, most, least)
    seen = pool.some(cut_to_profile(pool.labels, counts, rng, images.shuffled))
    params = CONTENDERS[cell["contender"]]
    m = cell.get("m", images.n_negatives)
    model = RowNetwork(
        _body(settings, images),
        n_negatives=m,
        epochs=settings["epochs"][cell["dataset"]],
        learning_rate=cell.get("rate", settings["rates"][cell["dataset"]][_kind(cell["contender"])]),
        augment=shift_and_flip(images.train.pixels.shape[2] // 8, images.flipped),
        random_state=np.random.default_rng([settings["seed"], cell["repeat"], 1]),
        **params,
    )
    model.fit(seen.pixels, seen.indicator(n_labels))
    found = model.raw_scores(judged.pixels).argmax(axis=1)
    return {
        **balanced_errors(judged.labels, found, model.label_counts_, images.cuts),
        "m": m if params["sampler"] else "all",
        "theory": model.margin_.get("favours", "-"),
        "rows": int(seen.labels.size),
        "loss": round(model.losses_[-1], 4),
    }


def balanced_errors(
    labels: np.ndarray, found: np.ndarray, counts: np.ndarray, cuts: tuple[int, int]
) -> dict[str, float | None]:
    """The mean of the labels' error rates in percent, by slice of training frequency; None where a slice is empty.

    >>> balanced_errors(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 0]), np.array([9, 1]), (5, 2))["all"]
    66.667
    """
    tested = np.bincount(labels, minlength=counts.size)
    wrong = np.bincount(labels[found != labels], minlength=counts.size)
    error = 100 * wrong / np.maximum(1, tested)
    head, tail = counts >= cuts[0], counts < cuts[1]
    masks = {"head": head, "torso": ~head & ~tail, "tail": tail, "all": np.ones(counts.size, bool)}
    return {
        name: round(float(error[mask & (tested > 0)].mean()), 3) if (mask & (tested > 0)).any() else None
        for name, mask in masks.items()
    }


def _hold_out(images: Images, n_labels: int, rng: np.random.Generator) -> tuple[Images, Images]:
    """A fifth of each label's images taken out, to judge on."""
    drawn = [rng.permutation(np.flatnonzero(images.labels == label)) for label in range(n_labels)]
    held_out = np.concatenate([rows[: rows.size // _VALIDATION_SHARE] for rows in drawn])
    return images.some(np.setdiff1d(np.arange(images.labels.size), held_out)), images.some(held_out)


def _body(settings: Record, images: ImageSet) -> Callable[[], Any]:
    # Not at the top, because it imports torch.
    from tailwise.embedding.residual import ResidualNetwork

    channels = images.train.pixels.shape[1]
    return partial(ResidualNetwork, channels, width=settings["width"], first_stride=settings["first_stride"])


def summarise(settings: Record, results: list[Record], prepared: Callable[[], Any]) -> Summary:
    """Means and deviations over repeats, a verdict for each claim of the paper, and the plots."""
    judged = [r for r in results if r["part"] == "judging"]
    drawn = [r for r in results if r["part"] == "draws"]
    rows = [
        {"part": part, "dataset": name, "profile": profile, "contender": contender, "m": m, **_figures(group)}
        for (part, name, profile, contender, m), group in _grouped([*judged, *drawn]).items()
    ]
    findings = _rates([r for r in results if r["part"] == "choosing"], settings)
    for name in settings["datasets"]:
        for profile in settings["profiles"]:
            here = [r for r in judged if (r["dataset"], r["profile"]) == (name, profile)]
            findings += [f"{_TITLES[name]}, {profile.upper()}: {found}" for found in _claims(here)]
    findings += _fewer_draws(drawn, judged)
    figures = {
        "images": _plot(rows, [*FULL, *SAMPLED], settings["datasets"], settings["profiles"]),
        "images-contrastive": _plot(
            rows, ["all labels, contrastive", *CONTRASTIVE], settings["datasets"], settings["contrastive_profiles"]
        ),
    }
    if drawn:
        figures["images-draws"] = _plot_draws(drawn, judged)
    return Summary(rows, findings, figures)


def _grouped(results: list[Record]) -> dict[tuple[Any, ...], list[Record]]:
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for r in results:
        groups.setdefault((r["part"], r["dataset"], r["profile"], r["contender"], r["m"]), []).append(r)
    return groups


def _figures(group: list[Record]) -> Record:
    """Mean and deviation of each slice's error."""
    row: Record = {"theory": group[0]["theory"], "repeats": len(group)}
    for name in SLICES:
        values = [r[name] for r in group if r[name] is not None]
        row[name] = round(float(np.mean(values)), 2) if values else None
        row[f"{name}_sd"] = round(float(np.std(values, ddof=1)), 2) if len(values) > 1 else 0.0
    return row


def _kind(contender: str) -> str:
    return "contrastive" if "contrastive" in contender else "softmax"


def _rates(chosen: list[Record], settings: Record) -> list[str]:
    """The balanced error on held-out images by learning rate: the mean of the contenders that choose it."""
    found = []
    for name in settings["datasets"]:
        for kind, contenders in CHOSEN_BY.items():
            errors = {
                rate: np.mean(
                    [
                        r["all"]
                        for r in chosen
                        if (r["dataset"], r["rate"]) == (name, rate) and r["contender"] in contenders
                    ]
                )
                for rate in settings["compared_rates"]
            }
            listed = ", ".join(f"{rate:g}: {error:.1f}" for rate, error in errors.items())
            used = settings["rates"][name][kind]
            found.append(
                f"{_TITLES[name]}, {kind}: balanced error on held-out images by learning rate {listed}; used {used:g}."
            )
    return found


CLAIMS: dict[str, tuple[str, str, str]] = {
    "constant weights within the batch help the tail": ("within_batch, constant", BASE, "tail"),
    "constant weights within the batch improve the balanced error": ("within_batch, constant", BASE, "all"),
    "relative weights within the batch are better on the head than constant ones": (
        "within_batch, relative",
        "within_batch, constant",
        "head",
    ),
    "relative weights within the batch are better on the head than the full softmax": (
        "within_batch, relative",
        BASE,
        "head",
    ),
    "constant weights help the tail within the batch more than with uniform draws": (
        "within_batch, constant",
        "uniform, constant",
        "tail",
    ),
    "tail weights within the batch help the tail": ("within_batch, tail", BASE, "tail"),
    "tail weights with uniform draws help the tail": ("uniform, tail", BASE, "tail"),
    "the full logit-adjusted loss helps the tail": ("all labels, logit_adjusted", BASE, "tail"),
    "the full logit-adjusted loss is better on the tail than tail weights within the batch": (
        "all labels, logit_adjusted",
        "within_batch, tail",
        "tail",
    ),
    "the full logit-adjusted loss is better on the tail than tail weights with uniform draws": (
        "all labels, logit_adjusted",
        "uniform, tail",
        "tail",
    ),
    "the softmax is better than the contrastive loss": (BASE, "all labels, contrastive", "all"),
    "constant weights within the batch do not help the contrastive loss on the tail": (
        "all labels, contrastive",
        "within_batch, constant, contrastive",
        "tail",
    ),
}
"""What the paper claims: the first contender errs less than the second on the slice."""


def _claims(judged: list[Record]) -> list[str]:
    """Each claim with the mean and standard error of the difference, repeat by repeat."""
    at = {(r["contender"], r["repeat"]): r for r in judged}
    found = []
    for claim, (better, worse, where) in CLAIMS.items():
        repeats = [repeat for name, repeat in at if name == better and (worse, repeat) in at]
        pairs = [(at[better, repeat][where], at[worse, repeat][where]) for repeat in repeats]
        differences = np.array([a - b for a, b in pairs if a is not None])
        if not differences.size:
            continue
        error = float(differences.std(ddof=1)) / np.sqrt(differences.size) if differences.size > 1 else np.inf
        mean = float(differences.mean())
        verdict = "not seen" if abs(mean) <= 2 * error else "held" if mean < 0 else "the reverse"
        a, b = np.mean(pairs, axis=0)
        shown = f"± {error:.1f}" if np.isfinite(error) else "once"
        found.append(f"{claim}: {verdict} ({where} error {a:.1f} against {b:.1f}, {mean:+.1f} {shown}).")
    return found


def _fewer_draws(drawn: list[Record], judged: list[Record]) -> list[str]:
    """The balanced error by the number of draws, over the repeats that all numbers have."""
    found = []
    for name in dict.fromkeys(r["dataset"] for r in drawn):
        for contender in SAMPLED:
            listed = [f"m = {m}: {errors:.1f}" for m, errors in _by_draws(drawn, judged, name, contender, "all")]
            found.append(f"{_TITLES[name]}, EXP, {contender}: balanced error with {', '.join(listed)}.")
    return found


def _by_draws(
    drawn: list[Record], judged: list[Record], name: str, contender: str, where: str
) -> list[tuple[int, float]]:
    repeats = {r["repeat"] for r in drawn}
    errors: dict[int, list[float]] = {}
    for r in [*drawn, *judged]:
        if (r["dataset"], r["profile"], r["contender"]) == (name, "exp", contender) and r["repeat"] in repeats:
            errors.setdefault(r["m"], []).append(r[where])
    return sorted((m, float(np.mean(values))) for m, values in errors.items())


def _plot(rows: list[Record], contenders: list[str], datasets: list[str], profiles: list[str]) -> Any:
    from tailwise.experiments.plotting import dots, make_figure

    panels = [(name, profile) for name in datasets for profile in profiles]
    figure, axes = make_figure(1, len(panels), width=3.6, height=0.6 + 0.26 * len(contenders))
    for axis, (name, profile) in zip(axes[0], panels, strict=True):
        here = {
            r["contender"]: r
            for r in rows
            if (r["part"], r["dataset"], r["profile"]) == ("judging", name, profile) and r["contender"] in contenders
        }
        dots(axis, list(here), {s: [r[s] for r in here.values()] for s in SLICES})
        axis.set(title=f"{_TITLES[name]}, {profile.upper()}", xlabel="balanced error, %")
        if axis is not axes[0, 0]:
            axis.set_yticklabels([])
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=len(SLICES))
    return figure


def _plot_draws(drawn: list[Record], judged: list[Record]) -> Any:
    from tailwise.experiments.plotting import line, make_figure

    name = drawn[0]["dataset"]
    figure, axes = make_figure(1, len(SLICES), width=3.2)
    for axis, where in zip(axes[0], SLICES, strict=True):
        for i, contender in enumerate(SAMPLED):
            numbers, errors = zip(*_by_draws(drawn, judged, name, contender, where), strict=True)
            line(axis, i, numbers, errors, label=contender)
        axis.set(title=where, xlabel="m, negatives drawn", xscale="log")
    axes[0, 0].set_ylabel(f"{_TITLES[name]}, EXP: balanced error, %")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure
