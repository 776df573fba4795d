"""Judging taggers on labelled rows: predictions of several models in one common space of labels, and their metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.data.digests import count_known
from tailwise.data.labelled import Rows
from tailwise.errors import InvalidInput
from tailwise.metrics import Comparison, compare, evaluate
from tailwise.parallel import progress, row_blocks
from tailwise.tagger import Tagger

_ROWS_A_BLOCK = 2000


class Judged(NamedTuple):
    """One tagger's best labels for the rows of a :class:`Trial`."""

    name: str
    tagger: Tagger
    columns: np.ndarray
    """(n_labels + 1,) int32: where the tagger's labels stand in the trial's space; the last entry is -1, for none."""
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

    @property
    def texts(self) -> Sequence[str] | None:
        """The texts, where rows are texts."""
        return None if sparse.issparse(self.rows) else self.rows

    @property
    def unseen(self) -> int:
        """How many observed labels of the rows no model saw in training."""
        return int((self.counts[self.Y.indices] == 0).sum())

    @property
    def trained_on(self) -> dict[str, int]:
        """By model, how many of the rows it was trained on: they say nothing about rows that are new."""
        return {judged.name: count_known(self.rows, judged.tagger.row_digests_) for judged in self.models}

    def metrics(self, metrics: Sequence[str], confidence: float | None = 0.95) -> Comparison:
        """The metrics of every model with intervals, and paired differences to the first model."""
        options: dict[str, Any] = {"propensity": self.propensity, "label_counts": self.counts, "confidence": confidence}
        first, *others = self.models
        if others:
            return compare(self.Y, {judged.name: judged.topk for judged in self.models}, metrics, **options)
        return Comparison({first.name: evaluate(self.Y, first.topk, metrics, **options)}, first.name, confidence)


def default_metrics(k: int = 5) -> list[str]:
    """What is shown unless metrics are named.

    >>> default_metrics(3)[:4]
    ['p@1', 'p@3', 'ndcg@3', 'f1@3']
    """
    ks = usual_ks(k)
    return [
        *(f"p@{i}" for i in ks),
        f"ndcg@{k}",
        f"f1@{k}",
        f"recall@{k}",
        *(f"psp@{i}" for i in ks),
        f"psndcg@{k}",
        f"coverage@{k}",
        *(f"recall@{k}:{part}" for part in ("head", "torso", "tail")),
    ]


def usual_ks(k: int) -> list[int]:
    """1, 3 and 5 as far as they are below ``k``, and ``k``.

    >>> usual_ks(4)
    [1, 3, 4]
    """
    return sorted({i for i in (1, 3, 5) if i < k} | {k, 1})


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
    return Trial(
        rows.name,
        rows.rows,
        _relabel_matrix(rows.Y, np.array([column[label] for label in rows.label_ids], np.int64), len(ids)),
        ids,
        names,
        np.append(first.model_.label_counts_, np.zeros(extra, np.int64)),
        np.append(first.propensity_.propensity_, np.full(extra, unseen_propensity(first))),
        np.append(first.rarity_, np.full(extra, 2, first.rarity_.dtype)),
        [_judge_one(name, tagger, rows, column, k) for name, tagger in taggers.items()],
    )


def _judge_one(name: str, tagger: Tagger, rows: Rows, column: dict[str, int], k: int) -> Judged:
    columns = np.append(np.array([column[label] for label in tagger.label_ids_], np.int32), np.int32(-1))
    start = perf_counter()
    topk = predict_in_blocks(tagger.model_, tagger.rows(rows.rows), k, f"Predicting with {name}")
    return Judged(name, tagger, columns, TopK(columns[topk.labels], topk.scores), perf_counter() - start)


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
    return tagger.propensity_.of_unseen(tagger.n_samples_)


def _relabel_matrix(Y: sparse.csr_array, place: np.ndarray, n_labels: int) -> sparse.csr_array:
    moved = sparse.csr_array((Y.data, place[Y.indices].astype(np.int32), Y.indptr), shape=(Y.shape[0], n_labels))
    moved.sort_indices()
    return moved
