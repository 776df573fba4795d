"""The work behind ``tailwise train``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from tailwise.cli.models import choose_model, make_model, model_class, parse_settings, with_tail
from tailwise.cli.output import say, warn
from tailwise.data.text_features import TextFeatures
from tailwise.errors import InvalidInput
from tailwise.experiments.measure import measured
from tailwise.experiments.trial import Rows, describe
from tailwise.persistence import is_replaceable
from tailwise.tagger import Tagger


def train_tagger(
    read: Callable[[], Rows],
    path: Path,
    *,
    name: str,
    tail: float,
    settings: list[str],
    feature_settings: list[str],
    seed: int,
    jobs: int | None,
) -> dict[str, Any]:
    """Read, choose, build, fit and save; returns what was done. Bad arguments are refused before any long work."""
    if name != "auto":
        parse_settings(model_class(name), settings)
    wanted_features = parse_settings(TextFeatures, feature_settings)
    check_writable(path)
    clock = Clock()
    with measured() as cost:
        rows = read()
        clock.lap("reading")
        features = TextFeatures(**wanted_features) if rows.texts is not None else None
        if features is None and feature_settings:
            raise InvalidInput(f"--set-features is for texts, but {rows.name} has numeric rows")
        report_oddities(rows)
        X = rows.rows
        if features is not None:
            say(f"turning {len(rows.rows):,} texts into features")
            X = features.fit_transform(rows.rows)
            clock.lap("text features")
        if name == "auto":
            name, reason = choose_model(X.shape[0], rows.Y.shape[1], X.nnz)
            say(f"--model auto chose {name}. {reason}")
        model = with_tail(make_model(name, settings, random_state=seed, n_jobs=jobs), tail)
        say(f"training {describe(model)} on {X.shape[0]:,} rows, {X.shape[1]:,} features, {rows.Y.shape[1]:,} labels")
        tagger = Tagger.on_rows(model, X, rows.Y, label_ids=rows.label_ids, names=rows.label_names, features=features)
        clock.lap("training")
        tagger.save(path)
        clock.lap("saving")
    size = sum(file.stat().st_size for file in Path(path).iterdir()) / 1e6
    times = ", ".join(f"{part} {time:.1f} s" for part, time in clock.laps.items())
    say(f"wrote {path}: {size:.1f} MB; {times}; peak memory {cost.peak_mb:,.0f} MB")
    return {
        "model": str(path),
        "class": describe(model),
        "rows": X.shape[0],
        "features": X.shape[1],
        "labels": rows.Y.shape[1],
        "seconds": {part: round(time, 3) for part, time in clock.laps.items()},
        "cpu_seconds": round(cost.cpu_seconds, 3),
        "peak_mb": round(cost.peak_mb, 1),
        "size_mb": round(size, 3),
    }


class Clock:
    """Where the time goes: :meth:`lap` gives what passed since the last one a name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = perf_counter()

    def lap(self, name: str) -> None:
        """End a part."""
        now = perf_counter()
        self.laps[name], self._last = now - self._last, now


def check_writable(path: Path) -> None:
    """Refuse an output that could not be replaced, before hours of training."""
    path = Path(path)
    if not is_replaceable(path):
        raise InvalidInput(f"--output {path} exists and is not a tailwise model; choose another folder or remove it")
    parent = next(p for p in [path.absolute().parent, *path.absolute().parents] if p.exists())
    if not os.access(parent, os.W_OK):
        raise InvalidInput(f"--output {path} cannot be written: {parent} is not writable")


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
