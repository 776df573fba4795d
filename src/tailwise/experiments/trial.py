"""Judging taggers on labelled rows: predictions of several models in one common space of labels."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.errors import InvalidInput
from tailwise.parallel import progress, row_blocks
from tailwise.propensity import JainPropensity, jain_inverse
from tailwise.tagger import Tagger
from tailwise.tail import PropensityReranker, TradeOff, classifier_norms
from tailwise.tail.wrapper import as_probabilities

_ROWS_A_BLOCK = 2000


class Rows(NamedTuple):
    """Rows to learn from or to be judged on: texts or rows of X, with their observed labels."""

    name: str
    rows: Any
    """A list of texts or a CSR matrix."""
    Y: sparse.csr_array
    label_ids: list[str]
    label_names: list[str]

    @property
    def texts(self) -> Sequence[str] | None:
        """The texts, where rows are texts."""
        return None if sparse.issparse(self.rows) else self.rows


class Judged(NamedTuple):
    """One model's best candidates for the rows of a :class:`Trial`, and what is known of the model."""

    name: str
    model: str
    """Class and the parameters that differ from the defaults."""
    topk: TopK
    probabilities: bool
    """Whether the scores are."""
    candidates: TopK
    """As ``topk``, before a trade-off towards rare labels ranked it anew."""
    chances: np.ndarray
    """The candidates' scores on the scale [0, 1]."""
    norms: np.ndarray | None
    """(n_labels,) norm of each label's weights, where the model is linear."""
    seconds: float
    """Time to predict all rows, text features included."""


class Trial(NamedTuple):
    """Rows with their observed labels, and the models judged on them."""

    name: str
    Y: sparse.csr_array
    texts: Sequence[str] | None
    label_ids: list[str]
    label_names: list[str]
    counts: np.ndarray
    """(n_labels,) training rows of each label; 0 for labels that only the rows have."""
    propensity: np.ndarray
    """(n_labels,) chance that a relevant label was observed."""
    slices: np.ndarray
    """(n_labels,) 0 head, 1 torso, 2 tail."""
    models: list[Judged]

    @property
    def inverse(self) -> np.ndarray:
        """Inverse propensities."""
        return 1.0 / self.propensity

    @property
    def unseen(self) -> int:
        """How many observed labels of the rows no model saw in training."""
        return int((self.counts[self.Y.indices] == 0).sum())


def judge(taggers: Mapping[str, Tagger], rows: Rows, k: int) -> Trial:
    """Predict the top ``k`` of every row with every tagger, all in one space of labels.

    Labels of the rows that training did not have get columns of their own: nobody can find them, and they count.
    Frequencies and propensities are those of the first tagger.
    """
    if not taggers:
        raise InvalidInput("there is no model to judge; pass at least one")
    if not rows.Y.shape[0]:
        raise InvalidInput(f"{rows.name} has no rows; there is nothing to judge")
    first = next(iter(taggers.values()))
    ids, names = list(first.label_ids_), list(first.label_names_)
    column = {label: i for i, label in enumerate(ids)}
    others = [(t.label_ids_, t.label_names_) for t in taggers.values() if t is not first]
    for more_ids, more_names in [*others, (rows.label_ids, rows.label_names)]:
        for label, name in zip(more_ids, more_names, strict=True):
            if label not in column:
                column[label] = len(ids)
                ids.append(label)
                names.append(name)
    extra = len(ids) - len(first.label_ids_)
    judged = [_judge_one(name, tagger, rows, column, len(ids), k) for name, tagger in taggers.items()]
    propensity = np.append(first.propensity_.propensity_, np.full(extra, unseen_propensity(first)))
    return Trial(
        rows.name,
        _relabel_matrix(rows.Y, np.array([column[label] for label in rows.label_ids], np.int64), len(ids)),
        rows.texts,
        ids,
        names,
        np.append(first.model_.label_counts_, np.zeros(extra, np.int64)),
        propensity,
        np.append(first.rarity_, np.full(extra, 2, first.rarity_.dtype)),
        judged,
    )


def _judge_one(name: str, tagger: Tagger, rows: Rows, column: dict[str, int], n_labels: int, k: int) -> Judged:
    model = tagger.model_
    start = perf_counter()
    X = tagger.rows(rows.rows)
    topk = predict_in_blocks(model, X, k, f"Predicting with {name}")
    seconds = perf_counter() - start
    ranked = model.base_ if isinstance(model, TradeOff | PropensityReranker) else model
    candidates = topk if ranked is model else predict_in_blocks(ranked, X, k, f"Candidates of {name}")
    place = np.append(np.array([column[label] for label in tagger.label_ids_], np.int32), -1)
    norms = _norms_of(model)
    if norms is not None:
        spread = np.zeros(n_labels)
        spread[place[:-1]] = norms
        norms = spread
    return Judged(
        name,
        describe(model),
        TopK(place[topk.labels], topk.scores),
        bool(model.scores_are_probabilities),
        TopK(place[candidates.labels], candidates.scores),
        as_probabilities(candidates.scores, ranked),
        norms,
        seconds,
    )


def predict_in_blocks(model: XMCModel, X: Any, k: int, description: str) -> TopK:
    """``model.predict_topk(X, k)`` with a progress bar."""
    parts = []
    with progress(description, X.shape[0]) as advance:
        for first, last in row_blocks(X.shape[0], _ROWS_A_BLOCK):
            parts.append(model.predict_topk(X[first:last], k))
            advance(last - first)
    return TopK(np.concatenate([part.labels for part in parts]), np.concatenate([part.scores for part in parts]))


def unseen_propensity(tagger: Tagger) -> float:
    """The propensity of a label without training rows: the curve at 0 where there is one, else the lowest known."""
    curve = tagger.propensity_
    if isinstance(curve, JainPropensity):
        return float(1 / jain_inverse(np.zeros(1), tagger.n_samples_, curve.a, curve.b)[0])
    return float(curve.propensity_.min())


def _norms_of(model: Any) -> np.ndarray | None:
    try:
        return classifier_norms(model)
    except InvalidInput:
        return None


def _relabel_matrix(Y: sparse.csr_array, place: np.ndarray, n_labels: int) -> sparse.csr_array:
    moved = sparse.csr_array((Y.data, place[Y.indices].astype(np.int32), Y.indptr), shape=(Y.shape[0], n_labels))
    moved.sort_indices()
    return moved


def describe(model: Any) -> str:
    """Class name with the parameters that differ from their defaults.

    >>> from tailwise import Centroid
    >>> describe(Centroid(n_jobs=2))
    'Centroid()'
    """
    defaults = {name: parameter.default for name, parameter in inspect.signature(type(model)).parameters.items()}
    shown = []
    for name, value in model.get_params(deep=False).items():
        if name != "n_jobs" and not _same(defaults.get(name, inspect.Parameter.empty), value):
            shown.append(f"{name}={describe(value) if hasattr(value, 'get_params') else repr(value)}")
    return f"{type(model).__name__}({', '.join(shown)})"


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except (TypeError, ValueError):
        return False
