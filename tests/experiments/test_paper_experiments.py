"""The papers' tables and figures that are no missing-label experiments: quick runs, and the parts they are made of."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import tailwise
from tailwise.data import make_longtail
from tailwise.errors import InvalidInput
from tailwise.experiments import (
    gain_by_frequency,
    hierarchy_propensity,
    loss_curves,
    power_law,
    tail_classifiers,
)
from tailwise.experiments.catalogue import experiment_of
from tailwise.experiments.running import run_experiment
from tailwise.losses import convexity


def quick(module, folder, **changes):
    """A quick run with changed settings."""
    experiment = experiment_of(module)
    settings = {**module.choose("quick", {}), **changes}
    return run_experiment(replace(experiment, choose=lambda size, options: settings), folder, size="quick")


class TestPowerLaw:
    @pytest.mark.parametrize("alpha", [1.6, 2.0, 3.0])
    def test_a_planted_exponent_is_found_again(self, alpha):
        counts = power_law.draw_counts(power_law.Tail(alpha, 2, 0, 0.0), 5_000, np.random.default_rng(0))
        share_of_least = np.mean(counts == 2)
        expected = 2.0**-alpha / sum(n**-alpha for n in np.arange(2.0, 2_000_000))
        assert share_of_least == pytest.approx(expected, abs=0.02 if alpha > 1.9 else 0.03)
        found = power_law.fit_tail(counts)
        assert found.alpha == pytest.approx(alpha, abs=0.12) and found.start <= 10

    def test_what_is_no_power_law_is_told_from_one(self):
        rng = np.random.default_rng(1)
        planted = power_law.draw_counts(power_law.Tail(2.2, 1, 0, 0.0), 800, rng)
        geometric = rng.geometric(0.05, 800)
        far = [
            power_law._as_far(counts, power_law.fit_tail(counts), 30, np.random.default_rng(2))
            for counts in (planted, geometric)
        ]
        assert far[0] > 0.1 and far[1] < far[0]
        assert power_law.fit_tail(geometric).n_labels < 0.5 * geometric.size, "only its end is like a power law"

    def test_a_quick_run_and_a_missing_file(self, tmp_path):
        done = quick(power_law, tmp_path / "out", resamples=5, simulations=3)
        assert done.rows[0]["dataset"] == "synthetic" and done.rows[0]["β low"] < done.rows[0]["β high"]
        assert (tmp_path / "out/powerlaw.svg").is_file()
        with pytest.raises(InvalidInput, match=r"bibtex-train\.arff\.xz is not in .*nowhere; pass its folder"):
            power_law.find_file(power_law.FILES["Bibtex"], str(tmp_path / "nowhere"))


def test_loss_curves_are_the_definitions(tmp_path):
    done = quick(loss_curves, tmp_path / "out")
    at = {(r["loss"], r["propensity"]): r for r in done.rows}
    assert len(at) == 15
    for p in (0.25, 0.5, 0.75):
        # At score 0 the hinges pay 1 on both sides: unbiased is (1 + (p - 1)) / p.
        for loss in ("hinge", "squared_hinge"):
            row = at[loss, p]
            assert (row["plain at 0"], row["unbiased at 0"]) == (1, 1)
            assert row["convex at 0"] == pytest.approx(2 / p - 1, abs=1e-3)
            assert not row["unbiased is convex"] and row["form to train with is convex"]
        assert at["squared_hinge", p]["square of the convex hinge at 0"] == pytest.approx((2 / p - 1) ** 2, abs=1e-3)
        assert at["zero_one", p]["unbiased at 0"] == pytest.approx(1 - 1 / p, abs=1e-3)
        assert at["zero_one", p]["unbiased, shifted at 0"] == pytest.approx(0, abs=1e-3)
        assert at["cross_entropy", p]["unbiased is convex"] == convexity("cross_entropy", p).convex
    assert (tmp_path / "out/curves.svg").is_file()


class TestHierarchy:
    @pytest.fixture(scope="class")
    @classmethod
    def labelled(cls):
        settings = {**hierarchy_propensity.choose("quick", {}), "seed": 3, "nouns": 2_000}
        return hierarchy_propensity.prepare(settings, None)[1]

    @pytest.mark.parametrize("kind", hierarchy_propensity.KINDS)
    def test_what_is_observed_is_true(self, labelled, kind):
        Y = hierarchy_propensity.observe(labelled, kind, np.random.default_rng(0))
        assert 0 < Y.nnz < labelled.complete.nnz
        assert Y.multiply(labelled.complete).nnz == Y.nnz
        if kind == "parents":
            assert (np.diff(Y.indptr)[1:] == 1).all()

    def test_the_planted_curve_is_found_where_the_truth_is_known(self, tmp_path):
        done = quick(hierarchy_propensity, tmp_path / "out", nouns=6_000, resamples=3)
        at = {(r["observed"], r["fitted to, bins"]): r for r in done.rows}
        assert len(at) == 3 * 4
        a, b = hierarchy_propensity.PLANTED
        true = at["planted", "truth, relevant"]
        assert true["A"] == pytest.approx(a, abs=0.12) and true["B"] == pytest.approx(b, abs=0.6)
        # A row says that an ancestor is relevant only through a label that was itself observed.
        assert at["planted", "hierarchy, relevant"]["A"] > true["A"]
        same = [{**at["parents", f"{which}, relevant"], "fitted to, bins": ""} for which in ("hierarchy", "truth")]
        assert same[0] == same[1], "with every parent recorded the hierarchy knows the truth"
        assert (tmp_path / "out/hierarchy.svg").is_file()


class TestGainByFrequency:
    def test_bins_sum_to_the_whole(self):
        data = make_longtail(600, 200, 60, random_state=1)
        rng = np.random.default_rng(0)
        top = np.stack([rng.permutation(60)[:5] for _ in range(data.n_test)]).astype(np.int32)
        shares = gain_by_frequency.shares_by_bin(top, data)
        propensity = tailwise.JainPropensity().fit(data.Y_train)
        found = tailwise.evaluate(data.Y_test, top, ["p@5", "psp@5"], propensity, confidence=None)
        for name in ("p", "psp"):
            assert shares[name].mean(axis=0).sum() == pytest.approx(found[f"{name}@5"].value)
        assert len(gain_by_frequency.bin_names()) == shares["hits"].shape[1]

    def test_a_quick_run(self, tmp_path):
        done = quick(gain_by_frequency, tmp_path / "out", trees=2, repeats=1)
        gain = [r for r in done.rows if r["model"] == "PWDiSMEC, 1/p - 1 less DiSMEC"]
        own = {m: [r for r in done.rows if r["model"] == m] for m in ("PWDiSMEC, 1/p - 1", "DiSMEC")}
        for better, plain, difference in zip(own["PWDiSMEC, 1/p - 1"], own["DiSMEC"], gain, strict=True):
            assert difference["PSP@5 share"] == pytest.approx(better["PSP@5 share"] - plain["PSP@5 share"], abs=2e-3)
        assert (tmp_path / "out/frequency.svg").is_file()


class TestTailClassifiers:
    def test_the_weights_are_those_of_the_gradient(self):
        rng = np.random.default_rng(0)
        rows = 0.2 * rng.normal(size=(7, 4))
        gram, shares, p = rows @ rows.T, rng.normal(size=7) / 7, 0.4
        _, pull = tail_classifiers._likelihood(gram, shares, 3, p)
        slope = tail_classifiers.GAMMA * gram @ (pull - pull.sum() * shares)
        for i in range(7):
            step = 1e-6 * np.eye(7)[i]
            up, down = (tail_classifiers._likelihood(gram, shares + sign * step, 3, p)[0] for sign in (1, -1))
            assert (up - down) / 2e-6 == pytest.approx(slope[i], rel=1e-4, abs=1e-4)

    def test_no_other_vector_nearby_is_likelier(self):
        rng = np.random.default_rng(1)
        X = np.abs(rng.normal(size=(60, 6)))
        X = sparse.csr_array((X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32))
        Y = sparse.csr_array((rng.random((60, 2)) < 0.2).astype(np.float32))
        means, p = tail_classifiers.mean_vectors(X, Y), np.array([0.3, 0.8])
        np.testing.assert_allclose(means.toarray()[0], X.toarray()[Y.toarray()[:, 0] > 0].mean(axis=0), rtol=1e-5)
        found, gained = tail_classifiers.climb_likelihood(X, Y, means, p, 300)

        def value(label, mu):
            q = 1 / (1 + np.exp(0.5 * tail_classifiers.GAMMA * ((X.toarray() - mu) ** 2).sum(axis=1)))
            own = Y.toarray()[:, label] > 0
            return np.log(q[own]).sum() + np.log(1 - p[label] * q[~own]).sum()

        for label in range(2):
            best = found.toarray()[label]
            assert gained[label, 1] > gained[label, 0]
            assert value(label, best) > value(label, means.toarray()[label])
            for _ in range(20):
                assert value(label, best + 0.03 * rng.normal(size=6)) < value(label, best) + 1e-3

    def test_means_re_rank_as_pfastrexml_does(self):
        data = make_longtail(500, 150, 40, random_state=2)
        model = gain_by_frequency.published_pfastrexml(4, 0).fit(data.X_train, data.Y_train)
        forest = model.forest_.predict_topk(data.X_test, data.n_labels)
        means = tail_classifiers.mean_vectors(data.X_train, data.Y_train)
        log_q = tail_classifiers._log_q(tail_classifiers.squared_distances(data.X_test, means))
        own = np.take_along_axis(log_q, np.maximum(forest.labels, 0).astype(np.int64), axis=1)
        ours, theirs = tail_classifiers.rerank(forest, own, 0.8), model.predict_topk(data.X_test, 5)
        there = ours.labels >= 0
        np.testing.assert_allclose(ours.scores[there], theirs.scores[there], rtol=1e-3)
        assert np.mean(ours.labels == theirs.labels) > 0.99

    def test_a_quick_run(self, tmp_path):
        done = quick(tail_classifiers, tmp_path / "out", trees=2)
        assert len(done.rows) == 4 + 3 and "less means" in done.findings[1]
        assert (tmp_path / "out/tail-classifiers.svg").is_file()
