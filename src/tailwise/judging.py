"""Judging taggers, and other programs' predictions, on labelled rows: all in one space of labels, and their metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone

from tailwise.base import TopK, XMCModel
from tailwise.data.digests import count_known
from tailwise.data.labelled import Rows
from tailwise.data.predictions import Predictions
from tailwise.errors import InvalidInput
from tailwise.metrics import Comparison, compare, evaluate
from tailwise.metrics.annif import AnnifEvaluation, annif_metrics
from tailwise.metrics.slices import UNSEEN
from tailwise.parallel import progress, row_blocks
from tailwise.propensity import JainPropensity, Propensity
from tailwise.text import Tagger
from tailwise.text.suggestions import rarity
from tailwise.validation import label_counts
from tailwise.vocabulary import Vocabulary

_ROWS_A_BLOCK = 2000


class Training(NamedTuple):
    """What is known of the labels from training: their ids and names, the rows of each, and of how many rows."""

    label_ids: list[str]
    label_names: list[str]
    counts: np.ndarray
    n_rows: int
    propensity: Propensity

    @classmethod
    def of_tagger(cls, tagger: Tagger, propensity: Propensity | None = None) -> Self:
        """What a tagger remembers; another ``propensity`` than its own is fitted to the same counts."""
        counts, n_rows = tagger.model_.label_counts_, tagger.n_samples_
        fitted = tagger.propensity_ if propensity is None else _fitted(propensity, counts, n_rows)
        return cls(tagger.label_ids_, tagger.label_names_, counts, n_rows, fitted)

    @classmethod
    def of_rows(cls, rows: Rows, propensity: Propensity | None = None) -> Self:
        """What labelled training rows tell."""
        counts, n_rows = label_counts(rows.Y), rows.Y.shape[0]
        return cls(rows.label_ids, rows.label_names, counts, n_rows, _fitted(propensity, counts, n_rows))


def _fitted(propensity: Propensity | None, counts: np.ndarray, n_rows: int) -> Propensity:
    propensity = JainPropensity() if propensity is None else clone(propensity)
    if isinstance(propensity, JainPropensity):
        return propensity.fit_counts(counts, n_rows)
    return propensity.fit(sparse.csr_array((1, counts.size), dtype=np.float32))


class Judged(NamedTuple):
    """The best labels that one tagger, or another program, gave the rows of a :class:`Trial`."""

    name: str
    tagger: Any
    """The Tagger; None where another program predicted."""
    columns: np.ndarray
    """(n_labels + 1,) int32: where its labels stand in the trial's space; the last entry is -1, for none."""
    topk: TopK
    seconds: float
    """Time to predict all rows, text features included."""

    def in_trial(self, topk: TopK) -> TopK:
        """Predictions of this tagger's model in the trial's space of labels."""
        return TopK(self.columns[topk.labels], topk.scores)


class Trial(NamedTuple):
    """Rows with their observed labels, and the taggers judged on them."""

    name: str
    rows: Any
    """A list of texts or a CSR matrix."""
    Y: sparse.csr_array
    label_ids: list[str]
    label_names: list[str]
    counts: np.ndarray
    """(n_labels,) training rows of each label; 0 for labels that only the rows have."""
    propensity: np.ndarray
    """(n_labels,) chance that a relevant label was observed."""
    slices: np.ndarray
    """(n_labels,) 0 head, 1 torso, 2 tail."""
    models: list[Judged]
    has_training: bool = True
    """Whether counts, propensity and slices are known; else they are of no label."""
    n_samples: int = 0
    """Training rows, where they are known."""

    @property
    def texts(self) -> Sequence[str] | None:
        """The texts, where rows are texts."""
        return None if sparse.issparse(self.rows) else self.rows

    @property
    def taggers(self) -> list[Judged]:
        """Those of the models that are taggers, and no predictions in a file."""
        return [judged for judged in self.models if judged.tagger is not None]

    @property
    def unseen(self) -> int:
        """How many observed labels of the rows no model saw in training."""
        return int((self.counts[self.Y.indices] == 0).sum()) if self.has_training else 0

    @property
    def trained_on(self) -> dict[str, int]:
        """By model, how many of the rows it was trained on: they say nothing about rows that are new."""
        return {judged.name: count_known(self.rows, judged.tagger.row_digests_) for judged in self.taggers}

    def metrics(self, metrics: Sequence[str], confidence: float | None = 0.95) -> Comparison:
        """The metrics of every model with intervals, and paired differences to the first model."""
        options: dict[str, Any] = {"confidence": confidence}
        if self.has_training:
            options |= {"propensity": self.propensity, "label_counts": self.counts}
        first, *others = self.models
        if others:
            return compare(self.Y, {judged.name: judged.topk for judged in self.models}, metrics, **options)
        return Comparison({first.name: evaluate(self.Y, first.topk, metrics, **options)}, first.name, confidence)

    def annif(self, k: int, vocab: Vocabulary | None = None, confidence: float | None = 0.95) -> AnnifEvaluation:
        """What ``annif eval`` would print of the first model's ``k`` best labels.

        Labels are those of ``vocab``, in its order: what it does not have, or no longer gives, is no label for Annif.
        Without one they are the labels of this trial.
        """
        topk = self.models[0].topk.padded(k)
        if vocab is None:
            return annif_metrics(self.Y, topk, confidence=confidence)
        place = vocab.places(self.label_ids)
        place[(place >= 0) & vocab.deprecated[place]] = -1
        keep = place[self.Y.indices] >= 0
        rows = np.repeat(np.arange(self.Y.shape[0]), np.diff(self.Y.indptr))[keep]
        true = (np.ones(rows.size, np.float32), (rows, place[self.Y.indices[keep]]))
        moved = np.append(place, np.int32(-1))[topk.labels]
        order = np.argsort(moved < 0, axis=1, kind="stable")
        labels, scores = (np.take_along_axis(part, order, axis=1) for part in (moved, topk.scores))
        # Annif does not load a deprecated concept of SKOS; in tables it is one that has no name.
        named = np.isin(np.arange(len(vocab)), vocab.terms.concept)
        return annif_metrics(
            sparse.csr_array(true, shape=(self.Y.shape[0], len(vocab))),
            TopK(labels, scores).first((moved >= 0).sum(axis=1)),
            n_labels=len(vocab) - int((vocab.deprecated & named).sum()),
            confidence=confidence,
        )


def default_metrics(k: int = 5, has_training: bool = True, has_unseen: bool = False) -> list[str]:
    """What is shown unless metrics are named; without training rows, what does not need their counts.

    ``has_unseen``: among the labels are some that no training row has, so their recall has a line of its own.

    >>> default_metrics(3)[:4]
    ['p@1', 'p@3', 'ndcg@3', 'f1@3']
    """
    ks = usual_ks(k)
    wanted = [
        *(f"p@{i}" for i in ks),
        f"ndcg@{k}",
        f"f1@{k}",
        f"recall@{k}",
        *(f"psp@{i}" for i in ks),
        f"psndcg@{k}",
        f"coverage@{k}",
        *(f"recall@{k}:{part}" for part in ("head", "torso", "tail", *([UNSEEN] if has_unseen else []))),
    ]
    return [name for name in wanted if has_training or not (name.startswith("ps") or ":" in name)]


def usual_ks(k: int) -> list[int]:
    """1, 3 and 5 as far as they are below ``k``, and ``k``.

    >>> usual_ks(4)
    [1, 3, 4]
    """
    return sorted({i for i in (1, 3, 5) if i < k} | {k, 1})


def judge(
    models: Mapping[str, Tagger | Predictions],
    rows: Rows,
    k: int,
    *,
    training: Training | None = None,
    propensity: Propensity | None = None,
) -> Trial:
    """The top ``k`` of every row by every tagger or other program, all in one space of labels.

    Labels of the rows that training did not have get columns of their own: nobody can find them, and they count.
    Frequencies and propensities are those of ``training``, else of the first tagger. ``propensity`` replaces the one
    that a tagger was trained with.
    """
    if not models:
        raise InvalidInput("there is no model to judge; pass at least one")
    if not rows.Y.shape[0]:
        raise InvalidInput(f"{rows.name} has no rows; there is nothing to judge")
    first = next((model for model in models.values() if isinstance(model, Tagger)), None)
    if training is None and first is not None:
        training = Training.of_tagger(first, propensity)
    named = [] if training is None else [(training.label_ids, training.label_names)]
    named += [(model.label_ids_, model.label_names_) for model in models.values() if isinstance(model, Tagger)]
    named += [(rows.label_ids, rows.label_names)]
    named += [(model.label_ids, model.label_ids) for model in models.values() if isinstance(model, Predictions)]
    names: dict[str, str] = {}
    for more_ids, more_names in named:
        for label, name in zip(more_ids, more_names, strict=True):
            names.setdefault(label, name)
    column = {label: place for place, label in enumerate(names)}
    known = 0 if training is None else len(training.label_ids)
    counts = np.zeros(len(column), np.int64)
    chances = np.ones(len(column))
    if training is not None:
        counts[:known], chances[:known] = training.counts, training.propensity.propensity_
        chances[known:] = training.propensity.of_unseen(training.n_rows)
    return Trial(
        rows.name,
        rows.rows,
        _relabel_matrix(rows.Y, np.array([column[label] for label in rows.label_ids], np.int64), len(column)),
        list(names),
        list(names.values()),
        counts,
        chances,
        rarity(counts),
        [_judge_one(name, model, rows, column, k) for name, model in models.items()],
        training is not None,
        0 if training is None else training.n_rows,
    )


def _judge_one(name: str, model: Tagger | Predictions, rows: Rows, column: dict[str, int], k: int) -> Judged:
    ids = model.label_ids if isinstance(model, Predictions) else model.label_ids_
    columns = np.append(np.array([column[label] for label in ids], np.int32), np.int32(-1))
    start = perf_counter()
    if isinstance(model, Predictions):
        _check_known(name, model, rows)
        return Judged(name, None, columns, TopK(columns[model.topk.labels], model.topk.scores), 0.0)
    topk = predict_in_blocks(model, model.rows(rows.rows), k, f"Predicting with {name}")
    return Judged(name, model, columns, TopK(columns[topk.labels], topk.scores), perf_counter() - start)


def _check_known(name: str, predictions: Predictions, rows: Rows) -> None:
    """Refuse predictions of which no label is one of the rows': they count or spell labels otherwise."""
    if predictions.label_ids and not set(predictions.label_ids) & set(rows.label_ids):
        raise InvalidInput(
            f"{name} predicts labels such as {predictions.label_ids[0]!r}, and {rows.name} has labels such as "
            f"{rows.label_ids[0]!r}: none is the same; predictions must name labels as the data do"
        )


def predict_in_blocks(model: XMCModel | Tagger, X: Any, k: int, description: str) -> TopK:
    """``model.predict_topk(X, k)`` with a progress bar."""
    parts = []
    with progress(description, X.shape[0]) as advance:
        for first, last in row_blocks(X.shape[0], _ROWS_A_BLOCK):
            parts.append(model.predict_topk(X[first:last], k))
            advance(last - first)
    return TopK(np.concatenate([part.labels for part in parts]), np.concatenate([part.scores for part in parts]))


def _relabel_matrix(Y: sparse.csr_array, place: np.ndarray, n_labels: int) -> sparse.csr_array:
    moved = sparse.csr_array((Y.data, place[Y.indices].astype(np.int32), Y.indptr), shape=(Y.shape[0], n_labels))
    moved.sort_indices()
    return moved
