"""The contract every model keeps: :class:`XMCModel`."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from tailwise import persistence
from tailwise.assigning import Rule
from tailwise.changes import Change, check_known, join_rows
from tailwise.errors import InvalidInput, NotFitted, Unsupported
from tailwise.explanation import Explanation
from tailwise.label_lists import more_labels, named_labels
from tailwise.label_sets import LabelSets
from tailwise.parallel import map_shards, row_blocks
from tailwise.parameters import Component, Constraint, check_parameters
from tailwise.persistence.checks import INTEGERS, check_kind, check_range, check_shape, check_that
from tailwise.ranges import Ranges
from tailwise.rows import AS_THEY_ARE, RowView, few_rows, row_range
from tailwise.runs import current_run, job_of_run
from tailwise.topk import TopK
from tailwise.validation import (
    check_feature_names,
    check_features,
    check_labels,
    check_number,
    check_sample_weight,
    counted_rows,
    feature_names,
    label_counts,
)

_MOST = 2**31 - 1
"""Labels and features are numbered by int32."""
_ROWS_FOR_RULE = 512
_ROWS_A_SHARD = 10_000


class XMCModel(LabelSets, persistence.Saveable, BaseEstimator):
    """A model that names the best labels of each row.

    A subclass writes ``_fit(X, Y, weight)``, whose weight is None where every row counts once, and
    ``_predict_topk(X, k)``, and ``_see_rows``, ``_explain``, ``_label_weights``, ``_update`` and ``_fit_part`` where it
    has an answer. All get checked input (canonical float32 CSR, ``1 <= k <= n_labels_``) and see rows as ``_see_rows``
    says. Parameters are set in ``__init__``, constrained by ``_parameters`` and never changed by ``fit``; what ``fit``
    learns ends in ``_`` and is what ``save`` keeps. The same ``random_state`` gives the same bits for every ``n_jobs``.
    Nothing is ever densified to rows × labels.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {}
    reads: str = "terms"
    """What texts become for this model: ``"terms"``, a column a term, or ``"sequences"``, a column a position."""

    n_labels_: int
    n_features_in_: int
    label_counts_: np.ndarray
    rows_: RowView
    _n_learnt_again: int = 0

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Learn from ``X`` (n_samples, n_features) and the observed binary labels ``Y`` (n_samples, n_labels).

        ``Y`` may be a table or lists of labels too; ``label_names_in_`` then names the columns that ``predict`` gives.
        ``sample_weight`` (n_samples,) is how often a row counts: 0 leaves it out, 2 counts it twice in all that is
        summed over rows. Counts of labels, propensities and validation rows do not weigh.
        """
        return self._fit_by(self._fit, X, Y, sample_weight)

    def fit_part(self, X: Any, Y: Any, rows: np.ndarray, sample_weight: Any = None) -> Self:
        """A clone, fitted on ``X`` and ``Y``: the training rows of this model that ``rows`` (n,), ascending, numbers.

        What the others taught is gone, but the clone may begin where this model stands, and then takes less than
        ``fit``. Only the rule of ``predict`` is that of all rows.
        """
        self._check_is_fitted()
        new = clone(self)
        new._fit_by(lambda *part: new._fit_part(self, rows, *part), X, Y, sample_weight, self.rule_)
        return new

    def _fit_by(self, learn: Callable[..., None], X: Any, Y: Any, sample_weight: Any, rule: Rule | None = None) -> Self:
        """Check, and have ``learn(X, Y, weight)`` learn from, rows as they are seen; whole or not at all."""
        check_parameters(self)
        names = feature_names(X)
        X = check_features(X, owner=type(self).__name__)
        Y, label_names = named_labels(Y)
        Y = check_labels(Y, n_rows=X.shape[0])
        X, Y, weight = counted_rows(X, Y, check_sample_weight(sample_weight, X.shape[0]))
        if Y.nnz == 0:
            warnings.warn(
                f"no row of Y has a label: {type(self).__name__} has nothing to learn from, and what it predicts will "
                "say nothing about rows; check how Y was made",
                stacklevel=3,
            )
        before = dict(self.__dict__)
        try:
            for name, value in (("feature_names_in_", names), ("label_names_in_", label_names)):
                self.__dict__.pop(name, None)
                if value is not None:
                    setattr(self, name, value)
            self.n_features_in_, self.n_labels_ = X.shape[1], Y.shape[1]
            self.label_counts_ = label_counts(Y)
            with job_of_run(self, "fit", X=X, Y=Y, sample_weight=weight):
                self.rows_ = self._see_rows(X)
                seen = self.rows_(X, self.get_params(deep=False).get("n_jobs", 1))
                learn(seen, Y, weight)
                self.rule_ = self._learn_rule(seen, Y) if rule is None else rule
        except BaseException:
            # Ctrl-C or an error leaves what was there: an unfitted model, or the old fit.
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def predict_topk(self, X: Any, k: int = 5) -> TopK:
        """The ``k`` best labels of each row with their scores; ties break by label index."""
        self._check_is_fitted()
        k = int(check_number("k", k, integer=True, low=1))
        seen = self._seen(X)
        if current_run() is None or seen.shape[0] <= _ROWS_A_SHARD:
            return self._predict_topk(seen, min(k, self.n_labels_)).padded(k)
        with job_of_run(self, "predict_topk", X=X, k=k):
            ranges = row_blocks(seen.shape[0], _ROWS_A_SHARD)
            tops = map_shards(lambda part: self._predict_topk(row_range(seen, *part), min(k, self.n_labels_)), ranges)
        return TopK(*map(np.concatenate, zip(*tops, strict=True))).padded(k)

    def label_weights(self) -> sparse.csr_array:
        """The linear weights of each label, for rows as the model sees them: CSR (n_labels, n_features)."""
        self._check_is_fitted()
        return self._label_weights()

    def explain(self, x: Any, label: int) -> Explanation:
        """Why the one row ``x`` (1, n_features) gets ``label`` with its score, as a sum of named parts."""
        self._check_is_fitted()
        x = self._seen(x)
        if x.shape[0] != 1:
            raise InvalidInput(f"x has {x.shape[0]:,} rows; pass the one row to explain: X[[i]]")
        label = int(check_number("label", label, integer=True, low=0, high=self.n_labels_ - 1))
        return self._explain(x, label)

    def pair_inputs(self) -> tuple[str, ...]:
        """What :meth:`describe_pairs` tells of a row and a label, by name; nothing unless the model knows more."""
        self._check_is_fitted()
        return self._pair_inputs()

    def describe_pairs(self, X: Any, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """What the model knows of label ``labels[i]`` and row ``rows[i]`` of X beside the score.

        (n_pairs, len(pair_inputs())) float32, NaN where it knows nothing: what a re-ranker learns from.
        """
        self._check_is_fitted()
        return self._describe_pairs(self._seen(X), np.asarray(rows), np.asarray(labels))

    @property
    def title(self) -> str:
        """What the model is called among others."""
        return type(self).__name__

    def before_propensity(self) -> XMCModel:
        """The fitted model whose labels this one only ranks anew by propensity; itself unless it is such a wrapper."""
        return self

    def update(self, X: Any, Y: Any, *, rows: Any = None, known: Any = None) -> Self:
        """Learn from more rows, and from labels never seen before, without starting again.

        ``X`` and ``Y`` may have more columns than before, new ones at the end; labels by name find their columns.
        ``rows`` (n,) says which training row each row of X takes the place of, -1 for a new one: so a label is
        confirmed or rejected. ``known`` is the pair (X, Y) of all rows that the model has learnt from so far, which it
        does not keep. Only what changed is learnt again.
        """
        self._check_is_fitted()
        check_parameters(self)
        owner = type(self).__name__
        self._check_updates()
        known = check_known(known, self.n_features_in_, self.label_counts_, owner)
        Y, label_names = more_labels(Y, getattr(self, "label_names_in_", None))
        self._apply(join_rows(known, X, Y, rows, owner=owner), label_names)
        return self

    def _apply(self, change: Change, label_names: np.ndarray | None = None) -> None:
        """Learn a change whose rows are as a caller passes them, checked; whole or not at all."""
        before = dict(self.__dict__)
        try:
            if change.X.shape[1] > self.n_features_in_:
                self.__dict__.pop("feature_names_in_", None)
            if label_names is not None:
                self.label_names_in_ = label_names
            self.n_features_in_, self.n_labels_ = change.X.shape[1], change.Y.shape[1]
            self.label_counts_ = label_counts(change.Y)
            seen = change._replace(X=self.rows_(change.X))
            self._n_learnt_again = self._update(seen)
            self.rule_ = self._learn_rule(seen.X, seen.Y, _ROWS_FOR_RULE // 4)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def updated(self, change: Change) -> Self:
        """A copy that has learnt ``change``, for models that this one is a part of; it stays as it is."""
        new = copy(self)
        new._apply(change)
        return new

    def save(self, path: str | Path) -> None:
        """Write the fitted model as a folder that :func:`tailwise.load` opens; atomic, no pickle."""
        self._check_is_fitted()
        persistence.save(self, path)

    def _check_state(self) -> None:
        """Refuse a state that kernels could not trust; a subclass calls this first and then looks at its own arrays."""
        check_parameters(self)
        for name in ("n_labels_", "n_features_in_"):
            check_number(name, getattr(self, name), integer=True, low=1, high=_MOST)
        counts = check_shape("label_counts_", self.label_counts_, (self.n_labels_,), INTEGERS)
        check_range("label_counts_", counts, 0)
        check_kind("rows_", self.rows_, RowView).check(self.n_features_in_)
        if hasattr(self, "feature_names_in_"):
            check_shape("feature_names_in_", self.feature_names_in_, (self.n_features_in_,), "U")
        if hasattr(self, "label_names_in_"):
            check_shape("label_names_in_", self.label_names_in_, (self.n_labels_,), "U")
        rule = check_kind("rule_", self.rule_, Rule)
        check_number("rule_.size", rule.size, integer=True, low=1)
        if rule.threshold is not None:
            check_number("rule_.threshold", rule.threshold)
        check_kind("rule_.expects", rule.expects, bool)
        check_that(not rule.expects or self.scores_are_probabilities, "rule_ expects probabilities that are none")

    def _check_part(self, name: str, model: Any, kind: type[Any], n_labels: int | None = None) -> None:
        """Refuse a fitted part of this model that is none, or that was fitted on other features or labels.

        ``n_labels`` are the part's labels; by default it has all.
        """
        check_kind(name, model, kind)._check_is_fitted()
        expected = (self._n_seen, self.n_labels_ if n_labels is None else n_labels)
        found = (model.n_features_in_, model.n_labels_)
        check_that(found == expected, f"{name} has (features, labels) = {found}, not {expected}")

    @property
    def _n_seen(self) -> int:
        """How many columns the rows have that the model sees."""
        return self.n_features_in_ if self.rows_.columns is None else self.rows_.columns.size

    def _see_rows(self, X: sparse.csr_array) -> RowView:
        """How the model will see rows, from the training rows."""
        return AS_THEY_ARE

    def _seen(self, X: Any) -> sparse.csr_array:
        """New rows, checked, as the model sees them."""
        check_feature_names(X, getattr(self, "feature_names_in_", None), owner=type(self).__name__)
        return self.rows_(
            check_features(X, n_features=self.n_features_in_, allow_no_rows=True, owner=type(self).__name__)
        )

    def _ranges(self) -> Ranges:
        """Which of its own parameters are worth choosing by data, and how far to look, for :func:`tailwise.tune`."""
        return {}

    @abstractmethod
    def _fit(self, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None) -> None:
        """Learn from checked input; set attributes that end in ``_``. Row i counts ``weight[i]`` > 0 times, or once."""

    def _fit_part(
        self, whole: Self, rows: np.ndarray, X: sparse.csr_array, Y: sparse.csr_array, weight: np.ndarray | None
    ) -> None:
        """As ``_fit``; where that helps, from what ``whole`` is, a fitted model of the same parameters.

        X has those of its training rows that ``rows`` numbers.
        """
        self._fit(X, Y, weight)

    def _check_updates(self) -> None:
        """Refuse an update that this model, or one that it is made of, cannot do; said before any work."""
        if type(self)._update is XMCModel._update:
            raise Unsupported(
                f"{type(self).__name__} cannot learn from new rows alone; fit it again on the old and the new rows "
                "together"
            )

    @property
    def n_learnt_again(self) -> int:
        """How many labels the last :meth:`update` learnt anew or further; 0 before there was one."""
        return self._n_learnt_again

    def _update(self, change: Change) -> int:
        """Learn what changed; rows are as the model sees them, counts and shapes are new already.

        Returns how many labels that was.
        """
        raise NotImplementedError

    def _learn_rule(self, X: sparse.csr_array, Y: sparse.csr_array, n_rows: int = _ROWS_FOR_RULE) -> Rule:
        """``rule_`` from a few training rows, as the model sees them."""
        chosen = np.unique(np.linspace(0, X.shape[0] - 1, n_rows).astype(np.int64))
        n_true = np.diff(Y.indptr)[chosen]
        top = self._predict_topk(few_rows(X, chosen), min(self.n_labels_, max(10, 2 * int(n_true.max()))))
        true = sparse.csr_array(Y[chosen])
        # A pair of row and label as one number, of which -1, no label, is none of that row's.
        pairs = np.repeat(np.arange(chosen.size), np.diff(true.indptr)) * (self.n_labels_ + 1) + true.indices
        hits = np.isin(np.arange(chosen.size)[:, None] * (self.n_labels_ + 1) + top.labels, pairs)
        return Rule.learn(top.scores, hits, n_true, probabilities=self.scores_are_probabilities)

    def _pair_inputs(self) -> tuple[str, ...]:
        return ()

    def _describe_pairs(self, X: sparse.csr_array, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
        return np.empty((labels.size, 0), np.float32)

    @abstractmethod
    def _predict_topk(self, X: sparse.csr_array, k: int) -> TopK:
        """Predict for checked input, 1 <= k <= n_labels_."""

    def _label_weights(self) -> sparse.csr_array:
        raise Unsupported(
            f"{type(self).__name__} has no linear weights by label; "
            "one-vs-rest models such as DiSMEC and label trees such as Bonsai have"
        )

    def _explain(self, x: sparse.csr_array, label: int) -> Explanation:
        raise Unsupported(
            f"{type(self).__name__} cannot say what its scores are made of; "
            "linear models, trees, forests and centroids can, for example DiSMEC()"
        )

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            name = type(self).__name__
            raise NotFitted(f"this {name} is not fitted yet; call {name}.fit(X, Y) first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "label_counts_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


MODEL = Component(XMCModel, "model", "DiSMEC()")
"""The constraint of a parameter that is itself a model."""


class Models(Constraint):
    """A list of at least one model."""

    def check(self, name: str, value: Any) -> Any:
        """The value, a list whose entries are models."""
        if not isinstance(value, list | tuple) or not value:
            raise InvalidInput(f"{name}={value!r} is empty or no list; pass a list of models")
        for i, model in enumerate(value):
            MODEL.check(f"{name}[{i}]", model)
        return value

    def __str__(self) -> str:
        return "a list of models"
