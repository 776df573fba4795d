"""The work behind ``tailwise train``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

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
from tailwise.propensity import JainPropensity, Propensity, named_propensity
from tailwise.text import GivenVectors, SentenceVectors, Tagger, TextFeatures, TextParts, TextRows
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
    tail: float,
    calibrate: bool = True,
    seed: int,
    propensity: str | Propensity | None = None,
    rules: LabelRules | None = None,
    encoder: str | None = None,
    vectors: bool = False,
) -> Tagger:
    """The unfitted tagger that the options ask for; a wrong one is refused here, before any data is read."""

    known = named_propensity(propensity) if isinstance(propensity, str) else propensity

    def model(name: str) -> Any:
        cls = model_class(name)
        usual = {"random_state": seed} | ({} if known is None else {"propensity": known})
        chosen = {key: value for key, value in usual.items() if key in signature_of(cls)}
        return make_model(name, **chosen | parse_settings(cls, settings))

    features = parse_settings(TextFeatures, feature_settings, "--set-features")
    tagger = Tagger(
        _by_size(model) if name == "auto" else model(name),
        effort=effort,
        tail=tail,
        calibrate=calibrate,
        features=_features(features, encoder, vectors),
        propensity=known,
        rules=rules,
        random_state=seed,
    )
    check_parameters(tagger)
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


def _by_size(model: Callable[[str], Any]) -> BySize:
    try:
        return BySize(one_vs_rest=model("dismec"), tree=model("parabel"))
    except InvalidInput as error:
        raise InvalidInput(f"{error}. --model auto chooses dismec or parabel; name one of them with --model") from error


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
        if tagger.features is not None and rows.texts is None:
            raise InvalidInput(
                f"--set-features and --encoder are for texts, but {rows.name} has numeric rows; leave them out"
            )
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
