"""Taug: head and tail labels learned apart, the tail from augmented rows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse

from tailwise.base import TopK, XMCModel
from tailwise.explanation import Explanation, not_ranked
from tailwise.parameters import Choice, Integer, Number
from tailwise.persistence.checks import check_exact, check_indices, check_monotone, check_that
from tailwise.tail.ranking import sort_topk
from tailwise.tail.wrapper import Wrapper, as_probabilities, explain_probability
from tailwise.validation import as_rng, check_features, check_labels

_AUGMENTATION = {
    "n_aug": Integer(low=0),
    "keep_probability": Number(low=0, high=1, open_low=True),
    "swap": Number(low=0, high=1),
}


def augment_rows(
    X: sparse.csr_array,
    Y: sparse.csr_array,
    *,
    n_aug: int = 4,
    keep_probability: float = 0.8,
    swap: float = 0.2,
    random_state: int | np.random.Generator | None = None,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """``n_aug`` changed copies of every row, with the row's labels: (n_aug · n, n_features), (n_aug · n, n_labels).

    Input dropout keeps each feature with ``keep_probability`` (1 keeps all). Input swap exchanges the values of
    pairs of a row's remaining features; ``swap`` is the share of its features that take part (0 swaps none).

    >>> X, Y = augment_rows([[1.0, 2, 3]], [[1, 0]], n_aug=2, keep_probability=1.0, swap=1.0, random_state=0)
    >>> X.shape, sorted(X.toarray()[0].tolist()), Y.toarray().tolist()
    ((2, 3), [1.0, 2.0, 3.0], [[1.0, 0.0], [1.0, 0.0]])
    """
    for name, value in (("n_aug", n_aug), ("keep_probability", keep_probability), ("swap", swap)):
        _AUGMENTATION[name].check(name, value)
    X = check_features(X)
    Y = check_labels(Y, n_rows=X.shape[0])
    rng = as_rng(random_state)
    if not n_aug:
        return sparse.csr_array(X[:0]), sparse.csr_array(Y[:0])
    copies = sparse.csr_array(sparse.vstack([X] * n_aug, format="csr"))
    kept = rng.random(copies.nnz) < keep_probability if keep_probability < 1 else np.ones(copies.nnz, bool)
    counts = np.add.reduceat(np.append(kept, False).astype(np.int64), copies.indptr[:-1])
    counts[np.diff(copies.indptr) == 0] = 0
    indptr = np.concatenate([[0], np.cumsum(counts)])
    data, indices = copies.data[kept], copies.indices[kept]
    data = _swap_values(data, indptr, swap, rng)
    changed = sparse.csr_array((data, indices, indptr), shape=copies.shape)
    return changed, sparse.csr_array(sparse.vstack([Y] * n_aug, format="csr"))


def _swap_values(data: np.ndarray, indptr: np.ndarray, swap: float, rng: np.random.Generator) -> np.ndarray:
    """Exchange values within rows: the chosen entries of each row are paired at random."""
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    chosen = np.flatnonzero(rng.random(data.size) < swap)
    chosen = chosen[np.lexsort((rng.random(chosen.size), rows[chosen]))]
    first, second = chosen[:-1], chosen[1:]
    starts = np.flatnonzero(np.append(True, rows[second] != rows[first])) if chosen.size else np.empty(0, np.int64)
    place = np.arange(chosen.size) - np.repeat(starts, np.diff(np.append(starts, chosen.size)))
    pairs = (place[:-1] % 2 == 0) & (rows[first] == rows[second]) if chosen.size else np.empty(0, bool)
    swapped = data.copy()
    swapped[first[pairs]], swapped[second[pairs]] = data[second[pairs]], data[first[pairs]]
    return swapped


class TailAugmented(Wrapper):
    """Train ``base`` once for the head labels and once, on augmented rows, for the tail labels; merge their scores.

    Labels are sorted by training frequency; the first ``⌊tau · L⌋`` of the L that have rows are the head. The tail's
    model sees of rows with a tail label also ``n_aug`` copies made by :func:`augment_rows`. Both models' scores are put
    on the scale of probabilities before they are merged.

    Parameters
    ----------
    base : XMCModel
        The model for each part; it is cloned.
    tau : float
        Share of the labels that are head: the paper uses 0.1 on EURLex-4K and 0.01 on larger sets.
    rows : {"all", "own"}
        Which rows each part is trained on: all of them, or only those that have one of the part's labels, as in the
        paper, where a label never meets the rows that only the other part knows.
    n_aug : int
        Changed copies of each tail row; 0 for none.
    keep_probability, swap : float
        See :func:`augment_rows`.
    random_state : int, Generator or None
        Draws the copies.
    n_jobs : int or None
        Threads of both models; None leaves them their own.

    Examples
    --------
    >>> from tailwise import Centroid
    >>> X, Y = [[1.0, 0.1], [0.9, 0], [0.2, 1.0]], [[1, 0], [1, 0], [0, 1]]
    >>> TailAugmented(Centroid(), tau=0.5, random_state=0).fit(X, Y).predict_topk([[0.0, 1.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    _parameters = {"tau": Number(low=0, high=1), "rows": Choice("all", "own"), **_AUGMENTATION}
    scores_are_probabilities = True

    def __init__(
        self,
        base: XMCModel,
        *,
        tau: float = 0.1,
        rows: str = "all",
        n_aug: int = 4,
        keep_probability: float = 0.8,
        swap: float = 0.2,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.base = base
        self.tau = tau
        self.rows = rows
        self.n_aug = n_aug
        self.keep_probability = keep_probability
        self.swap = swap
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def as_published(cls, base: XMCModel, **params: Any) -> Self:
        """As in the paper: each part on its own rows, τ = 0.1 (0.01 on larger sets than EURLex-4K), 4 copies.

        The paper does not say ρ and how often it swaps; these are the defaults. ``params`` change any of it.

        >>> from tailwise import Centroid
        >>> TailAugmented.as_published(Centroid(), tau=0.01)
        TailAugmented(base=Centroid(), rows='own', tau=0.01)
        """
        return cls(base, **{"rows": "own", "tau": 0.1, "n_aug": 4, **params})

    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        seen = np.flatnonzero(self.label_counts_)
        by_frequency = seen[np.lexsort((seen, -self.label_counts_[seen]))]
        n_head = int(self.tau * by_frequency.size)
        self.head_labels_ = np.sort(by_frequency[:n_head]).astype(np.int32)
        self.tail_labels_ = np.sort(by_frequency[n_head:]).astype(np.int32)
        self.head_ = self.tail_ = None
        if self.head_labels_.size:
            self.head_ = self._fresh_base().fit(*self._seen_by(self.head_labels_, X, Y, weight))
        if self.tail_labels_.size:
            self.tail_ = self._fit_tail(*self._seen_by(self.tail_labels_, X, Y, weight))

    def _seen_by(
        self, labels: np.ndarray, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None
    ) -> tuple[sparse.csr_array, sparse.csr_array, np.ndarray | None]:
        """The rows that the model of these labels is trained on."""
        Y = sparse.csr_array(Y[:, labels])
        if self.rows == "all":
            return X, Y, weight
        own = np.flatnonzero(np.diff(Y.indptr))
        return X[own], sparse.csr_array(Y[own]), None if weight is None else weight[own]

    def _fit_tail(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> XMCModel:
        rare = np.flatnonzero(np.diff(Y.indptr))
        more_X, more_Y = augment_rows(
            X[rare],
            Y[rare],
            n_aug=self.n_aug,
            keep_probability=self.keep_probability,
            swap=self.swap,
            random_state=self.random_state,
        )
        rows, labels = sparse.vstack([X, more_X], format="csr"), sparse.vstack([Y, more_Y], format="csr")
        if weight is not None:
            # A copy counts as often as the row that it was made of.
            weight = np.append(weight, np.tile(weight[rare], self.n_aug))
        return self._fresh_base().fit(rows, labels, weight)

    def _check_base(self) -> None:
        parts = (("head", self.head_, self.head_labels_), ("tail", self.tail_, self.tail_labels_))
        for name, model, labels in parts:
            check_exact(f"{name}_labels_", labels, np.int32, (None,))
            check_monotone(f"{name}_labels_", check_indices(f"{name}_labels_", labels, self.n_labels_), strict=True)
            if labels.size:
                self._check_part(f"{name}_", model, XMCModel, labels.size)
            else:
                check_that(model is None, f"{name}_ is a model without labels")
        common = np.intersect1d(self.head_labels_, self.tail_labels_)
        check_that(not common.size, f"head_labels_ and tail_labels_ share {common[:3].tolist()}")

    @property
    def _parts(self) -> list[tuple[XMCModel, np.ndarray]]:
        """The models there are, each with its labels."""
        parts = ((self.head_, self.head_labels_), (self.tail_, self.tail_labels_))
        return [(model, labels) for model, labels in parts if model is not None]

    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        parts = []
        for model, names in self._parts:
            top = model.predict_topk(X, min(k, names.size))
            labels = np.where(top.labels >= 0, names[top.labels], -1)
            parts.append((labels, as_probabilities(top.scores, model)))
        if not parts:
            return TopK(np.full((X.shape[0], 1), -1, np.int32), np.full((X.shape[0], 1), -np.inf, np.float32)).padded(k)
        labels, scores = (np.concatenate(columns, axis=1) for columns in zip(*parts, strict=True))
        return sort_topk(labels, scores, k)

    def _label_weights(self) -> sparse.csr_array:
        whole = sparse.csr_array((self.n_labels_, self.n_features_in_), dtype=np.float32)
        for model, names in self._parts:
            place = (np.ones(names.size, np.float32), (names, np.arange(names.size)))
            whole = whole + sparse.csr_array(place, shape=(self.n_labels_, names.size)) @ model.label_weights()
        return sparse.csr_array(whole)

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        for model, names in self._parts:
            if label in names:
                why = explain_probability(model, x, int(np.flatnonzero(names == label)[0]))
                return why._replace(label=label)
        return not_ranked(label, "no training row has the label")
