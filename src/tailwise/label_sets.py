"""What scikit-learn asks of a model beyond its ranking: sets of labels, matrices of scores, one number."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from tailwise.assigning import UTILITY, Rule, worth_most
from tailwise.errors import InvalidInput, NotOffered
from tailwise.label_lists import known_labels
from tailwise.topk import TopK
from tailwise.validation import check_labels, check_number, check_sample_weight

N_CANDIDATES = 50
"""How many of a row's best labels are looked at where nothing else is said."""
_LARGEST_DENSE = 50_000_000


class LabelSets:
    """Sets, matrices and a score, made of ``predict_topk``."""

    scores_are_probabilities: bool = False
    n_labels_: int
    rule_: Rule = Rule(None, 5)
    """What ``predict`` assigns by, learned from training rows; models of 0.2 assigned the five best."""

    @abstractmethod
    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """The ``k`` best labels of each row with their scores; ties break by label index."""

    @abstractmethod
    def _check_is_fitted(self) -> None:
        """Refuse to answer before ``fit``."""

    def predict(
        self, X: Any, k: int | None = None, *, threshold: float | None = None, assign: str | None = None
    ) -> sparse.csr_array:
        """The labels that each row is assigned, as a binary (n_samples, n_labels) CSR matrix.

        One rule may be given: the ``k`` best; all of score ``threshold`` and more; or those that ``assign`` chooses
        from the probabilities of the 50 best, exact for independent labels: ``"f1"`` (``"f0.5"``, ``"f2"``),
        ``"jaccard"``, ``"precision>=0.8"`` or ``"recall>=0.8"``. Without a rule, a model whose scores are
        probabilities assigns by ``"f1"``, at least the best label. Any other, and one whose probabilities are far off
        on training rows, assigns by what gave training rows as many labels as they have: by a score that a label must
        reach, or where that served them less (cosines differ in scale from row to row), always the same number.
        """
        self._check_is_fitted()
        given = [name for name, value in (("k", k), ("threshold", threshold), ("assign", assign)) if value is not None]
        if len(given) > 1:
            raise InvalidInput(f"{' and '.join(given)} are rules that exclude each other; pass one")
        if k is not None:
            chosen = self.predict_topk(X, k)
        elif threshold is not None:
            chosen = self._reaching(X, float(check_number("threshold", threshold)))
        elif assign is not None:
            chosen = self._worth_most(X, UTILITY.check("assign", assign))
        else:
            chosen = self._by_default(X)
        return chosen.to_csr(self.n_labels_)

    @property
    def predict_proba(self) -> Callable[..., Any]:
        """``predict_proba(X, k=None, *, threshold=None, dense=False)``: P(label | row), (n_samples, n_labels).

        A CSR matrix of the ``k`` best labels of each row, by default 50, or of those of probability ``threshold`` and
        more; ``dense=True`` gives all as an array, where it is not too large. Models whose scores are no probabilities
        do not have it: ``Calibrated(model)`` does.
        """
        self._check_probabilities("predict_proba")
        return self._predict_proba

    def _predict_proba(
        self, X: Any, k: int | None = None, *, threshold: float | None = None, dense: bool = False
    ) -> Any:
        return self._matrix(X, k, threshold, dense, 0.0)

    def decision_function(
        self, X: Any, k: int | None = None, *, threshold: float | None = None, dense: bool = False
    ) -> Any:
        """The scores as an (n_samples, n_labels) CSR matrix of the ``k`` best labels of each row, by default 50.

        ``threshold`` keeps those of this score and more instead; ``dense=True`` gives all as an array, -inf where the
        model has no score, where it is not too large.
        """
        return self._matrix(X, k, threshold, dense, -np.inf)

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """The mean F1 of the rows between ``predict(X)`` and ``Y``, from 0 to 1: scikit-learn's ``average="samples"``.

        A label that training did not know counts as missed. :func:`tailwise.evaluate` has the ranking metrics,
        with intervals.
        """
        predicted = self.predict(X)
        Y, unknown = known_labels(Y, getattr(self, "label_names_in_", None))
        true = check_labels(Y, n_rows=predicted.shape[0], n_labels=self.n_labels_)
        weight = check_sample_weight(sample_weight, true.shape[0])
        hits = np.asarray(predicted.multiply(true).sum(axis=1), np.float64).ravel()
        sizes = (np.diff(predicted.indptr) + np.diff(true.indptr) + unknown).astype(np.float64)
        values = np.divide(2 * hits, sizes, out=np.ones(hits.shape), where=sizes > 0)
        return float(np.average(values, weights=weight))

    def _by_default(self, X: Any) -> TopK:
        if self.rule_.expects:
            return self._worth_most(X, "f1", at_least=1)
        if self.rule_.threshold is None:
            return self.predict_topk(X, self.rule_.size)
        return self._reaching(X, self.rule_.threshold, at_least=1)

    def _worth_most(self, X: Any, utility: str, at_least: int = 0) -> TopK:
        self._check_probabilities(f"assign={utility!r}")
        return worth_most(self.predict_topk(X, min(N_CANDIDATES, self.n_labels_)), utility, at_least)

    def _reaching(self, X: Any, threshold: float, at_least: int = 0) -> TopK:
        """The labels of score ``threshold`` and more, looked for among more and more of the best."""
        k = min(N_CANDIDATES, self.n_labels_)
        top = self.predict_topk(X, k)
        while k < self.n_labels_ and (top.scores[:, -1] >= threshold).any():
            k = min(4 * k, self.n_labels_)
            top = self.predict_topk(X, k)
        return top.first(np.maximum((top.scores >= threshold).sum(axis=1), at_least))

    def _matrix(self, X: Any, k: int | None, threshold: float | None, dense: bool, absent: float) -> Any:
        self._check_is_fitted()
        if k is not None and threshold is not None:
            raise InvalidInput("k and threshold are rules that exclude each other; pass one")
        if dense:
            # Not X.shape, which lists do not have.
            n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
            if n_rows * self.n_labels_ > _LARGEST_DENSE:
                raise InvalidInput(
                    f"dense=True would make an array of {n_rows:,} rows × {self.n_labels_:,} labels; take fewer rows "
                    "at a time, or the sparse matrix: dense=False"
                )
        if threshold is not None:
            top = self._reaching(X, float(check_number("threshold", threshold)))
        else:
            best = self.n_labels_ if dense else min(N_CANDIDATES, self.n_labels_)
            top = self.predict_topk(X, best if k is None else k)
        return top.to_dense(self.n_labels_, absent) if dense else top.to_csr(self.n_labels_, binary=False)

    def _check_probabilities(self, what: str) -> None:
        if not self.scores_are_probabilities:
            name = type(self).__name__
            raise NotOffered(
                f"{what} needs probabilities, and the scores of this {name} are none; calibrate it, "
                f"Calibrated({name}()), or use decision_function and threshold="
            )
