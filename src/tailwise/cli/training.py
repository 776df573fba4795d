"""The work behind ``tailwise train``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tailwise
from tailwise.atomic import OutputError
from tailwise.by_size import BySize
from tailwise.cli.output import ask, say, warn
from tailwise.cli.settings import parse_settings
from tailwise.data import Rows
from tailwise.display import describe
from tailwise.errors import InvalidInput
from tailwise.measure import Clock, measured
from tailwise.models import make_model, model_class
from tailwise.parameters import check_parameters, signature_of
from tailwise.persistence import is_replaceable
from tailwise.persistence.manifest import MANIFEST
from tailwise.propensity import named_propensity
from tailwise.text import Tagger, TextFeatures


def make_tagger(
    name: str,
    settings: list[str],
    feature_settings: list[str],
    *,
    tail: float,
    seed: int,
    propensity: str | None = None,
) -> Tagger:
    """The unfitted tagger that the options ask for; a wrong one is refused here, before any data is read."""

    known = None if propensity is None else named_propensity(propensity)

    def model(name: str) -> Any:
        cls = model_class(name)
        usual = {"random_state": seed} | ({} if known is None else {"propensity": known})
        chosen = {key: value for key, value in usual.items() if key in signature_of(cls)}
        made = make_model(name, **chosen | parse_settings(cls, settings))
        return tailwise.PropensityReranker(made, tail=tail, propensity=known) if tail else made

    features = parse_settings(TextFeatures, feature_settings, "--set-features")
    tagger = Tagger(
        _by_size(model) if name == "auto" else model(name),
        features=TextFeatures(**features) if features else None,
        propensity=known,
    )
    check_parameters(tagger)
    return tagger


def _by_size(model: Callable[[str], Any]) -> BySize:
    try:
        return BySize(one_vs_rest=model("dismec"), tree=model("parabel"))
    except InvalidInput as error:
        raise InvalidInput(f"{error}. --model auto chooses dismec or parabel; name one of them with --model") from error


def train_tagger(tagger: Tagger, read: Callable[[], Rows], path: Path, *, overwrite: bool = False) -> dict[str, Any]:
    """Read, fit and save; returns what was done and what it cost."""
    check_writable(path, overwrite=overwrite)
    clock = Clock()

    def step(name: str, what: str) -> None:
        clock.begin(name)
        say(what)

    with measured() as cost:
        clock.begin("reading")
        rows = read()
        if tagger.features is not None and rows.texts is None:
            raise InvalidInput(f"--set-features is for texts, but {rows.name} has numeric rows; leave it out")
        report_oddities(rows)
        tagger.fit(rows.rows, rows.Y, label_ids=rows.label_ids, names=rows.label_names, on_step=step)
        clock.begin("saving")
        tagger.save(path)
        clock.stop()
    size = sum(file.stat().st_size for file in Path(path).iterdir()) / 1e6
    times = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in clock.seconds.items())
    say(f"wrote {path}: {size:.1f} MB; {times}; peak memory {cost.peak_mb:,.0f} MB")
    return {
        "model": str(path),
        "class": describe(tagger.model_),
        "rows": tagger.n_samples_,
        "features": tagger.model_.n_features_in_,
        "labels": tagger.model_.n_labels_,
        "seconds": {part: round(seconds, 3) for part, seconds in clock.seconds.items()},
        "cpu_seconds": round(cost.cpu_seconds, 3),
        "peak_mb": round(cost.peak_mb, 1),
        "size_mb": round(size, 3),
    }


def check_writable(path: Path, *, overwrite: bool = False) -> None:
    """Refuse an output that could not be written or that nobody said to replace, before hours of training."""
    path = Path(path)
    if not is_replaceable(path):
        raise InvalidInput(f"--output {path} exists and is not a tailwise model; choose another folder or remove it")
    if (path / MANIFEST).exists() and not overwrite and not ask(f"{path} holds a model already; replace it?"):
        raise InvalidInput(
            f"--output {path} holds a model already; replace it with --overwrite, or choose another folder"
        )
    parent = next(p for p in [path.absolute().parent, *path.absolute().parents] if p.exists())
    if not os.access(parent, os.W_OK):
        raise OutputError(f"--output {path} cannot be written: {parent} is not writable")


def report_oddities(rows: Rows) -> None:
    """Say what is odd about the rows but does not stop the work."""
    without = int((np.diff(rows.Y.indptr) == 0).sum())
    if without:
        warn(f"{without:,} of {rows.Y.shape[0]:,} rows have no label; they count as examples of no label")
    if rows.texts is None:
        return
    empty = sum(not text.strip() for text in rows.texts)
    if empty == len(rows.texts):
        raise InvalidInput(f"every text of {rows.name} is empty; check --text-columns")
    if empty:
        warn(f"{empty:,} of {len(rows.texts):,} texts are empty")
    twice = len(rows.texts) - len(set(rows.texts)) - max(0, empty - 1)
    if twice > 0:
        warn(f"{twice:,} texts occur more than once; rows that are also in the test data make results look too good")
