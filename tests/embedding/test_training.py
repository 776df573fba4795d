"""Training: gradients, the optimiser, threads and processes, and what is said when torch is absent."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from contracts import assert_same_bits, make_rows
from naive import embedding as naive
from scipy import sparse

from tailwise.embedding import FaissIndex, GLaS, SampledSoftmax, runtime, weights_for
from tailwise.embedding.glas import AS_PUBLISHED, UNSTATED
from tailwise.embedding.negatives import SampledObjective, get_negatives
from tailwise.embedding.network import SparseRows, initial_parameters, layer_weights, to_tower, upper_layers
from tailwise.embedding.objectives import (
    FullObjective,
    GlasObjective,
    LabelRegularizer,
    MinedMargin,
    SummedMargin,
    TiltedSoftmax,
)
from tailwise.embedding.optimizer import RowAdam
from tailwise.embedding.sampling import WEIGHTINGS
from tailwise.embedding.tower import Shape
from tailwise.embedding.training import Settings, Trainer
from tailwise.errors import InvalidInput, MissingExtra, import_extra
from tailwise.losses import get_margin, label_prior
from tailwise.rows import unit_rows
from tailwise.validation import check_features, check_labels

SMALL = {"dim": 12, "epochs": 4, "batch_size": 50, "learning_rate": 0.02, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    X, Y = make_rows(n_samples=150)
    return unit_rows(check_features(X)), check_labels(Y[:, 1:])


def glas_objective(Y, loss=None, regularizer="glas", labels_a_part=4, **changes):
    tilt = 0.3 * np.log(label_prior(np.bincount(Y.indices, minlength=Y.shape[1])))
    if regularizer is not None:
        transposed = sparse.csr_array(Y.T.tocsr())
        regularizer = LabelRegularizer(
            name=regularizer, weight=10.0, Y_transposed=transposed, labels_a_part=labels_a_part
        )
    settings = {"loss": loss or TiltedSoftmax(log_tilt=tilt), "every_label": True, "regularizer": regularizer}
    return GlasObjective(**settings | changes)


def sampled_objective(Y, sampler, weighting="constant", contrastive=False):
    prior = label_prior(np.bincount(Y.indices, minlength=Y.shape[1]))
    return SampledObjective(
        negatives=get_negatives(sampler, prior, 20), weighting=WEIGHTINGS[weighting], contrastive=contrastive
    )


OBJECTIVES = {
    "softmax": glas_objective,
    "margin": lambda Y: glas_objective(Y, SummedMargin(margin=0.3), "spreadout"),
    "mining": lambda Y: glas_objective(Y, MinedMargin(margin=0.3, n_mined=5), "laplacian"),
    "gravity": lambda Y: glas_objective(Y, regularizer=None, gravity_weight=10.0, every_label=False),
    "batch labels": lambda Y: glas_objective(Y, every_label=False),
    "uniform": lambda Y: sampled_objective(Y, "uniform", "relative"),
    "within batch": lambda Y: sampled_objective(Y, "within_batch", "tail"),
    "model": lambda Y: sampled_objective(Y, "model", "importance"),
    "contrastive": lambda Y: sampled_objective(Y, "uniform", "importance", contrastive=True),
    "equalised": lambda Y: FullObjective(get_margin("equalised", label_prior(np.bincount(Y.indices)))),
    "full contrastive": lambda Y: FullObjective(None),
}


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize(("normalize", "weight_norm"), [(True, False), (False, False), (True, True)])
def test_a_step_follows_the_gradient_of_the_whole_batch(rows, name, normalize, weight_norm, monkeypatch):
    """Parts, sparse products outside autograd and both normalisations give what one autograd graph gives."""
    X, Y = rows
    monkeypatch.setattr("tailwise.embedding.training._ROWS_A_PART", X.shape[0] if name == "model" else 64)
    shape = Shape(X.shape[1], Y.shape[1], (9, 6), "relu", normalize, weight_norm)
    parameters = initial_parameters(shape, 5.0, 0, torch.device("cpu"))
    before = {key: value.clone().requires_grad_() for key, value in parameters.items()}
    objective = OBJECTIVES[name](Y)
    how = Settings(batch_size=150, epochs=1, learning_rate=0.1, keep_probability=1.0, seed=0, n_jobs=2)
    trainer = Trainer(shape, parameters, objective, how, runtime.Processes(torch.device("cpu")))
    seen = {}
    monkeypatch.setattr(trainer.optimizer, "step", lambda gradients, at, rate: seen.update(gradients=gradients, at=at))
    plan = objective.plan(Y, np.random.default_rng(3))
    loss = trainer.step(X, plan, 0.1)

    weights = {**before, **layer_weights(shape, before)}
    table = torch.from_numpy(X.toarray()) @ weights["features"]
    labels = before["labels"] if plan.labels is None else before["labels"][torch.from_numpy(plan.labels)]
    labels = torch.nn.functional.normalize(labels, dim=1) if normalize else labels
    vectors = upper_layers(shape, weights, table)
    total = objective.row_loss(plan, slice(0, X.shape[0]), vectors, labels, before["log_scale"])
    for part in plan.label_parts:
        total = total + part.loss(labels)
    total.backward()
    assert loss == pytest.approx(total.item(), rel=1e-4)
    for key, value in before.items():
        expected = torch.zeros_like(value) if value.grad is None else value.grad
        got = torch.zeros_like(value)
        at = seen["at"].get(key)
        got[slice(None) if at is None else at] = seen["gradients"][key]
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-5)


def test_the_step_gradient_matches_finite_differences():
    """The GLaS objective of a whole network, in double precision, against differences of its value."""
    X, Y = make_rows(n_samples=12, n_features=6, n_labels=5)
    Y = check_labels(Y[:, 1:])
    objective = glas_objective(Y, labels_a_part=100)
    plan = objective.plan(Y, np.random.default_rng(0))
    shape = Shape(6, 4, (5, 3), "relu", True)
    values = {k: v.double() for k, v in initial_parameters(shape, 5.0, 1, torch.device("cpu")).items()}
    dense = torch.from_numpy(X.toarray()).double()
    (part,) = plan.label_parts
    part = replace(part, U=part.U.astype(np.float64))

    def value(*tensors):
        now = dict(zip(values, tensors, strict=True))
        labels = torch.nn.functional.normalize(now["labels"], dim=1)
        vectors = upper_layers(shape, now, dense @ now["features"])
        return objective.row_loss(plan, slice(0, 12), vectors, labels, now["log_scale"]) + part.loss(labels)

    assert torch.autograd.gradcheck(value, [v.requires_grad_() for v in values.values()])


def test_normalized_weights_are_directions_of_one_length(rows):
    X, Y = rows
    fitted = GLaS(**SMALL | {"hidden": 9, "weight_normalization": True}).fit(X, Y)
    for weights in (fitted.tower_.features, *fitted.tower_.weights):
        lengths = np.linalg.norm(weights, axis=0)
        np.testing.assert_allclose(lengths, lengths[0], rtol=1e-5)
    plain = GLaS(**SMALL | {"hidden": 9}).fit(X, Y)
    assert np.ptp(np.linalg.norm(plain.tower_.features, axis=0)) > 1e-3


def test_the_first_network_does_not_depend_on_weight_normalization_but_for_lengths():
    plain, normal = (
        initial_parameters(Shape(7, 3, (5, 4), "relu", True, on), 1.0, 0, torch.device("cpu")) for on in (False, True)
    )
    made = layer_weights(Shape(7, 3, (5, 4), "relu", True, True), normal)
    for name, weights in made.items():
        lengths = torch.linalg.vector_norm(plain[name], dim=0)
        torch.testing.assert_close(weights, plain[name] * lengths.mean() / lengths)
    assert layer_weights(Shape(7, 3, (5, 4), "relu", True), plain) == {}


def test_the_papers_setting_in_one_line(rows):
    made = GLaS.as_published(random_state=0)
    assert (made.loss, made.activation, made.reg_weight, made.regularizer) == ("margin", "relu", 10, "glas")
    assert (made.dim, made.batch_size, made.epochs, made.early_stopping) == (1024, 4096, 10, True)
    assert (made.weight_normalization, made.input_keep_probability, made.start) == (True, 0.8, "random")
    assert set(AS_PUBLISHED) & set(UNSTATED) == set()
    assert GLaS.as_published(dim=8, reg_weight=1.0).get_params() | {"dim": 1024, "reg_weight": 10.0} == (
        GLaS.as_published().get_params()
    )
    X, Y = rows
    check_learns(GLaS.as_published(dim=32, epochs=60, early_stopping=False, random_state=0), X, Y)


def test_batches_are_as_large_as_asked_where_few_are_enough(rows):
    X, Y = rows

    def steps(**params):
        settings = Settings(
            batch_size=100, epochs=1, learning_rate=0.1, keep_probability=1.0, seed=0, n_jobs=1, **params
        )
        shape = Shape(X.shape[1], Y.shape[1], (4,), "linear", True)
        parameters = initial_parameters(shape, 1.0, 0, torch.device("cpu"))
        return Trainer(shape, parameters, glas_objective(Y), settings, runtime.Processes(torch.device("cpu"))).n_steps

    assert [steps()(n) for n in (100, 1600, 10_000)] == [2, 16, 100]
    assert [steps(min_batches=1)(n) for n in (100, 1600, 10_000)] == [1, 16, 100]
    assert [steps(min_batches=4)(n) for n in (100, 399)] == [2, 4]


def test_label_vectors_start_where_they_are_told(rows):
    X, Y = rows
    still = SMALL | {"epochs": 1, "learning_rate": 1e-12, "early_stopping": False}
    at_rows, anywhere = (GLaS(**still, start=start).fit(X, Y) for start in ("rows", "random"))
    encoded = at_rows.encode(X)
    means = (Y.T @ (encoded - encoded.mean(0)))[1:]  # the first label is on every row: its mean has no direction
    cosines = {
        name: (_unit(means) * _unit(model.label_vectors_[1:])).sum(1).min()
        for name, model in (("rows", at_rows), ("random", anywhere))
    }
    assert cosines["rows"] > 0.999 > 0.9 > cosines["random"]


def _unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_row_adam_is_adam_on_the_rows_it_touches():
    torch.manual_seed(0)
    start = torch.randn(5, 3)
    ours, theirs = start.clone(), start.double().numpy()
    row_adam, mean, square = RowAdam({"table": ours}), np.zeros((5, 3)), np.zeros((5, 3))
    for step in range(4):
        gradient = torch.randn(5, 3)
        theirs, mean, square = naive.adam(theirs, mean, square, gradient.numpy(), step + 1, 0.1)
        # The first half by all rows, the second by naming them.
        row_adam.step({"table": gradient}, {"table": None if step < 2 else torch.arange(5)}, 0.1)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-5, atol=1e-6)
    before = ours.clone()
    row_adam.step({"table": torch.ones(2, 3)}, {"table": torch.tensor([1, 4])}, 0.1)
    assert (ours[[0, 2, 3]] == before[[0, 2, 3]]).all() and (ours[[1, 4]] != before[[1, 4]]).all()


def test_the_tower_encodes_as_the_network(rows):
    X, _ = rows
    for activation, weight_norm in (("relu", False), ("relu", True), ("linear", False)):
        for widths in ((8,), (10, 7, 8)):
            shape = Shape(X.shape[1], 3, widths, activation, True, weight_norm)
            parameters = initial_parameters(shape, 1.0, 0, torch.device("cpu"))
            weights = {**parameters, **layer_weights(shape, parameters)}
            first = SparseRows.of(X, slice(0, X.shape[0]), "cpu").times(weights["features"])
            expected = upper_layers(shape, weights, first).numpy()
            np.testing.assert_allclose(to_tower(shape, parameters).encode(X), expected, atol=1e-5)


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "margin"},
        {"loss": "negative_mining", "n_mined": 3},
        {"regularizer": None, "negatives": "batch"},
        {"regularizer": "gravity", "hidden": 16, "activation": "relu"},
        {"regularizer": "laplacian", "hidden": (16, 16)},
        {"weight_normalization": True, "hidden": 16, "activation": "relu"},
        {"regularizer": "spreadout", "input_keep_probability": 1.0, "activation": "relu"},
        {"logit_adjustment": 1.0, "index": FaissIndex("hnsw")},
    ],
    ids=str,
)
def test_every_kind_of_glas_learns(rows, params):
    X, Y = rows
    check_learns(GLaS(**SMALL | {"epochs": 20, "early_stopping": False} | params), X, Y)


@pytest.mark.parametrize(
    "params",
    [
        {"sampler": "model", "weighting": "importance"},
        {"sampler": "within_batch", "weighting": "tail"},
        {"sampler": "uniform", "weighting": "importance", "loss": "contrastive"},
        *({"sampler": None, "loss": loss} for loss in ("softmax", "adaptive", "equalised", "logit_adjusted")),
        {"sampler": None, "loss": "contrastive"},
    ],
    ids=str,
)
def test_every_kind_of_sampled_softmax_learns(rows, params):
    X, Y = rows
    fitted = check_learns(SampledSoftmax(**SMALL | {"epochs": 20, "early_stopping": False} | params), X, Y)
    assert fitted.margin_.get("favours") == (
        "tail"
        if "tail" in params.values() or params.get("loss") in ("adaptive", "equalised", "logit_adjusted")
        else None
        if params["sampler"] == "model" or (params.get("loss") == "contrastive" and params["sampler"] is None)
        else "-"
    )


def test_label_vectors_start_at_their_rows_or_at_random(rows):
    X, Y = (part[np.diff(rows[1].indptr) > 0] for part in rows)
    Y = Y[:, (Y.sum(axis=0) > 0) & (Y.sum(axis=0) < Y.shape[0])]
    settings = SMALL | {"epochs": 1, "learning_rate": 1e-12, "early_stopping": False, "dim": 64}
    started = {start: SampledSoftmax(start=start, **settings).fit(X, Y) for start in ("rows", "random")}
    vectors = started["rows"].encode(X)
    means = (Y.T @ vectors) / Y.sum(axis=0)[:, None] - vectors.mean(axis=0)
    for start, model in started.items():
        labels = model.label_vectors_
        cosine = (labels * means).sum(1) / np.linalg.norm(labels, axis=1) / np.linalg.norm(means, axis=1)
        assert (cosine > 0.999).all() if start == "rows" else np.abs(cosine).max() < 0.6
    np.testing.assert_allclose(vectors, started["random"].encode(X), atol=1e-6)


def check_learns(made, X, Y):
    fitted = made.fit(X, Y)
    top = fitted.predict_topk(X, 3).labels
    hits = np.mean([Y[i, label] for i in range(X.shape[0]) for label in top[i]])
    assert hits > 0.6, hits
    assert fitted.history_[-1]["loss"] < fitted.history_[0]["loss"]
    return fitted


@pytest.mark.parametrize("kind", [GLaS, SampledSoftmax])
def test_many_parts_give_the_same_bits_for_any_number_of_threads(rows, kind, monkeypatch):
    monkeypatch.setattr("tailwise.embedding.training._ROWS_A_PART", 32)
    monkeypatch.setattr("tailwise.embedding.training._SMALLEST_BATCH", 150)
    monkeypatch.setattr("tailwise.embedding.training._FEATURES_A_PART", 7)
    X, Y = rows
    fitted = [kind(**SMALL | {"batch_size": 150, "n_jobs": n_jobs}).fit(X, Y) for n_jobs in (1, 2, 3)]
    for other in fitted[1:]:
        assert_same_bits(other.predict_topk(X), fitted[0].predict_topk(X))


def test_own_weights_train_like_the_named_ones(rows):
    X, Y = rows
    prior = label_prior(np.bincount(Y.indices, minlength=Y.shape[1]))
    settings = SMALL | {"early_stopping": False, "n_negatives": 20}
    own = SampledSoftmax(weighting=weights_for("logit_adjusted", "uniform", prior), **settings).fit(X, Y)
    named = SampledSoftmax(weighting="tail", **settings).fit(X, Y)
    np.testing.assert_allclose(own.label_vectors_, named.label_vectors_, atol=1e-4)
    assert own.margin_["favours"] == named.margin_["favours"] == "tail"
    with pytest.raises(InvalidInput, match="cannot be saved"):
        own.save("never-written")


TOGETHER = """
import os, sys
import numpy as np
import torch
sys.path.insert(0, {tests!r})
from contracts import make_rows
from scipy import sparse
from tailwise import GLaS
rows = [sparse.vstack([part] * 30) for part in make_rows(n_samples=300)]
fitted = GLaS(dim=12, epochs=1, batch_size=600, learning_rate=0.02, random_state=0).fit(*rows)
np.save(os.path.join({out!r}, "vectors" + os.environ.get("RANK", "")), fitted.label_vectors_)
"""


def test_two_processes_train_one_model(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TOGETHER.format(tests=str(Path(__file__).parents[1]), out=str(tmp_path)))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (np.load(tmp_path / f"vectors{rank}.npy") for rank in (0, 1))
    np.testing.assert_array_equal(first, second)
    rows = [sparse.vstack([part] * 30) for part in make_rows(n_samples=300)]  # batches of several parts, quickly made
    alone = GLaS(dim=12, epochs=1, batch_size=600, learning_rate=0.02, random_state=0).fit(*rows)
    np.testing.assert_allclose(first, alone.label_vectors_, atol=0.02)


def test_without_torch_the_message_names_the_extra(rows, monkeypatch):
    def without_torch(module):
        raise ModuleNotFoundError(module)

    monkeypatch.setattr(runtime, "import_extra", lambda *a: import_extra(*a, importer=without_torch))
    for made in (GLaS(**SMALL), SampledSoftmax(**SMALL)):
        wanted = rf"{type(made).__name__} needs torch; install it with: pip install 'tailwise\[neural\]'"
        with pytest.raises(MissingExtra, match=wanted):
            made.fit(*rows)


def test_importing_and_predicting_load_no_torch(rows, tmp_path):
    GLaS(**SMALL).fit(*rows).save(tmp_path / "model")
    code = (
        "import sys, tailwise, numpy as np, tailwise.embedding\n"
        f"m = tailwise.load({str(tmp_path / 'model')!r})\n"
        "m.predict_topk(np.ones((2, m.n_features_in_)))\n"
        "assert not {'torch', 'faiss'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"dim": 0}, r"dim=0 is outside \[1, inf\)"),
        ({"hidden": (8, -1)}, r"hidden=-1 is outside"),
        ({"activation": "tanh"}, "activation='tanh' is not one of 'relu', 'linear'"),
        ({"loss": "hinge"}, "loss='hinge' is not one of 'margin'"),
        ({"regularizer": "l2"}, "regularizer='l2' is not one of 'glas', 'spreadout'"),
        ({"input_keep_probability": 0}, r"input_keep_probability=0 is outside \(0, 1\]"),
        ({"metric": "accuracy"}, "metric='accuracy': metric 'accuracy' is not known"),
        ({"device": "abacus"}, "device='abacus' cannot be used"),
        ({"n_jobs": 0}, "n_jobs=0 must be"),
        ({"index": "exact"}, r"index='exact' is not a tailwise label index; pass one, such as FaissIndex\(\), or None"),
        ({"index": FaissIndex("tree")}, "kind='tree' is not one of 'ivf', 'hnsw'"),
        ({"checkpoint": Path("here")}, r"checkpoint=\w+\('here'\) must be a string"),
        ({"random_state": "x"}, "random_state='x'"),
    ],
)
def test_wrong_parameters_are_named(rows, params, message):
    with pytest.raises(InvalidInput, match=message):
        GLaS(**SMALL | params).fit(*rows)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sampler": "guess"}, "sampler='guess' is not one of 'uniform', 'within_batch', 'model', None"),
        ({"weighting": "heavy"}, "weighting='heavy' is not one of 'constant', 'importance'"),
        ({"loss": "hinge"}, "loss='hinge' is not one of 'softmax', 'adaptive', 'equalised'"),
        ({"n_negatives": 0}, r"n_negatives=0 is outside"),
        ({"start": "zero"}, "start='zero' is not one of 'rows', 'random'"),
        ({"hidden": 0}, r"hidden=0 is outside"),
    ],
)
def test_wrong_parameters_of_sampled_softmax_are_named(rows, params, message):
    with pytest.raises(InvalidInput, match=message):
        SampledSoftmax(**SMALL | params).fit(*rows)


def test_full_label_losses_refuse_a_sampler(rows):
    with pytest.raises(
        InvalidInput, match=r"loss='equalised' sums over every label.*weights_for\('equalised', 'uniform'"
    ):
        SampledSoftmax(loss="equalised", **SMALL).fit(*rows)


@pytest.mark.parametrize("kind", [GLaS, SampledSoftmax])
def test_no_label_at_all_and_one_label(kind):
    X = np.eye(6, dtype=np.float32)
    none = kind(**SMALL).fit(X, np.zeros((6, 3))).predict_topk(X, 2)
    assert (none.labels == -1).all() and np.isneginf(none.scores).all()
    one = kind(**SMALL).fit(X, np.eye(6, 3, -5)).predict_topk(X, 2)
    assert (one.labels == [0, -1]).all()


def test_label_vectors_and_unseen_labels(rows):
    X, Y = rows
    wider = sparse.csr_array(sparse.hstack([sparse.csr_array((Y.shape[0], 2)), Y]))
    fitted = GLaS(**SMALL).fit(X, wider)
    assert fitted.label_vectors_.shape == (wider.shape[1], 12) and (fitted.label_vectors_[:2] == 0).all()
    lengths = np.linalg.norm(fitted.label_vectors_[2:], axis=1)
    np.testing.assert_allclose(lengths, lengths[0], rtol=1e-5)
    scores = fitted.encode(X) @ fitted.label_vectors_.T
    top = fitted.predict_topk(X, 1)
    np.testing.assert_allclose(scores[np.arange(X.shape[0]), top.labels[:, 0]], top.scores[:, 0], rtol=1e-4)
