"""Early stopping: the best epoch is kept, the metric is measured on held-out rows, and a run resumes where it was."""

import numpy as np
import pytest
from contracts import assert_same_bits, make_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

torch = pytest.importorskip("torch")

from tailwise import early_stopping as stopping  # noqa: E402
from tailwise.early_stopping import EarlyStopping, hold_out  # noqa: E402
from tailwise.embedding import GLaS, run  # noqa: E402
from tailwise.errors import InvalidInput  # noqa: E402
from tailwise.validation import check_features, check_labels  # noqa: E402

SMALL = {"dim": 12, "epochs": 4, "batch_size": 50, "learning_rate": 0.02, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    X, Y = make_rows(n_samples=150)
    return check_features(X), check_labels(Y[:, 1:])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), min_size=1, max_size=8), st.integers(1, 3))
def test_the_first_of_the_best_epochs_is_kept(values, patience):
    weights = {"w": torch.zeros(1)}
    judge = EarlyStopping(
        "p@1", patience=patience, measure=lambda parameters: values[int(parameters["w"]) - 1], copy=run.copied
    )
    judge.keep(0, weights)
    for epoch, value in enumerate(values, start=1):
        assert not judge.should_stop
        weights["w"] += 1  # in place, as training does: what is kept must be a copy
        np.testing.assert_equal(judge.judge(epoch, weights), {"p@1": value})
        seen = values[:epoch]
        best = 1 if np.isnan(seen[0]) else 1 + int(np.nanargmax(seen))
        assert judge.best_epoch == best == int(judge.best["w"])
        assert judge.should_stop == (epoch - best >= patience)
        if judge.should_stop:
            break


def test_without_held_out_rows_the_last_epoch_counts():
    weights = {"w": torch.zeros(1)}
    judge = EarlyStopping("p@1", patience=1, measure=None, copy=run.copied)
    for epoch in (1, 2, 3):
        weights["w"] += 1
        assert judge.judge(epoch, weights) == {} and not judge.should_stop
    assert judge.best_epoch == 3 == int(judge.best["w"])


def test_training_stops_and_keeps_the_best_epoch(rows, monkeypatch):
    values = iter([10.0, 30.0, 20.0, 25.0, 99.0])
    monkeypatch.setattr(stopping.HeldOut, "measure", lambda self, predict: next(values))
    stopped = GLaS(**SMALL | {"epochs": 9, "patience": 2, "metric": "p@1"}).fit(*rows)
    assert [entry["p@1"] for entry in stopped.history_] == [10, 30, 20, 25] and stopped.best_epoch_ == 2


def test_validation_is_the_named_metric_on_the_held_out_rows(rows, monkeypatch):
    X, Y = rows
    chosen = []
    monkeypatch.setattr(stopping, "hold_out", lambda *args: chosen.append(hold_out(*args)) or chosen[-1])
    fitted = GLaS(**SMALL | {"validation_fraction": 0.3, "metric": "recall@3"}).fit(X, Y)
    assert len(chosen[0]) == 45
    top = fitted.predict_topk(X[chosen[0]], 3).labels
    truth = Y[chosen[0]].toarray()
    recalls = [truth[i, labels].sum() / truth[i].sum() for i, labels in enumerate(top)]
    assert fitted.history_[fitted.best_epoch_ - 1]["recall@3"] == pytest.approx(100 * np.mean(recalls))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=12), st.integers(0, 12), st.randoms())
def test_held_out_rows_leave_every_label_a_row(labels, wanted, random):
    Y = np.zeros((len(labels), 6), np.float32)
    for i, own in enumerate(labels):
        Y[i, list(own)] = 1
    order = np.array(random.sample(range(len(labels)), len(labels)))
    chosen = hold_out(sparse.csr_array(Y), order, wanted)
    assert len(set(chosen)) == len(chosen) <= wanted
    left = np.delete(Y, chosen, axis=0).sum(0)
    assert (left[Y.sum(0) > 0] > 0).all()
    if len(chosen) < wanted:
        passed_over = np.setdiff1d(order, chosen)
        assert all((left[Y[row] > 0] == 1).any() for row in passed_over), "only rows that a label needs are left"


def test_a_resumed_run_gives_the_same_bits(rows, tmp_path, monkeypatch):
    X, Y = rows
    path = str(tmp_path / "checkpoint")
    whole = GLaS(**SMALL | {"validation_fraction": 0.2}).fit(X, Y)
    made = GLaS(**SMALL | {"validation_fraction": 0.2, "checkpoint": path})
    judge = EarlyStopping.judge

    def stop_after_two(self, epoch, parameters):
        if epoch == 3:
            raise KeyboardInterrupt
        return judge(self, epoch, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(EarlyStopping, "judge", stop_after_two)
        with pytest.raises(KeyboardInterrupt):
            made.fit(X, Y)
    epochs = []
    monkeypatch.setattr(EarlyStopping, "judge", lambda self, *args: epochs.append(args[0]) or judge(self, *args))
    resumed = made.fit(X, Y)
    assert epochs == [3, 4]
    assert_same_bits(resumed.predict_topk(X), whole.predict_topk(X))
    assert resumed.history_ == whole.history_ and resumed.best_epoch_ == whole.best_epoch_
    with pytest.raises(InvalidInput, match="other parameters or other data; remove it to start anew"):
        made.set_params(dim=13).fit(X, Y)
    whole.save(tmp_path / "model")
    with pytest.raises(InvalidInput, match="holds a GLaS, not a checkpoint"):
        made.set_params(checkpoint=str(tmp_path / "model")).fit(X, Y)


def test_a_resumed_run_remembers_the_best_value(rows, tmp_path, monkeypatch):
    path = str(tmp_path / "checkpoint")
    values = iter([30.0, 20.0, KeyboardInterrupt, 25.0])

    def measure(self, predict):
        value = next(values)
        if value is KeyboardInterrupt:
            raise value
        return value

    monkeypatch.setattr(stopping.HeldOut, "measure", measure)
    made = GLaS(**SMALL | {"epochs": 9, "patience": 2, "metric": "p@1", "checkpoint": path})
    with pytest.raises(KeyboardInterrupt):
        made.fit(*rows)
    made.fit(*rows)
    assert [entry["p@1"] for entry in made.history_] == [30, 20, 25] and made.best_epoch_ == 1
