"""The work behind ``tailwise train`` and ``tailwise learn``."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tailwise.atomic import OutputError
from tailwise.by_size import BySize
from tailwise.cli.inputs import open_tagger
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
from tailwise.propensity import JainPropensity, Propensity, named_propensity
from tailwise.text import GivenVectors, SentenceVectors, Tagger, TextFeatures, TextParts, TextRows
from tailwise.text.effort import check_minutes
from tailwise.text.encoding import find_encoder
from tailwise.vocabulary import LabelRules

HIERARCHY = "hierarchy"
"""The propensity that is fitted to the hierarchy of the vocabulary."""


def make_tagger(
    name: str,
    settings: list[str],
    feature_settings: list[str],
    *,
    effort: str = "normal",
    minutes: float | None = None,
    tail: float,
    calibrate: bool = True,
    seed: int,
    propensity: str | Propensity | None = None,
    rules: LabelRules | None = None,
    encoder: str | None = None,
    vectors: bool = False,
    keep: bool = False,
) -> Tagger:
    """The unfitted tagger that the options ask for; a wrong one is refused here, before any data is read."""

    known = named_propensity(propensity) if isinstance(propensity, str) else propensity
    features = parse_settings(TextFeatures, feature_settings, "--set-features")
    tagger = Tagger(
        by_size(settings, seed, known) if name == "auto" else named_model(name, settings, seed, known),
        effort=effort,
        minutes=minutes,
        tail=tail,
        calibrate=calibrate,
        features=_features(features, encoder, vectors),
        propensity=known,
        keep_training_data=keep,
        rules=rules,
        random_state=seed,
    )
    check_parameters(tagger)
    check_minutes(minutes, tagger.is_chosen)
    return tagger


def _features(settings: dict[str, Any], encoder: str | None, vectors: bool) -> TextRows | None:
    """What makes rows of texts, where the options ask for more than the model's own way."""
    if encoder:
        find_encoder(encoder)  # one that is missing is told before any data is read
    words = TextFeatures(**settings)
    dense = [GivenVectors()] * vectors + ([SentenceVectors(encoder)] if encoder else [])
    if dense:
        return TextParts([words, *dense])
    return words if settings else None


def named_model(name: str, settings: list[str], seed: int, propensity: Propensity | None = None) -> Any:
    """The unfitted model of that name with what --set says, and the seed and the propensity where it takes them."""
    cls = model_class(name)
    usual = {"random_state": seed} | ({} if propensity is None else {"propensity": propensity})
    chosen = {key: value for key, value in usual.items() if key in signature_of(cls)}
    return make_model(name, **chosen | parse_settings(cls, settings))


def by_size(settings: list[str], seed: int, propensity: Propensity | None = None) -> BySize:
    """What ``--model auto`` chooses from."""
    try:
        dismec, parabel = (named_model(name, settings, seed, propensity) for name in ("dismec", "parabel"))
    except InvalidInput as error:
        raise InvalidInput(f"{error}. --model auto chooses dismec or parabel; name one of them with --model") from error
    return BySize(one_vs_rest=dismec, tree=parabel)


def check_features_wanted(rows: Rows, wanted: bool) -> None:
    """Refuse options about texts for rows that are numbers."""
    if wanted and rows.texts is None:
        raise InvalidInput(
            f"--set-features and --encoder are for texts, but {rows.name} has numeric rows; leave them out"
        )


def train_tagger(
    make: Callable[[Rows], Tagger], read: Callable[[], Rows], path: Path, *, overwrite: bool = False
) -> tuple[Tagger, dict[str, Any]]:
    """Read, fit and save; returns the tagger that ``make`` makes for the rows, what was done and what it cost."""
    check_writable(path, overwrite=overwrite)
    clock = Clock()

    def step(name: str, what: str) -> None:
        clock.begin(name)
        say(what)

    with measured() as cost:
        clock.begin("reading")
        rows = read()
        tagger = make(rows)
        check_features_wanted(rows, tagger.features is not None)
        report_oddities(rows)
        tagger.fit(rows.rows, rows.Y, label_ids=rows.label_ids, names=rows.label_names, vocab=rows.vocab, on_step=step)
        clock.begin("saving")
        tagger.save(path)
        clock.stop()
    size = sum(file.stat().st_size for file in Path(path).iterdir()) / 1e6
    times = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in clock.seconds.items())
    say(f"wrote {path}: {size:.1f} MB; {times}; peak memory {cost.peak_mb:,.0f} MB")
    facts = {
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
    return tagger, facts


def hierarchy_propensity(rows: Rows) -> Propensity:
    """What ``--propensity hierarchy`` means for rows that have a vocabulary; its fit is told."""
    if rows.vocab is None:
        raise InvalidInput("--propensity hierarchy needs the vocabulary whose hierarchy is meant; name it with --vocab")
    found = rows.vocab.propensity(rows.Y, rows.label_ids)
    say(f"propensities from {found.fit_.n_labels:,} broader labels: a = {found.a:.3f}, b = {found.b:.3f}")
    return JainPropensity(found.a, b=found.b)


def update_tagger(
    path: Path,
    read: Callable[[], Rows],
    read_known: Callable[[], Rows] | None,
    output: Path | None,
    *,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Open, learn from more rows, and save beside the old model or in its place; returns what was done and its cost."""
    if output is not None:
        check_writable(output, overwrite=overwrite)
    tagger = open_tagger(path)
    if tagger.training_ is None and read_known is None:
        raise InvalidInput(
            f"{path} keeps no training rows, and cannot learn from new ones alone; train it with --keep-training-data, "
            "or name the records that it has learnt from so far with --training"
        )
    clock = Clock()

    def step(name: str, what: str) -> None:
        clock.begin(name)
        say(what)

    with measured() as cost:
        clock.begin("reading")
        rows = read()
        known = None if read_known is None else _as_learnt(read_known())
        before = (tagger.n_samples_, tagger.model_.n_features_in_, tagger.n_labels_)
        tagger.update(
            rows.rows,
            rows.Y,
            label_ids=rows.label_ids,
            names=dict(zip(rows.label_ids, rows.label_names, strict=True)),
            known=known,
            on_step=step,
        )
        clock.begin("saving")
        target = path if output is None else output
        tagger.save(target)
        clock.stop()
    after = (tagger.n_samples_, tagger.model_.n_features_in_, tagger.n_labels_)
    new_rows, new_features, new_labels = (now - then for now, then in zip(after, before, strict=True))
    again = tagger.model_.n_learnt_again
    times = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in clock.seconds.items())
    say(
        f"wrote {target}: {again:,} of {tagger.n_labels_:,} labels learnt again, {new_labels:,} of them new; "
        f"{new_rows:,} rows and {new_features:,} features more; {cost.cpu_seconds:.1f} s of CPU ({times})"
    )
    return {
        "model": str(target),
        "rows": after[0],
        "features": after[1],
        "labels": after[2],
        "new_rows": new_rows,
        "known_rows": rows.Y.shape[0] - new_rows,
        "new_features": new_features,
        "new_labels": new_labels,
        "learnt_again": again,
        "seconds": {part: round(seconds, 3) for part, seconds in clock.seconds.items()},
        "cpu_seconds": round(cost.cpu_seconds, 3),
        "peak_mb": round(cost.peak_mb, 1),
    }


def _as_learnt(rows: Rows) -> tuple[Any, list[list[str]]]:
    """Rows with their labels by id, as :meth:`Tagger.update` takes what it has learnt from."""
    lists = [[rows.label_ids[l] for l in rows.Y.indices[a:b]] for a, b in pairwise(rows.Y.indptr.tolist())]
    return rows.rows, lists


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
