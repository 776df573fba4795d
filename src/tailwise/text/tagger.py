"""Text in, label names out: :class:`Tagger` keeps text features, a model and the labels' names in one folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from tailwise import persistence
from tailwise.assigning import Rule
from tailwise.base import TopK, XMCModel
from tailwise.by_size import MODEL_OR_NAME, BySize
from tailwise.changes import join_rows
from tailwise.data.digests import known_digests, row_digests
from tailwise.data.texts import check_texts, is_numeric
from tailwise.display import describe
from tailwise.errors import InvalidInput, NotFitted, Unsupported
from tailwise.explanation import Explanation
from tailwise.label_lists import encode_labels, indicator
from tailwise.models import make_model
from tailwise.parameters import Component, Flag, Number, OrNone, check_parameters
from tailwise.persistence.checks import (
    check_exact,
    check_kind,
    check_monotone,
    check_range,
    check_shape,
    check_strings,
    check_that,
)
from tailwise.propensity import JainPropensity, Propensity
from tailwise.tail.columns import resolve_groups, with_more_columns
from tailwise.text.effort import EFFORT, check_minutes, compose, plan_features, plan_model
from tailwise.text.features import TextFeatures
from tailwise.text.named_labels import NamedLabels, names_of
from tailwise.text.parts import TEXT_ROWS
from tailwise.text.rows import KnownLabels, TextRows, more_ranges
from tailwise.text.sequences import Sequences
from tailwise.text.suggestions import RARITIES, rarity
from tailwise.text.training_data import TrainingData
from tailwise.validation import check_number, check_sample_weight, label_counts
from tailwise.vocabulary import Changes, LabelRules, Vocabulary
from tailwise.vocabulary.ranking import allowed_topk
from tailwise.vocabulary.rules import Labels

MAKERS: dict[str, type[TextRows]] = {"terms": TextFeatures, "sequences": Sequences}
"""What makes rows of texts, by what a model ``reads``."""


class Tagger(NamedLabels, persistence.Saveable, BaseEstimator):
    """Learns from texts with labels and suggests labels, by name, for new texts.

    Parameters
    ----------
    model : XMCModel, BySize, str or None
        Any model, or a name such as ``"pw-dismec"``. None and ``"auto"`` choose by effort and size of the data, as
        :func:`~tailwise.text.effort.plan_model` does. It is cloned, so the one passed stays unfitted.
    effort : "quick", "normal" or "best"
        How much training may take, where no model is named: one model; a model of minutes combined with the names of
        labels found in texts; a stack of models that differ.
    minutes : float or None
        About how long ``fit`` may take, where no model is named: what the chosen model does not need goes into its
        settings, chosen by rows held out (extra ``tune``). How many are tried depends on the machine's speed. None
        leaves settings as they are.
    tail : float
        From precision (0) to rare labels (1): rank by score × (1/p)^tail.
    calibrate : bool
        Turn scores that are no probabilities into such, learnt from rows held out, where there are 200 rows or more.
    features : TextFeatures, TextParts, Sequences or None
        How texts become rows; None is what the model reads: words, with the names of labels found where the model is
        chosen here; or ``Sequences()`` for networks on words in their order.
    propensity : Propensity or None
        How likely a relevant label was observed, kept for unbiased evaluation; None is ``JainPropensity()``.
    keep_training_data : bool
        Keep the training rows with the model, as numbers, so that :meth:`update` needs new records only.
    rules : LabelRules or None
        Which labels may be suggested; None is all of them.
    random_state : int or None
        Of what is chosen or wrapped here.

    Notes
    -----
    After ``fit``: ``model_``, ``features_``, ``propensity_``, ``label_ids_``, ``label_names_``, ``rarity_`` (0 head, 1
    torso, 2 tail for each label), ``row_digests_`` (eight bytes a training row, by which ``tailwise evaluate`` knows
    rows again), ``vocabulary_`` (or None), ``allowed_`` (what the rules allow, (n_labels,) bool, or None for all),
    ``training_`` (a :class:`~tailwise.text.training_data.TrainingData`, or None). A tagger fitted on rows of X takes
    rows of X, and ``features_`` is None.

    Examples
    --------
    >>> from tailwise import Centroid, TextFeatures
    >>> texts, labels = ["tax law", "sea fish", "fish law"], [["law"], ["fish"], ["law", "fish"]]
    >>> tagger = Tagger(Centroid(), features=TextFeatures(min_df=1)).fit(texts, labels)
    >>> [(s.name, s.rarity) for s in tagger.suggest(["deep sea"], k=1)[0]]
    [('fish', 'tail')]
    """

    _parameters = {
        "model": OrNone(MODEL_OR_NAME),
        "features": OrNone(TEXT_ROWS),
        "propensity": OrNone(Component(Propensity, "Propensity", "JainPropensity()")),
        "keep_training_data": Flag(),
        "effort": EFFORT,
        "minutes": OrNone(Number(low=0, open_low=True)),
        "tail": Number(low=0, high=1),
        "calibrate": Flag(),
        "rules": OrNone(Component(LabelRules, "LabelRules", "LabelRules(exclude=['rows<2'])")),
    }

    features_: TextRows | None
    model_: XMCModel
    propensity_: Propensity
    label_ids_: list[str]
    label_names_: list[str]
    rarity_: np.ndarray
    n_samples_: int
    # Also of folders that were written before these were kept.
    row_digests_: np.ndarray = np.empty(0, np.uint64)
    vocabulary_: Vocabulary | None = None
    allowed_: np.ndarray | None = None
    training_: TrainingData | None = None

    def __init__(
        self,
        model: Any = None,
        *,
        effort: str = "normal",
        minutes: float | None = None,
        tail: float = 0.0,
        calibrate: bool = True,
        features: TextRows | None = None,
        propensity: Propensity | None = None,
        rules: LabelRules | None = None,
        random_state: int | None = 0,
        keep_training_data: bool = False,
    ) -> None:
        self.model = model
        self.effort = effort
        self.minutes = minutes
        self.tail = tail
        self.calibrate = calibrate
        self.features = features
        self.propensity = propensity
        self.rules = rules
        self.random_state = random_state
        self.keep_training_data = keep_training_data

    def fit(
        self,
        texts: Any,
        labels: Any,
        *,
        label_ids: Iterable[str] | None = None,
        names: Any = None,
        vocab: Vocabulary | None = None,
        sample_weight: Any = None,
        on_step: Callable[[str, str], Any] = lambda name, what: None,
    ) -> Self:
        """Learn from ``texts`` (or rows of X) and their labels.

        ``labels`` holds a list of label ids for each text, or is a binary CSR matrix whose columns are
        ``label_ids``. ``names`` gives readable names: a dict from id to name, or a list beside ``label_ids``; by
        default those of ``vocab``, the vocabulary that the labels are from, which is kept. ``sample_weight`` is how
        often each text counts for the model; words and their idf come from all texts alike.
        ``on_step`` is told each step as it begins: its name, and a sentence for the person who waits.
        """
        check_parameters(self)
        check_minutes(self.minutes, self.is_chosen)
        begun = time.monotonic()
        numeric = is_numeric(texts)
        if numeric and self.features is not None:
            raise InvalidInput(f"features={self.features!r} is for texts, but rows of X were given; pass features=None")
        rows: Any = texts if numeric else check_texts(texts)
        n_rows = rows.shape[0] if numeric else len(rows)
        if sparse.issparse(labels):
            Y, ids = labels, [str(i) for i in range(labels.shape[1])] if label_ids is None else list(label_ids)
        else:
            Y, ids = indicator(labels)
        if Y.shape[0] != n_rows:
            raise InvalidInput(f"labels has {Y.shape[0]:,} rows but there are {n_rows:,} texts")
        weight = check_sample_weight(sample_weight, n_rows)
        if not Y.nnz:
            raise InvalidInput("no row has a label; a model needs rows with labels to learn from")
        if len(ids) != Y.shape[1] or len(set(ids)) != len(ids):
            raise InvalidInput(f"label_ids has {len(set(ids)):,} distinct entries but there are {Y.shape[1]:,} labels")
        label_names = names_of(ids, vocab if names is None else names)
        if not numeric and vocab is not None and self._finds_labels():
            Y, ids = _widened(Y, ids, vocab)
            label_names += names_of(ids[len(label_names) :], vocab)
        if self.rules is not None:
            self.rules.mask(Labels(ids, label_names, label_counts(sparse.csr_array(Y)), vocab))
        if numeric:
            self.features_, X = None, sparse.csr_array(rows)
        else:
            on_step("text features", f"turning {n_rows:,} texts into features")
            known = KnownLabels(ids, label_names, Y, vocab)
            self.features_ = self._maker(rows, known)
            X = self.features_.fit_transform(rows, labels=known)
        model = self._choose(X, Y, on_step, begun)
        if self.features_ is not None:
            resolve_groups(model, self.features_.groups_)
        on_step(
            "training",
            f"training {describe(model)} on {n_rows:,} rows, {X.shape[1]:,} features, {Y.shape[1]:,} labels",
        )
        self.n_samples_ = int(n_rows)
        self.row_digests_ = known_digests(rows)
        self.label_ids_ = ids
        self.label_names_ = label_names
        self.propensity_ = (clone(self.propensity) if self.propensity is not None else JainPropensity()).fit(Y)
        self.model_ = model.fit(X, Y, weight)
        self.training_ = TrainingData.of(rows, X, Y) if self.keep_training_data else None
        self.rarity_ = rarity(self.model_.label_counts_)
        self.vocabulary_ = vocab
        self.allowed_ = None if self.rules is None else self.rules.mask(self.labels())
        return self

    def update(
        self,
        texts: Any,
        labels: Any,
        *,
        label_ids: Iterable[str] | None = None,
        names: Any = None,
        known: Any = None,
        on_step: Callable[[str, str], Any] = lambda name, what: None,
    ) -> Self:
        """Learn from more texts, words and labels without starting again; a text known already gets its labels anew.

        Arguments are those of :meth:`fit`; labels never seen before come after the others, and so do words. Where
        training rows were not kept, ``known`` is the pair (texts, labels) of all that was learnt from so far, in that
        order; labels as a matrix then have the columns ``label_ids_``.
        """
        self._check_is_fitted()
        self.model_._check_updates()
        rows: Any = texts if is_numeric(texts) else check_texts(texts)
        n_rows = rows.shape[0] if is_numeric(rows) else len(rows)
        Y, own = self._more_labels(labels, label_ids)
        if Y.shape[0] != n_rows:
            raise InvalidInput(f"labels has {Y.shape[0]:,} rows but there are {n_rows:,} texts")
        training = self._training(known)
        on_step("text features", f"turning {n_rows:,} texts into features")
        features = None if self.features_ is None else copy(self.features_).update(check_texts(rows), self.n_samples_)
        X = rows if features is None else features.transform(rows)
        place = training.places(rows)
        change = join_rows((training.X, training.Y), X, Y, place, owner=type(self.model_).__name__)
        new = place < 0
        on_step(
            "learning",
            f"learning from {int(new.sum()):,} new rows and {int((~new).sum()):,} known ones, "
            f"{X.shape[1] - self.model_.n_features_in_:,} new features and {len(own) - self.n_labels_:,} new labels",
        )
        propensity = (clone(self.propensity) if self.propensity is not None else JainPropensity()).fit(change.Y)
        model = self.model_ if features is None else with_more_columns(self.model_, self._new_ranges(features))
        self.model_ = model.update(X, Y, rows=place, known=(training.X, training.Y))
        digests = row_digests(rows)
        self.features_, self.propensity_, self.n_samples_ = features, propensity, change.Y.shape[0]
        self.row_digests_ = np.union1d(self.row_digests_, digests[digests != 0])
        known_names = self.vocabulary_ if names is None else names
        self.label_names_ = self.label_names_ + names_of(own[len(self.label_ids_) :], known_names)
        self.label_ids_ = own
        if self.training_ is not None or self.keep_training_data:
            self.training_ = TrainingData(change.X, change.Y, np.append(training.digests, digests[new]))
        self.rarity_ = rarity(self.model_.label_counts_)
        self.allowed_ = None if self.rules is None else self.rules.mask(self.labels())
        return self

    def _new_ranges(self, features: TextRows) -> dict[str, list[tuple[int, int]]]:
        """The columns that ``features`` has and the tagger's own have not, by the group that they came to."""
        n, more = self.model_.n_features_in_, more_ranges(features.groups_)
        ranges = {name: [pair for pair in pairs if pair[0] >= n] for name, pairs in more.items()}
        # A group that is alone grows in its place.
        alone = {name: [(n, last)] for name, (first, last) in features.groups_.items() if first < n < last}
        return ranges | alone

    def _training(self, known: Any) -> TrainingData:
        if known is not None:
            rows, labels = known
            Y, ids = self._more_labels(labels, self.label_ids_)
            if len(ids) > len(self.label_ids_):
                raise InvalidInput(f"known has the label {ids[len(self.label_ids_)]!r}, which was never learnt")
            return TrainingData.of(rows, self.rows(rows), Y)
        if self.training_ is None:
            raise Unsupported(
                "this Tagger keeps no training rows, and cannot learn from new ones alone; train it with "
                "keep_training_data=True, or pass known=(texts, labels), all that it has learnt from so far"
            )
        return self.training_

    def _more_labels(self, labels: Any, label_ids: Iterable[str] | None) -> tuple[sparse.csr_array, list[str]]:
        """Labels as a matrix with the columns that are known, then those that are new, and the ids of all."""
        if sparse.issparse(labels):
            given = [str(i) for i in range(labels.shape[1])] if label_ids is None else list(label_ids)
            if len(given) != labels.shape[1]:
                raise InvalidInput(f"label_ids has {len(given):,} entries but there are {labels.shape[1]:,} labels")
            table = sparse.csr_array(labels)
            lists = [[given[l] for l in table.indices[a:b]] for a, b in pairwise(table.indptr.tolist())]
        else:
            lists = [sorted({str(label) for label in found}) for found in labels]
        known = set(self.label_ids_)
        ids = self.label_ids_ + sorted({label for found in lists for label in found} - known)
        return encode_labels(lists, ids), ids

    @property
    def is_chosen(self) -> bool:
        """Whether the model is chosen by effort and size."""
        return self.model is None or self.model == "auto" or isinstance(self.model, BySize)

    def _finds_labels(self) -> bool:
        """Whether labels without training rows may be found."""
        found = self.is_chosen and self.effort != "quick"
        return found or (self.features is not None and self.features.finds_labels)

    def _maker(self, texts: Any, labels: KnownLabels) -> TextRows:
        """What turns texts into rows that the model reads."""
        if self.is_chosen and (self.features is None or self.features.makes == XMCModel.reads):
            return clone(plan_features(self.effort, texts, labels, self.features))
        model = make_model(self.model) if isinstance(self.model, str) and self.model != "auto" else self.model
        reads = model.reads if isinstance(model, XMCModel) else XMCModel.reads
        kind = MAKERS[reads]
        if self.features is not None and self.features.makes != reads:
            raise InvalidInput(
                f"features={self.features!r} makes no rows that {describe(self.model)} reads; pass {kind.__name__}()"
            )
        return kind() if self.features is None else clone(self.features)

    def _choose(self, X: Any, Y: Any, on_step: Callable[[str, str], Any], begun: float) -> XMCModel:
        if self.is_chosen:
            base = self.model if isinstance(self.model, BySize) else BySize()
            groups = {} if self.features_ is None else self.features_.groups_
            plan = plan_model(self.effort, X, Y, groups, base=base, random_state=self.random_state)
            model = plan.model
            minutes = f"about {plan.minutes:.0f} CPU-minutes" if plan.minutes >= 2 else "a CPU-minute or two"
            cost = f"{minutes} and {plan.gigabytes:.1f} GB of memory"
            on_step("training", f"chose {describe(model)} for effort {self.effort}. {plan.reason}. It takes {cost}")
            if self.minutes is not None:
                # Here, for who gives no minutes need not wait for its import.
                from tailwise.text.settings import choose_settings

                resolve_groups(model, groups)
                model = choose_settings(
                    plan,
                    X,
                    Y,
                    minutes=self.minutes - (time.monotonic() - begun) / 60,
                    tail=self.tail,
                    propensity=self.propensity,
                    random_state=self.random_state,
                    tell=partial(on_step, "settings"),
                )
        else:
            model = make_model(self.model) if isinstance(self.model, str) else self.model
        whole = compose(
            model,
            n_rows=X.shape[0],
            effort=self.effort,
            calibrate=self.calibrate,
            tail=self.tail,
            propensity=self.propensity,
            random_state=self.random_state,
        )
        return clone(whole)

    def rows(self, texts: Any) -> Any:
        """Texts as rows of X; rows of X stay what they are."""
        self._check_is_fitted()
        if is_numeric(texts):
            return texts
        if self.features_ is None:
            raise InvalidInput("this model was trained on numeric rows, not on texts; pass a sparse matrix X")
        return self.features_.transform(check_texts(texts))

    def predict_topk(self, texts: Any, k: int = 5, *, rules: LabelRules | None = None) -> TopK:
        """The ``k`` best labels of each text (or row of X) by index; ``label_ids_`` and ``label_names_`` name them.

        ``rules`` forbid labels beside those that the tagger's own rules forbid; there are ``k`` all the same.
        """
        X = self.rows(texts)
        allowed = self.allowed_
        if rules is not None:
            allowed = rules.mask(self.labels()) if allowed is None else allowed & rules.mask(self.labels())
        return (
            self.model_.predict_topk(X, k) if allowed is None else allowed_topk(self.model_.predict_topk, X, k, allowed)
        )

    def update_vocabulary(self, new: Vocabulary) -> Changes | None:
        """Take another version of the vocabulary: columns stay, names change, and what is gone is deprecated.

        Rules are applied anew. Returns what changed for the vocabulary; None where there was none.
        """
        self._check_is_fitted()
        old = self.vocabulary_
        merged = new if old is None else old.updated(new)
        names = names_of(self.label_ids_, merged)
        rules = (
            None if self.rules is None else self.rules.mask(Labels(self.label_ids_, names, self.label_counts_, merged))
        )
        self.vocabulary_, self.label_names_, self.allowed_ = merged, names, rules
        return None if old is None else old.changes_to(new)

    @property
    def n_labels_(self) -> int:  # type: ignore[override]
        """How many labels there are."""
        return self.model_.n_labels_

    @property
    def scores_are_probabilities(self) -> bool:  # type: ignore[override]
        """As the model's."""
        return self.model_.scores_are_probabilities if self.__sklearn_is_fitted__() else False

    @property
    def rule_(self) -> Rule:  # type: ignore[override]
        """As the model's."""
        return self.model_.rule_

    @property
    def label_counts_(self) -> np.ndarray:  # type: ignore[override]
        """How many training rows carry each label."""
        return self.model_.label_counts_

    def explain(self, text: Any, label: str | int) -> Explanation:
        """Why ``text`` gets ``label`` with its score, as the model explains it; features have their words for names.

        ``label`` is a name, an id or a column number. ``explanation.features()`` are the words that spoke for and
        against it.
        """
        index = self.find_label(label)
        x = sparse.csr_array(self.rows([text] if isinstance(text, str) else text))
        why = self.model_.explain(x, index)
        if self.features_ is None:
            return why
        columns = sorted(why.columns())
        return why.with_names(dict(zip(columns, self.features_.column_names(columns), strict=True)))

    def _check_state(self) -> None:
        check_parameters(self)
        check_kind("model_", self.model_, XMCModel)._check_is_fitted()
        n = self.model_.n_labels_
        ids = check_strings("label_ids_", self.label_ids_, n)
        check_that(len(set(ids)) == n, "label_ids_ has an id twice")
        check_strings("label_names_", self.label_names_, n)
        check_range("rarity_", check_exact("rarity_", self.rarity_, np.int8, (n,)), 0, len(RARITIES) - 1)
        check_number("n_samples_", self.n_samples_, integer=True, low=1)
        digests = check_exact("row_digests_", self.row_digests_, np.uint64, (None,))
        check_monotone("row_digests_", digests, strict=True)
        check_kind("propensity_", self.propensity_, Propensity)._check_is_fitted()
        check_shape("propensity_ of the labels", self.propensity_.propensity_, (n,))
        if self.vocabulary_ is not None:
            check_kind("vocabulary_", self.vocabulary_, Vocabulary)
        if self.allowed_ is not None:
            check_that(check_exact("allowed_", self.allowed_, np.bool_, (n,)).any(), "allowed_ has no label")
        if self.training_ is not None:
            check_kind("training_", self.training_, TrainingData).check(self.model_.n_features_in_, n)
        if self.features_ is not None:
            check_kind("features_", self.features_, TextRows)._check_is_fitted()
            made, reads = self.features_.makes, self.model_.reads
            check_that(made == reads, f"features_ makes {made}, but model_ reads {reads}")
            n_columns, n_features = self.features_.n_columns_, self.model_.n_features_in_
            check_that(
                n_columns == n_features, f"features_ has {n_columns:,} terms, but model_ {n_features:,} features"
            )

    def save(self, path: str | Path) -> None:
        """Write the fitted tagger as a folder that :func:`tailwise.load` opens; atomic, no pickle."""
        self._check_is_fitted()
        persistence.save(self, path)

    def _check_is_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFitted("this Tagger is not fitted yet; call Tagger.fit(texts, labels) first")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "rarity_")


def _widened(Y: sparse.csr_array, ids: list[str], vocab: Vocabulary) -> tuple[sparse.csr_array, list[str]]:
    """Y with an empty column, at the end, for each label of the vocabulary that no row has and that is still given."""
    known = set(ids)
    more = [label for label, gone in zip(vocab.ids, vocab.deprecated, strict=True) if label not in known and not gone]
    Y = sparse.csr_array(Y)
    return sparse.csr_array((Y.data, Y.indices, Y.indptr), shape=(Y.shape[0], Y.shape[1] + len(more))), [*ids, *more]
