"""Planning for a tagger: its features, its labels, and whether it has learned from the rows already."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.audit.plan import Plan, Settings, check_settings, plan_questions
from tailwise.audit.pool import make_pool, make_pool_of_new_rows
from tailwise.audit.records import Origin
from tailwise.data.digests import count_known, row_digests
from tailwise.data.labelled import Rows
from tailwise.errors import InvalidInput
from tailwise.propensity import Propensity
from tailwise.text import Tagger
from tailwise.validation import check_features, label_counts


def plan_for_tagger(
    tagger: Tagger, rows: Rows, settings: Settings, *, model_digest: str = "", propensity: Propensity | None = None
) -> tuple[Plan, Origin]:
    """Plan an audit of labelled ``rows`` with the features, the model's parameters and the labels of ``tagger``.

    Rows that none of the tagger's training rows equals are scored by the model as it is. Else clones of the model are
    trained on the other folds of the rows, because a model knows the labels that it was shown. ``propensity`` is the
    guess; None is the tagger's own.
    """
    check_settings(settings)
    if not rows.Y.shape[0] or not rows.Y.nnz:
        raise InvalidInput(f"{rows.name} has no labelled rows; there is nothing to audit")
    names = dict(zip(tagger.label_ids_, tagger.label_names_, strict=True))
    for label, name in zip(rows.label_ids, rows.label_names, strict=True):
        names.setdefault(label, name)
    Y = in_space(rows.Y, rows.label_ids, list(names))
    X = check_features(tagger.rows(rows.rows))
    model = tagger.model_
    options: dict[str, Any] = {"width": settings.width, "floor": settings.floor}
    if count_known(rows.rows, tagger.row_digests_):
        guess = _guess(tagger, propensity, label_counts(Y), Y.shape[0])
        pool = make_pool(model, X, Y, guess, n_folds=settings.n_folds, random_state=settings.seed, **options)
    else:
        counts = np.zeros(Y.shape[1], np.int64)
        counts[: model.n_labels_] = model.label_counts_
        guess = _guess(tagger, propensity, counts, tagger.n_samples_)
        pool = make_pool_of_new_rows(model, X, Y, guess, tagger.n_samples_, **options)
    origin = Origin(model_digest, rows.name, list(names), list(names.values()), rows_digest(rows.rows))
    return plan_questions(pool, settings), origin


def in_space(Y: sparse.csr_array, ids: list[str], space: list[str]) -> sparse.csr_array:
    """``Y`` with its columns where ``space`` has their ids."""
    column = {label: place for place, label in enumerate(space)}
    places = np.array([column[label] for label in ids], np.int32)
    moved = sparse.csr_array((Y.data, places[Y.indices], Y.indptr), shape=(Y.shape[0], len(space)))
    moved.sort_indices()
    return moved


def rows_digest(rows: Any) -> str:
    """A digest of all rows in their order."""
    return sha256(row_digests(rows).tobytes()).hexdigest()


def _guess(tagger: Tagger, propensity: Propensity | None, counts: np.ndarray, n_samples: int) -> np.ndarray:
    """The propensity of every label: ``propensity`` fitted to the counts, or what the tagger was trained with."""
    if hasattr(propensity, "fit_counts"):
        return propensity.fit_counts(counts, n_samples).propensity_  # type: ignore[union-attr]
    if propensity is not None:
        return propensity.fit(sparse.csr_array((1, counts.size), dtype=np.float32)).propensity_
    known = tagger.propensity_
    found = np.full(counts.size, known.of_unseen(tagger.n_samples_))
    found[: known.propensity_.size] = known.propensity_
    return found
