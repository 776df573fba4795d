"""What a report found, kept beside the model: the service shows it on the model's page, by the report's own parts.

Numbers are kept, and HTML is made of them when they are shown: a file from elsewhere cannot bring any.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tailwise.atomic import write_whole
from tailwise.display import plain
from tailwise.errors import ModelFileError, TailwiseError
from tailwise.experiments.report import facts, sections
from tailwise.experiments.report.glossary import glossary
from tailwise.judging import Judged, Trial, default_metrics
from tailwise.metrics.names import parse_metric
from tailwise.metrics.result import Estimate, Evaluation
from tailwise.persistence.manifest import read_manifest
from tailwise.text.suggestions import RARITIES

FILE = "evaluation.json"
_FORMAT = 1
_LARGEST = 1_000_000
_DEEPEST = 1000


class Kept(NamedTuple):
    """How a model did on labelled rows: metrics with intervals and by rarity, calibration, coverage."""

    data: str
    made: str
    """When, as ISO 8601 in UTC."""
    model: str
    """The digest of the model's manifest."""
    k: int
    metrics: Evaluation
    calibration: facts.Reliability
    ks: list[int]
    coverage: list[float]
    """In percent, at each of ``ks``."""


def keep(trial: Trial, judged: Judged, folder: Path, k: int) -> Path:
    """Write what ``trial`` says of one of its models into the model's folder; returns the file."""
    wanted = default_metrics(k, trial.has_training)
    if trial.has_training:
        wanted += [f"{metric}@{k}:{part}" for metric in ("p", "ndcg", "coverage") for part in RARITIES]
    ks = facts.coverage_ks(trial)
    body = {
        "format": _FORMAT,
        "data": trial.name,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": str(read_manifest(folder)["sha256"]),
        "k": k,
        "metrics": trial._replace(models=[judged]).metrics(wanted)[judged.name].to_dict(),
        "calibration": facts.reliability_of(trial, judged, k)._asdict(),
        "coverage": {"k": ks, "value": facts.coverage_of(trial, judged, ks)},
    }
    path = folder / FILE
    write_whole(path, json.dumps(plain(body), indent=1) + "\n")
    return path


def read(path: Path) -> Kept | None:
    """What was kept in the file ``path``; None where there is none."""
    if not path.exists():
        return None
    try:
        if path.stat().st_size > _LARGEST:
            raise ValueError(f"{path.stat().st_size:,} bytes")
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["format"] != _FORMAT:
            raise ValueError(f"format {found['format']!r}")
        return _kept(found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, TailwiseError, RecursionError) as error:
        raise ModelFileError(
            f"{path} does not hold an evaluation ({type(error).__name__}: {error}); write it anew with "
            "`tailwise report MODEL DATA -o report.html --keep`, or remove it"
        ) from error


def _kept(found: dict[str, Any]) -> Kept:
    told = found["metrics"]
    metrics = {
        parse_metric(name): Estimate(
            _number(one["value"]), _number(one["low"]), _number(one["high"]), str(one["method"])
        )
        for name, one in told["metrics"].items()
    }
    confidence = None if told["confidence"] is None else float(told["confidence"])
    bins = found["calibration"]
    score, observed, size = (np.array([_number(v) for v in bins[name]]) for name in ("score", "observed", "size"))
    ks = [int(k) for k in found["coverage"]["k"]]
    coverage = [_number(value) for value in found["coverage"]["value"]]
    k = int(found["k"])
    if not (score.size == observed.size == size.size) or len(ks) != len(coverage) or not ks:
        raise ValueError("lists of different lengths")
    if (
        not all(1 <= one <= _DEEPEST for one in [k, *ks])
        or not np.isfinite(np.concatenate([score, observed, size])).all()
    ):
        raise ValueError("numbers out of range")
    return Kept(
        str(found["data"]),
        datetime.fromisoformat(found["made"]).isoformat(),
        str(found["model"]),
        k,
        Evaluation(metrics, int(told["n_rows"]), int(told["n_labels"]), confidence),
        facts.Reliability(
            score, observed, size.astype(np.int64), None if bins["error"] is None else float(bins["error"])
        ),
        ks,
        coverage,
    )


def _number(value: Any) -> float:
    return np.nan if value is None else float(value)


def parts(kept: Kept, name: str) -> list[tuple[str, str, str]]:
    """The sections (anchor, heading, HTML) that show it, as a report has them."""
    metrics = kept.metrics.table().html() + sections.interval_chart({name: kept.metrics}, kept.k)
    calibration = sections.calibration_intro(kept.k) + sections.plots(
        sections.calibration_figure(name, kept.calibration)
    )
    return [
        ("metrics", "Metrics", metrics),
        ("calibration", "Calibration", calibration),
        ("coverage", "Coverage", sections.coverage_figure(kept.ks, [name], [kept.coverage])),
        ("glossary", "Glossary", glossary()),
    ]


def shown(path: Path, name: str, version: str) -> dict[str, Any] | None:
    """What is kept in the file ``path`` of the model called ``name``, as numbers and as sections of a page, or None.

    ``current`` says whether it was this ``version`` of the model, the digest of its manifest, that was judged.
    """
    kept = read(path)
    if kept is None:
        return None
    return plain(
        {
            "data": kept.data,
            "rows": kept.metrics.n_rows,
            "made": kept.made,
            "current": kept.model == version,
            "k": kept.k,
            "metrics": kept.metrics.to_dict()["metrics"],
            "calibration": kept.calibration,
            "coverage": {"k": kept.ks, "value": kept.coverage},
            "sections": [{"id": anchor, "title": heading, "html": html} for anchor, heading, html in parts(kept, name)],
        }
    )
