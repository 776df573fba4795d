"""A plan as bytes that a database keeps: arrays without pickle, checked when they come back."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from tailwise.audit.drawing import Cells, Questions
from tailwise.audit.plan import Plan, Settings
from tailwise.audit.pool import STRATA, Pool
from tailwise.errors import DataFormatError
from tailwise.persistence.checks import check_range, check_shape, check_that

_NUMBERS = ("n_samples", "n_rows", "counts_own")
_PAIRS = ("rows", "labels", "chance", "missing", "place", "seen")
_RECORDED = ("recorded_rows", "recorded_labels", "recorded_place", "recorded_seen")


def pack(plan: Plan) -> bytes:
    """All of a plan in one compressed piece."""
    arrays: dict[str, Any] = {f"pool.{name}": value for name, value in plan.pool._asdict().items()}
    arrays |= {f"questions.{name}": value for name, value in plan.questions._asdict().items()}
    arrays |= {f"cells.{name}": value for name, value in plan.cells._asdict().items()}
    settings = np.frombuffer(json.dumps(plan.settings._asdict()).encode(), np.uint8)
    out = io.BytesIO()
    np.savez_compressed(out, settings=settings, **arrays)
    return out.getvalue()


def unpack(content: bytes, where: object) -> Plan:
    """The plan that :func:`pack` made, or a clear refusal."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        parts = {
            room: {name.partition(".")[2]: arrays[name] for name in arrays if name.startswith(f"{room}.")}
            for room in ("pool", "questions", "cells")
        }
        pool = parts["pool"] | {name: parts["pool"][name].item() for name in _NUMBERS}
        settings = Settings(**json.loads(arrays["settings"].tobytes()))
        plan = Plan(Pool(**pool), Questions(**parts["questions"]), Cells(**parts["cells"]), settings)
        _check(plan)
    except Exception as error:
        raise DataFormatError(
            where, None, f"a plan that cannot be read ({error})", "what `audit plan` wrote"
        ) from error
    return plan


def _check(plan: Plan) -> None:
    pool, asked = plan.pool, plan.questions
    n_labels = check_shape("label_counts", pool.label_counts, (None,), "iu").size
    check_shape("seen_share", pool.seen_share, (n_labels,), "f")
    check_that(pool.n_rows > 0 and pool.n_samples > 0, "it has no rows")
    groups = [(pool, _PAIRS), (pool, _RECORDED), (asked, Questions._fields)]
    for group, names in groups:
        size = getattr(group, names[0]).size
        for name in names:
            check_shape(name, getattr(group, name), (size,))
        check_range(names[0], getattr(group, names[0]), 0, pool.n_rows - 1)
        check_range(names[1], getattr(group, names[1]), 0, n_labels - 1)
    check_range("stratum", asked.stratum, 0, len(STRATA) - 1)
    check_that(((asked.probability > 0) & (asked.probability <= 1)).all(), "a probability is outside (0, 1]")
    check_that((asked.size > 0).all(), "a size is not above 0")
    for name, values in plan.cells._asdict().items():
        check_shape(name, values, (3 * len(STRATA),))
    check_that((pool.reach > 0).all() and (pool.reach <= 1).all(), "a reach is outside (0, 1]")
