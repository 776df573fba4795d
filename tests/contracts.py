"""What every model must keep. A model's test file subclasses :class:`ModelContract` and says how to make one.

class TestCentroid(ModelContract):
    def make(self, **params):
        return Centroid(**params)
"""

from __future__ import annotations

import json
import pickle
import re
import warnings
from concurrent.futures import Future
from inspect import signature
from typing import ClassVar

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator
from strategies import backwards, in_halves, store

import tailwise
from tailwise.base import TopK, XMCModel
from tailwise.errors import InvalidInput, ModelFileError, NotFitted, TailwiseError, Unsupported
from tailwise.parameters import constraints_of
from tailwise.ranges import OneOf


class InThisProcess:
    """``submit`` that calls at once; more than ``allowed`` calls are refused."""

    def __init__(self, allowed=None):
        self.calls, self.allowed = [], allowed

    def submit(self, function, *arguments):
        if self.allowed is not None and len(self.calls) >= self.allowed:
            raise AssertionError(f"nothing should be computed, but {arguments} is")
        self.calls.append(arguments)
        future = Future()
        try:
            future.set_result(function(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future


def make_rows(n_samples=120, n_features=40, n_labels=15, seed=0):
    """Non-negative sparse rows whose labels can be told from their features; label 0 has no row, label 1 has all."""
    rng = np.random.default_rng(seed)
    topics = rng.integers(2, n_labels, size=(n_samples, 2))
    Y = np.zeros((n_samples, n_labels), np.float32)
    X = np.zeros((n_samples, n_features), np.float32)
    for i, pair in enumerate(topics):
        Y[i, pair] = 1
        for label in pair:
            words = np.random.default_rng(1000 + label).choice(n_features, size=5, replace=False)
            X[i, rng.choice(words, size=3, replace=False)] += rng.uniform(0.5, 1.0, size=3).astype(np.float32)
        X[i, rng.choice(n_features, size=3, replace=False)] += 0.2
    Y[:, 1] = 1
    return sparse.csr_array(X), sparse.csr_array(Y)


def assert_same_bits(a: TopK, b: TopK) -> None:
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.scores.view(np.uint32), b.scores.view(np.uint32))


def assert_valid_topk(top: TopK, n: int, k: int, n_labels: int) -> None:
    assert isinstance(top, TopK)
    assert top.labels.shape == top.scores.shape == (n, k)
    assert top.labels.dtype == np.int32 and top.scores.dtype == np.float32
    assert top.labels.min(initial=-1) >= -1 and top.labels.max(initial=-1) < n_labels
    assert not np.isnan(top.scores).any()
    for labels, scores in zip(top.labels, top.scores, strict=True):
        present = labels >= 0
        assert (np.diff(present.astype(int)) <= 0).all(), "absent labels come last"
        assert np.isneginf(scores[~present]).all() and np.isfinite(scores[present]).all()
        assert len(set(labels[present])) == present.sum(), "labels are distinct"
        pairs = list(zip(-scores[present], labels[present], strict=True))
        assert pairs == sorted(pairs), "best first, ties by label index"


def assert_sums(why) -> None:
    """At every depth the parts sum to the score."""
    assert sum(part.value for part in why.parts) == pytest.approx(why.score, rel=1e-5, abs=1e-7)
    for part in why.parts:
        if part.of is not None:
            assert_sums(part.of)


class ModelContract:
    """Subclass, define ``make(**params)``, and inherit every test."""

    data = staticmethod(make_rows)
    judged_with_the_data: ClassVar = {"tree"}
    """Parameters of which only the rows and labels can tell whether they are right."""

    def make(self, **params) -> XMCModel:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def rows(cls):
        return cls.data()

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, rows):
        return cls().make(**cls()._seed()).fit(*rows)

    def _seed(self):
        return {"random_state": 0} if "random_state" in signature(type(self.make())).parameters else {}

    def test_what_is_worth_trying_is_allowed(self):
        made = self.make()
        constraints = constraints_of(type(made))
        for name, tried in made._ranges().items():
            for value in tried.values if isinstance(tried, OneOf) else tried[:3]:
                constraints[name].check(name, value)
            assert isinstance(tried, OneOf) or tried.low <= tried.usual <= tried.high

    def test_clone_and_params(self, fitted):
        model = self.make()
        params = model.get_params(deep=False)
        assert set(params) == set(signature(type(model)).parameters)
        copy = clone(fitted)
        assert not hasattr(copy, "label_counts_")
        with pytest.raises(NotFitted, match=r"not fitted.*fit\(X, Y\)"):
            copy.predict_topk(np.ones((1, 3)))
        for name, value in params.items():
            model.set_params(**{name: value})

    def test_arguments_after_the_first_have_names(self):
        parameters = list(signature(type(self.make())).parameters.values())
        assert [p.name for p in parameters[1:] if p.kind is not p.KEYWORD_ONLY] == []

    def test_a_wrong_parameter_is_refused_by_name_before_any_work(self):
        class Wrong:
            """Right for no parameter."""

        unnamed = {}
        for name in set(self.make().get_params(deep=False)) - self.judged_with_the_data:
            try:
                self.make().set_params(**{name: Wrong()}).fit("no rows", None)
            except InvalidInput as error:
                if not re.match(rf"{name}\b", str(error)):
                    unnamed[name] = str(error)
        assert unnamed == {}

    def test_fit_returns_self_and_leaves_params_and_input(self, rows):
        X, Y = rows
        model = self.make(**self._seed())
        before = {name: repr(value) for name, value in model.get_params(deep=False).items()}
        snapshot = [part.copy() for part in (X.data, X.indices, X.indptr, Y.data, Y.indices, Y.indptr)]
        assert model.fit(X, Y) is model
        assert {name: repr(value) for name, value in model.get_params(deep=False).items()} == before
        for old, new in zip(snapshot, (X.data, X.indices, X.indptr, Y.data, Y.indices, Y.indptr), strict=True):
            np.testing.assert_array_equal(old, new)
        assert (model.n_features_in_, model.n_labels_) == (X.shape[1], Y.shape[1])
        np.testing.assert_array_equal(model.label_counts_, Y.sum(axis=0))

    def test_a_row_of_weight_zero_is_left_out(self, rows):
        X, Y = rows
        weight = np.ones(X.shape[0])
        weight[::4] = 0
        kept = np.flatnonzero(weight)
        expected = self.make(**self._seed()).fit(X[kept], Y[kept])
        found = self.make(**self._seed()).fit(X, Y, sample_weight=weight)
        np.testing.assert_array_equal(found.label_counts_, expected.label_counts_)
        assert_same_bits(found.predict_topk(X), expected.predict_topk(X))

    def test_a_part_of_its_rows_is_all_that_a_part_knows(self, rows, fitted):
        X, Y = rows
        kept = np.flatnonzero(np.arange(X.shape[0]) % 4)
        before = fitted.predict_topk(X)
        part = fitted.fit_part(X[kept], Y[kept], kept)
        assert repr(part) == repr(fitted)
        np.testing.assert_array_equal(part.label_counts_, np.asarray(Y[kept].sum(axis=0)).ravel())
        top = part.predict_topk(X[::4])
        assert_valid_topk(top, X[::4].shape[0], 5, Y.shape[1])
        assert 0 not in top.labels, "label 0 has no row"
        assert_same_bits(fitted.predict_topk(X), before)

    def test_a_row_may_count_more_than_others(self, rows):
        X, Y = rows
        weight = np.random.default_rng(0).uniform(0.5, 3, X.shape[0])
        top = self.make(**self._seed()).fit(X, Y, sample_weight=weight).predict_topk(X)
        assert_valid_topk(top, X.shape[0], 5, Y.shape[1])

    def test_same_bits_twice_and_for_any_number_of_jobs(self, rows, fitted):
        X, Y = rows
        expected = fitted.predict_topk(X)
        assert_same_bits(self.make(**self._seed()).fit(X, Y).predict_topk(X), expected)
        if "n_jobs" in fitted.get_params(deep=False):
            for n_jobs in (1, 2):
                assert_same_bits(self.make(n_jobs=n_jobs, **self._seed()).fit(X, Y).predict_topk(X), expected)

    def test_pieces_computed_apart_are_the_same_bits(self, rows, fitted, tmp_path):
        """As other processes would: from the parameters, the mapped rows and the results of earlier pieces."""
        X, Y = rows
        with tailwise.workdir(tmp_path / "run", InThisProcess()):
            found = self.make(**self._seed()).fit(X, Y)
        assert_same_bits(found.predict_topk(X), fitted.predict_topk(X))
        nobody = InThisProcess(allowed=0)
        with tailwise.workdir(tmp_path / "run", nobody):
            again = self.make(**self._seed()).fit(X, Y)
        assert_same_bits(again.predict_topk(X), fitted.predict_topk(X))

    @pytest.mark.parametrize("k", [1, 5, 40])
    def test_topk_is_valid(self, rows, fitted, k):
        X, Y = rows
        top = fitted.predict_topk(X, k)
        assert_valid_topk(top, X.shape[0], k, Y.shape[1])
        assert not (top.labels == 0).any(), "a label without rows is not predicted"
        if fitted.scores_are_probabilities:
            present = top.scores[top.labels >= 0]
            assert present.min() >= 0 and present.max() <= 1 + 1e-6

    def test_each_topk_is_a_prefix_of_the_next(self, rows, fitted):
        X, Y = rows[0][:30], rows[1]
        models = [fitted]
        if "n_candidates" in fitted.get_params(deep=False):
            models.append(self.make(n_candidates=2, **self._seed()).fit(*rows))
        for model in models:
            longest = model.predict_topk(X, Y.shape[1] + 3)
            for k in range(1, Y.shape[1] + 3):
                assert_same_bits(model.predict_topk(X, k), TopK(*(part[:, :k] for part in longest)))

    def test_one_row_at_a_time_gives_the_same_bits(self, rows, fitted):
        X, _ = rows
        whole = fitted.predict_topk(X[:8])
        parts = [fitted.predict_topk(X[i : i + 1]) for i in range(8)]
        assert_same_bits(TopK(*(np.concatenate(part) for part in zip(*parts, strict=True))), whole)

    def test_learns_something(self, rows, fitted):
        X, Y = rows
        top = fitted.predict_topk(X, 1).labels[:, 0]
        assert np.mean([Y[i, label] > 0 for i, label in enumerate(top) if label >= 0]) > 0.5

    def test_predict_is_the_indicator_of_topk(self, rows, fitted):
        X, Y = rows
        indicator = fitted.predict(X, 3)
        top = fitted.predict_topk(X, 3)
        assert indicator.shape == Y.shape and set(indicator.data) <= {1.0}
        for i in range(X.shape[0]):
            assert set(indicator.indices[indicator.indptr[i] : indicator.indptr[i + 1]]) == set(top.labels[i]) - {-1}

    def test_predict_assigns_sets_of_a_sensible_size(self, rows, fitted):
        X, Y = rows
        found = fitted.predict(X)
        assert found.shape == Y.shape and set(found.data) <= {1.0}
        assert (np.diff(found.indptr) >= (fitted.predict_topk(X, 1).labels[:, 0] >= 0)).all(), "the best at least"
        assert found.nnz <= 3 * Y.nnz
        assert 0 <= fitted.score(X, Y) <= 1
        assert fitted.predict(X[:0]).shape == (0, Y.shape[1])

    def test_empty_rows_and_no_rows(self, rows, fitted):
        X, Y = rows
        assert_valid_topk(fitted.predict_topk(sparse.csr_array((3, X.shape[1])), 5), 3, 5, Y.shape[1])
        assert_valid_topk(fitted.predict_topk(sparse.csr_array((0, X.shape[1])), 5), 0, 5, Y.shape[1])

    def test_every_form_of_input_gives_the_same_bits(self, rows, fitted):
        X, _ = rows
        expected = fitted.predict_topk(X)
        for form in input_forms(X).values():
            assert_same_bits(fitted.predict_topk(form), expected)

    def test_fit_takes_every_form_of_input(self, rows, fitted):
        X, Y = rows
        expected = fitted.predict_topk(X)
        forms = input_forms(X)
        for name in ("csr_matrix", "int64 indptr, read-only"):
            assert_same_bits(self.make(**self._seed()).fit(forms[name], input_forms(Y)[name]).predict_topk(X), expected)

    def test_rows_without_labels_and_without_features(self, rows):
        X, Y = (sparse.lil_array(part) for part in rows)
        Y[:5] = 0
        X[3:9] = 0
        model = self.make(**self._seed()).fit(X.tocsr(), Y.tocsr())
        assert_valid_topk(model.predict_topk(X.tocsr()), X.shape[0], 5, Y.shape[1])

    def test_save_and_load_give_the_same_bits(self, rows, fitted, tmp_path):
        X, _ = rows
        fitted.save(tmp_path / "model")
        for verify in (True, False):
            loaded = tailwise.load(tmp_path / "model", verify=verify)
            assert type(loaded) is type(fitted)
            assert repr(loaded.get_params()) == repr(fitted.get_params())
            assert_same_bits(loaded.predict_topk(X), fitted.predict_topk(X))
        loaded.save(tmp_path / "model")
        loaded.save(tmp_path / "copy")
        assert_same_bits(tailwise.load(tmp_path / "copy").predict_topk(X), fitted.predict_topk(X))
        assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []

    def test_damaged_files_are_refused(self, fitted, tmp_path):
        path = tmp_path / "model"
        fitted.save(path)
        victims = [p for p in path.iterdir() if p.suffix != ".json" and p.stat().st_size > 200] or [
            path / "manifest.json"
        ]
        victim = max(victims, key=lambda p: p.stat().st_size)
        good = victim.read_bytes()
        for bad in (good[:-1], good[: len(good) // 2], good[:-1] + bytes([good[-1] ^ 1])):
            victim.write_bytes(bad)
            with pytest.raises(ModelFileError, match=victim.name.split("-")[0]):
                tailwise.load(path)
        victim.unlink()
        with pytest.raises(ModelFileError):
            tailwise.load(path)
        victim.write_bytes(good)
        tailwise.load(path)
        manifest = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").write_text(json.dumps(manifest | {"format_version": 99}))
        with pytest.raises(ModelFileError, match="upgrade tailwise"):
            tailwise.load(path)

    def test_no_pickle_is_read_or_written(self, rows, fitted, tmp_path, monkeypatch):
        def refuse(*args, **kwargs):
            raise AssertionError("pickle was used")

        # Numba keeps compiled kernels as pickles of its own: bring those for mapped arrays in before looking.
        fitted.save(tmp_path / "warm")
        tailwise.load(tmp_path / "warm").predict_topk(rows[0])
        for name in ("load", "loads", "dump", "dumps", "Unpickler", "Pickler"):
            monkeypatch.setattr(pickle, name, refuse)
        fitted.save(tmp_path / "model")
        tailwise.load(tmp_path / "model").predict_topk(rows[0])
        assert {p.suffix for p in (tmp_path / "model").iterdir()} <= {".json", ".npy", ".safetensors"}

    def test_error_texts(self, rows, fitted):
        X, Y = rows
        n = X.shape[1]
        with pytest.raises(InvalidInput, match=r"Y has 119 rows but X has 120"):
            self.make().fit(X, Y[:-1])
        with pytest.raises(InvalidInput, match=r"Y has the value 2 at row 0"):
            self.make().fit(X, Y * 2)
        with pytest.raises(InvalidInput, match=r"X has NaN at row 0"):
            self.make().fit(np.full((2, 3), np.nan), np.ones((2, 2)))
        with pytest.raises(InvalidInput, match="infinity"):
            fitted.predict_topk(np.full((2, X.shape[1]), np.inf))
        with pytest.raises(InvalidInput, match=r"k=0 is outside \[1, inf\)"):
            fitted.predict_topk(X, 0)
        with pytest.raises(InvalidInput, match=r"k=2.5 must be an integer"):
            fitted.predict_topk(X, 2.5)
        with pytest.raises(InvalidInput, match=rf"X has {n - 1} features, but \w+ is expecting {n}"):
            fitted.predict_topk(X[:, :-1])
        with pytest.raises(InvalidInput, match="minimum of 1 is required"):
            self.make().fit(X[:0], Y[:0])
        with pytest.raises(TailwiseError):
            self.make().fit(X, None)

    def test_explanations_sum_to_the_scores(self, rows, fitted):
        X = rows[0]
        top = fitted.predict_topk(X[:6], 4)
        try:
            fitted.explain(X[[0]], 1)
        except Unsupported as refusal:
            assert type(fitted).__name__ in str(refusal) and ";" in str(refusal), "one sentence, with the way out"
            return
        for i, (labels, scores) in enumerate(zip(*top, strict=True)):
            for label, score in zip(labels[labels >= 0], scores[labels >= 0], strict=True):
                why = fitted.explain(X[[i]], label)
                assert why.label == label
                assert why.score == pytest.approx(score, rel=1e-3, abs=1e-5)
                assert_sums(why)
        nobody = fitted.explain(X[[0]], 0)
        assert not np.isnan(nobody.score), "a label without rows has an explanation too"
        with pytest.raises(InvalidInput, match=r"x has 2 rows; pass the one row to explain"):
            fitted.explain(X[:2], 1)
        with pytest.raises(InvalidInput, match=r"label=15 is outside \[0, 14\]"):
            fitted.explain(X[[0]], 15)

    def test_label_weights_or_a_sentence(self, fitted):
        try:
            weights = fitted.label_weights()
        except Unsupported as refusal:
            assert type(fitted).__name__ in str(refusal) or "has no linear weights" in str(refusal)
            return
        assert weights.format == "csr" and weights.shape == (fitted.n_labels_, fitted.n_features_in_)

    def test_update_or_a_sentence(self, rows, tmp_path):
        X, Y = rows
        old, new = (X[:100], Y[:100, :14]), (X[100:], Y[100:])
        model = self.make(**self._seed()).fit(*old)
        before = model.predict_topk(X)
        try:
            model._check_updates()
        except Unsupported as refusal:
            assert "cannot learn" in str(refusal) and ";" in str(refusal), "one sentence, with the way out"
            with pytest.raises(Unsupported):
                model.update(*new, known=old)
            return
        with pytest.raises(Unsupported, match=r"keeps no training rows.*known=\(X, Y\)"):
            model.update(*new)
        with pytest.raises(InvalidInput, match=r"known has label 1 on 99 rows, but \w+ learnt it from 100"):
            model.update(*new, known=(X[:99], Y[:99, :14]))
        with pytest.raises(InvalidInput, match=r"rows\[0\]=100 is no training row"):
            model.update(*new, known=old, rows=[100] + [-1] * 19)
        with pytest.raises(InvalidInput, match=r"Y has 3 columns but \w+ knows 14"):
            model.update(X[100:], Y[100:, :3], known=old)
        assert_same_bits(model.predict_topk(X), before)

        model.save(tmp_path / "old")
        parameters = repr(model.get_params(deep=False))
        assert model.update(*new, known=old) is model
        assert repr(model.get_params(deep=False)) == parameters
        assert model.n_labels_ == 15
        np.testing.assert_array_equal(model.label_counts_, np.append(Y[:, :14].sum(axis=0), Y[100:, [14]].sum()))
        after = model.predict_topk(X)
        assert_valid_topk(after, X.shape[0], 5, 15)
        assert not (after.labels == 0).any(), "a label without rows is not predicted"
        loaded = tailwise.load(tmp_path / "old")
        assert_same_bits(loaded.predict_topk(X), before)
        assert_same_bits(loaded.update(*new, known=old).predict_topk(X), after)
        if "n_jobs" in model.get_params(deep=False):
            for n_jobs in (1, 2):
                again = self.make(n_jobs=n_jobs, **self._seed()).fit(*old).update(*new, known=old)
                assert_same_bits(again.predict_topk(X), after)
        model.save(tmp_path / "new")
        assert_same_bits(tailwise.load(tmp_path / "new").predict_topk(X), after)
        assert (model.predict_topk(X, 15).labels == 14).any(), "a label that no row had before is found"

    def test_update_confirms_and_rejects_labels(self, rows):
        X, Y = rows
        model = self.make(**self._seed()).fit(X, Y)
        try:
            model._check_updates()
        except Unsupported:
            return
        changed = sparse.lil_array(Y[:2])
        changed[0, 0], changed[1, 1] = 1, 0
        model.update(X[:2], changed.tocsr(), known=(X, Y), rows=[0, 1])
        assert (model.label_counts_[0], model.label_counts_[1]) == (1, Y.shape[0] - 1)
        wide = sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], 43))
        now = sparse.vstack([changed.tocsr(), Y[2:]], format="csr")
        model.update(wide[:0], now[:0], known=(X, now))
        assert model.n_features_in_ == 43, "more columns"
        assert_valid_topk(model.predict_topk(wide), X.shape[0], 5, Y.shape[1])

    def test_scikit_learn_checks(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = check_estimator(
                one_target(self.make(**self._seed())), on_fail=None, expected_failed_checks=SCIKIT_LEARN_EXCEPTIONS
            )
        failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
        assert not failed, failed
        assert sum(r["status"] == "passed" for r in results) >= 35


SCIKIT_LEARN_EXCEPTIONS = {
    "check_estimators_pickle": "the adapter below is a local class; models are kept by save and load, without pickle",
    "check_dtype_object": "a value of a wrong type raises InvalidInput, a ValueError, not a TypeError",
    "check_estimator_sparse_array": "predict gives an indicator matrix, not one value a row",
    "check_estimator_sparse_matrix": "predict gives an indicator matrix, not one value a row",
}
"""scikit-learn's estimator checks that do not apply, with the reason."""


def one_target(model: XMCModel) -> XMCModel:
    """The model as scikit-learn's checks know models: it learns from one integer target instead of indicators."""
    kind = type(model)

    class OneTarget(kind):
        def fit(self, X, y):
            if y is None:
                return super().fit(X, None)
            column = np.asarray(y, dtype=object).reshape(-1)
            self.values_ = sorted(set(column.tolist()), key=repr)
            return super().fit(X, self.indicators(column))

        def score(self, X, y):
            return super().score(X, self.indicators(np.asarray(y, dtype=object).reshape(-1)))

        def indicators(self, column):
            return np.array([[value == v for v in self.values_] for value in column], dtype=np.float32)

    OneTarget.__name__ = kind.__name__
    OneTarget.__init__ = kind.__init__
    return OneTarget(**model.get_params(deep=False))


def input_forms(A: sparse.csr_array) -> dict[str, object]:
    """The same matrix in every form that a user may pass."""
    return {
        "csr_matrix": sparse.csr_matrix(A),
        "csc": A.tocsc(),
        "coo": A.tocoo(),
        "dense": A.toarray(),
        "float64": A.astype(np.float64),
        "unsorted": backwards(A),
        "duplicates": in_halves(A),
        "int64 indptr, read-only": store(A),
    }
