import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import spearmanr

from tailwise import Centroid, DiSMEC
from tailwise.base import TopK
from tailwise.errors import InvalidInput
from tailwise.experiments import dense_features, tail_augmentation, weight_norms
from tailwise.experiments.catalogue import load_experiment
from tailwise.experiments.running import run_experiment
from tailwise.experiments.sharing import share_fits
from tailwise.tail import PropensityReranker, TailAugmented, classifier_norms


class TestTheorem:
    """Theorem 1: the norm of a label's weights and how often it is predicted, in the setting of its proof."""

    @pytest.mark.parametrize("dimension", [2, 3, 10])
    def test_closed_form_equals_draws(self, dimension):
        rng = np.random.default_rng(0)
        x = rng.standard_normal((400_000, dimension))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        for norm in (1.0, 1.5, 4.0):
            direction = rng.standard_normal(dimension)
            w = norm * direction / np.linalg.norm(direction)
            rate = weight_norms.predicted_rate(np.array([norm]), 0.5, dimension)[0]
            assert (x @ w >= 0.5).mean() == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / len(x)))

    def test_the_rate_grows_with_the_norm(self):
        for dimension in (2, 5, 100):
            assert (np.diff(weight_norms.predicted_rate(np.linspace(0.6, 50, 200), 0.5, dimension)) > 0).all()

    def test_it_is_not_in_proportion_to_the_norm(self):
        """On the circle, four times the norm is predicted 1.4 times as often, and never on more than half the rows."""
        one, four, huge = weight_norms.predicted_rate(np.array([1.0, 4.0, 1e6]), 0.5, 2)
        assert one == pytest.approx(1 / 3) and four / one == pytest.approx(3 * np.arccos(1 / 8) / np.pi)
        assert huge == pytest.approx(0.5, abs=1e-5)

    def test_a_longer_vector_is_among_the_best_more_often(self):
        found = weight_norms._simulate(10, 20_000, 0)
        best = np.array(found["best_five"])
        assert (np.diff(best) >= 0).all() and best[-1] > 10 * best[4] > 0
        assert best.sum() * 20 == pytest.approx(5), "five of all labels on each row"


class TestNorms:
    def test_correlations_of_ranks(self):
        rng = np.random.default_rng(0)
        a, b, c = rng.integers(0, 9, (3, 200)).astype(float)
        assert weight_norms.rank_correlation(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-4)
        r = spearmanr(np.stack([a, b, c]), axis=1).statistic
        partial = (r[0, 1] - r[0, 2] * r[1, 2]) / np.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
        assert weight_norms.rank_correlation(a, b, c) == pytest.approx(partial, abs=1e-4)
        assert weight_norms.rank_correlation(a + c, c, c) == 0.0, "nothing is left of c"

    def test_rates_are_shares_of_rows(self):
        top = TopK(np.array([[0, 1], [0, -1]], np.int32), np.zeros((2, 2), np.float32))
        Y = sparse.csr_array(np.array([[1, 0, 0], [1, 1, 0]], np.float32))
        found = weight_norms.describe(np.array([5, 2, 0]), np.array([3.0, 1.0, 0.0]), top, Y, 2)["by_frequency"]
        assert found["frequency"] == [5, 2] and found["norm"] == [3, 1]
        assert found["rate"] == [100, 50] and found["true_rate"] == [100, 50]

    def test_equal_norms(self):
        rng = np.random.default_rng(0)
        X, Y = rng.random((40, 6)), np.eye(4)[rng.integers(0, 4, 40)]
        model = DiSMEC().fit(X, Y)
        scaled = weight_norms.with_equal_norms(model)
        np.testing.assert_allclose(classifier_norms(scaled), 1, rtol=1e-5)
        assert (classifier_norms(model) > 1).any(), "the model itself stays"
        one = model.predict_topk(X, 4).scores[0] / classifier_norms(model)[model.predict_topk(X, 4).labels[0]]
        np.testing.assert_allclose(np.sort(scaled.predict_topk(X, 4).scores[0]), np.sort(one), rtol=1e-4)
        cosine = weight_norms.with_equal_norms(model, bias=False).predict_topk(X, 1)
        weights = model.label_weights().toarray()
        angles = weights @ (X[0] / np.linalg.norm(X[0])) / np.linalg.norm(weights, axis=1)
        assert cosine.labels[0, 0] == angles.argmax() and cosine.scores[0, 0] == pytest.approx(angles.max(), rel=1e-4)

    def test_quick_run_says_the_same_for_any_number_of_jobs(self, tmp_path):
        small = {**weight_norms.choose("quick", {}), "models": [weight_norms.EQUAL, "Bonsai"], "repeats": 1}
        experiment = replace(load_experiment("norms"), choose=lambda size, options: small)
        done = run_experiment(experiment, tmp_path / "one", size="quick", n_jobs=1)
        run_experiment(experiment, tmp_path / "two", size="quick", n_jobs=2)
        for name in ("results.json", "results.csv", "norms.svg", "theorem.svg"):
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        at = {row["model"]: row for row in done.rows}
        assert at["Bonsai"]["norm, frequency"] > 0.5, "the paper's finding"
        assert abs(at[weight_norms.EQUAL]["norm, frequency"]) < 0.3
        assert "The rate grows with the norm" in done.findings[0]


class TestAugmentation:
    def test_variants_are_computed_once(self):
        settings = tail_augmentation.choose("default", {})
        variants = [cell for cell in tail_augmentation.cells(settings) if cell["repeat"] == 0]
        assert len(variants) == 3 + 3 + 3 + 3
        assert sum((c["n_aug"], c["tau"], c["kind"], c["rows"]) == (4, 0.1, "both", "own") for c in variants) == 1

    def test_quick_run_compares_every_variant(self, tmp_path):
        small = {**tail_augmentation.choose("quick", {}), "repeats": 1}
        done = run_experiment(
            replace(load_experiment("augmentation"), choose=lambda size, options: small), tmp_path / "out", size="quick"
        )
        at = {(r["rows"], r["n_aug"], r["tau"], r["kind"]): r for r in done.rows}
        assert at["own", 4, 0.1, "both"]["psp@1"] != at["own", 0, 0.1, "both"]["psp@1"]
        kinds = [at["own", 4, 0.1, kind]["psp@5"] for kind in tail_augmentation.KINDS]
        assert len(set(kinds)) == 4 and len(at) == len({json.dumps(row) for row in done.rows}) == 9
        assert {p.name for p in (tmp_path / "out").glob("*.svg")} == {"norms.svg", "sweeps.svg"}

    def test_kinds_change_one_thing_each(self):
        for kind, kept, swapped in (
            ("unchanged", 1.0, 0.0),
            ("dropout", 0.8, 0.0),
            ("swap", 1.0, 0.2),
            ("both", 0.8, 0.2),
        ):
            model = TailAugmented.as_published(Centroid(), **tail_augmentation.KINDS[kind])
            assert (model.keep_probability, model.swap, model.rows) == (kept, swapped, "own")


class TestDense:
    def test_quick_run_needs_neither_records_nor_an_encoder(self, tmp_path):
        small = {**dense_features.choose("quick", {}), "repeats": 1, "models": [["vectors", "Bonsai"]]}
        experiment = replace(load_experiment("dense"), choose=lambda size, options: small)
        done = run_experiment(experiment, tmp_path / "out", size="quick")
        at = {row["module"]: row for row in done.rows}
        assert at["alone"]["gain p@1"] == 0
        for row in done.rows:
            assert row["gain psp@5"] == pytest.approx(row["psp@5"] - at["alone"]["psp@5"], abs=0.002)
        assert {"RankNet", "RankNet as published", "Taug", "simple form + Taug", "Taug, dropout", "Taug, swap"} <= set(
            at
        )
        assert (tmp_path / "out" / "dense.svg").is_file()

    def test_records_become_rows(self, tmp_path, monkeypatch):
        class Lengths:
            def __init__(self, encoder):
                assert encoder == "minilm"

            def fit_transform(self, texts):
                return sparse.csr_array(np.array([[len(text), 1.0] for text in texts], np.float32))

        monkeypatch.setattr(dense_features, "SentenceVectors", Lengths)
        path = tmp_path / "records.jsonl"
        records = [
            {"title": "sea " * (1 + i), "abstract": "", "labels": ["a", "b"] if i % 2 else ["c"]} for i in range(8)
        ]
        records.append({"title": "alone", "abstract": "x", "labels": ["once"]})
        path.write_text("\n".join(map(json.dumps, records)))
        settings = {"seed": 0, **dense_features.choose("default", {"data": str(path)})}
        _, rows = dense_features.prepare(settings, 1)
        assert rows.Y.shape == (8, 3) and rows.vectors.shape == (8, 2), "a label on one record is left out"
        words = [len(text) for text in rows.words]
        assert words == rows.vectors.toarray()[:, 0].tolist() and sorted(words) == list(range(4, 36, 4))
        train, judged = dense_features._features(rows, "words", np.arange(6), np.arange(6, 8))
        assert train.shape[0] == 6 and judged.shape[1] == train.shape[1]

    def test_absent_records_are_refused(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(InvalidInput, match=r"data='' is no file of records; pass --data FILE"):
            dense_features.prepare({"seed": 0, **dense_features.choose("default", {})}, 1)


def test_shared_fits_are_those_of_the_model_itself():
    rng = np.random.default_rng(0)
    X, Y = rng.random((30, 5)), np.eye(3)[rng.integers(0, 3, 30)]
    shared = share_fits(Centroid())
    one, two = (PropensityReranker(shared, tail=tail).fit(X, Y) for tail in (0.0, 1.0))
    assert one.base_.base_ is two.base_.base_
    other = PropensityReranker(shared).fit(X[:20], Y[:20])
    assert other.base_.base_ is not one.base_.base_
    expected = PropensityReranker(Centroid()).fit(X, Y).predict_topk(X, 2)
    np.testing.assert_array_equal(two.predict_topk(X, 2).scores, expected.scores)
    np.testing.assert_array_equal(two.predict_topk(X[:5], 2).scores, expected.scores[:5])
