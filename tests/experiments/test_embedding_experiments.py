"""The experiments on embeddings: the theorems' constructions, and quick runs that compute what they say."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

torch = pytest.importorskip("torch")

from tailwise.embedding import GLaS  # noqa: E402
from tailwise.experiments import bottleneck, embeddings, glas_settings, overfitting  # noqa: E402
from tailwise.experiments.catalogue import load_experiment  # noqa: E402
from tailwise.experiments.running import run_experiment  # noqa: E402


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(0)
    Y = (rng.random((300, 40)) < 0.06).astype(np.float32)
    Y[np.arange(300), rng.integers(40, size=300)] = 1
    return sparse.csr_array(Y)


class TestSeparation:
    def test_it_counts_as_a_loop_over_rows_does(self, labels, monkeypatch):
        monkeypatch.setattr(bottleneck, "_ROWS_AT_ONCE", 37)
        scores = np.random.default_rng(1).standard_normal(labels.shape).astype(np.float32) + 2 * labels.toarray()
        found = bottleneck.separation(labels, lambda rows: scores[rows])
        first = all_first = 0
        lowest, highest = [], []
        for values, own in zip(scores, labels.toarray() > 0, strict=True):
            first += own[values.argmax()]
            all_first += values[own].min() > values[~own].max()
            lowest.append(values[own].min())
            highest.append(values[~own].max())
        assert found == pytest.approx((first / 3, all_first / 3, min(lowest), max(highest)))

    def test_equal_scores_are_no_separation(self, labels):
        found = bottleneck.separation(labels, lambda rows: np.zeros((rows.stop - rows.start, 40)))
        assert found.all_first == 0


class TestTheorem:
    def shared(self, labels):
        return bottleneck.Shared({}, None, labels, np.arange(labels.shape[0]))

    def test_the_construction_scores_rows_as_sums_of_label_vectors(self, labels, monkeypatch):
        V = bottleneck.random_vectors(40, 24, np.random.default_rng(3))
        np.testing.assert_allclose(np.linalg.norm(V, axis=1), 1, rtol=1e-6)
        seen = {}
        separation = bottleneck.separation
        monkeypatch.setattr(
            bottleneck,
            "separation",
            lambda Y, scores: seen.update(scores=scores(slice(0, 300))) or separation(Y, scores),
        )
        found = bottleneck._draw_labels(self.shared(labels), 24, np.random.default_rng(3))
        rows = labels.toarray() @ V
        np.testing.assert_allclose(seen["scores"], rows @ V.T, atol=1e-4)
        assert found["longest"] == pytest.approx(np.linalg.norm(rows, axis=1).max(), rel=1e-5)

    def test_its_statements_hold_in_the_dimension_it_asks_for(self, labels):
        found = bottleneck._draw_labels(self.shared(labels), 0, np.random.default_rng(0))
        most = int(np.diff(labels.indptr).max())
        assert found["used_dim"] == bottleneck.dimension_enough(300, 40, most, every_label=True)
        assert found["lowest"] >= 2 / 3 and found["highest"] <= 1 / 3
        assert found["first"] == found["all_first"] == 100
        assert found["nearest_pair"] <= found["nearest_pair_bound"] and found["longest"] <= found["longest_bound"]

    def test_few_dimensions_are_not_enough(self, labels):
        found = bottleneck._draw_labels(self.shared(labels), 4, np.random.default_rng(0))
        assert found["all_first"] < 50

    def test_random_rows_give_labels_with_geometric_means_of_their_frequencies(self, labels):
        """Theorem B.1: the more dimensions, the nearer; its two first properties hold for rows as unit vectors."""
        off = [
            bottleneck._draw_rows(self.shared(labels), dim, np.random.default_rng(0))["off"] for dim in (16, 256, 4096)
        ]
        assert off[0] > off[1] > off[2] and off[2] < 0.1
        Y = labels.toarray()
        counts = Y.sum(0)
        V = Y / np.sqrt(counts)  # a column is a label's vector where row i is the i-th unit vector
        A = Y.T @ Y
        np.testing.assert_allclose(V.T @ V, np.sqrt((A / counts) * (A / counts[:, None])), atol=1e-5)
        np.testing.assert_allclose(V[Y > 0], 1 / np.sqrt(counts)[np.nonzero(Y)[1]], rtol=1e-6)


class TestRuns:
    def test_bottleneck(self, tmp_path):
        small = {
            **bottleneck.choose("quick", {}),
            "dims": [16, 128],
            "draws": 1,
            "trained_dims": [2, 24],
            "epochs": 5,
        }
        experiment = replace(load_experiment("bottleneck"), choose=lambda size, options: small)
        done = run_experiment(experiment, tmp_path / "out", size="quick")
        at = {(row["part"], row["dim"]): row for row in done.rows}
        assert at["random", 128]["first"] > at["random", 16]["first"]
        assert at["trained", 24]["first"] > at["trained", 2]["first"]
        assert at["trained", 24]["first"] > at["trained", 24]["test"]
        assert any(row["all_first"] == 100 for row in done.rows if row["part"] == "random")
        assert (done.folder / "bottleneck.svg").is_file()

    def test_overfitting_has_the_same_bytes_for_any_number_of_jobs(self, tmp_path):
        small = {
            **overfitting.choose("quick", {}),
            "base": {"dim": 8, "epochs": 2, "batch_size": 64},
            "losses": ["negative_mining"],
        }
        experiment = replace(load_experiment("overfitting"), choose=lambda size, options: small)
        done = run_experiment(experiment, tmp_path / "one", size="quick", n_jobs=1)
        run_experiment(experiment, tmp_path / "two", size="quick", n_jobs=2)
        for name in ("results.json", "results.csv", "overfitting.svg"):
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        assert [(row["setting"], row["epoch"]) for row in done.rows] == [
            (name, epoch) for name in overfitting.REGULARISED for epoch in (1, 2)
        ]
        assert {row["loss"] for row in done.rows} == {"negative_mining"}
        assert all(row["gap"] == pytest.approx(row["train"] - row["test"], abs=1e-3) for row in done.rows)

    def test_settings_are_varied_one_at_a_time(self, tmp_path):
        small = {
            **glas_settings.choose("quick", {}),
            "repeats": 2,
            "base": {"dim": 6, "epochs": 1, "batch_size": 256},
            "varied": {"regularizer": [None, "glas"], "dim": [4, 6]},
        }
        experiment = replace(load_experiment("glas"), choose=lambda size, options: small)
        done = run_experiment(experiment, tmp_path / "out", size="quick")
        assert done.computed == 2 * 3  # the base, no regulariser, d = 4
        assert [(row["varied"], row["value"], row["base"]) for row in done.rows] == [
            ("regularizer", "None", False),
            ("regularizer", "glas", True),
            ("dim", "4", False),
            ("dim", "6", True),
        ]
        assert done.rows[1]["p@1"] == done.rows[3]["p@1"]


def test_the_paper_table_is_varied_in_full():
    varied = glas_settings.choose("full", {})["varied"]
    assert varied["reg_weight"][:3] == [1, 10, 100] and varied["dim"] == [256, 512, 1024]
    assert varied["batch_size"] == [1024, 2048, 4096] and varied["input_keep_probability"] == [1, 0.8, 0.6]
    base = GLaS.as_published(**glas_settings.choose("full", {})["base"]).get_params()
    assert all(base[name] in values for name, values in varied.items())


def test_watched_accuracy_is_that_of_the_fitted_model():
    data = embeddings.load_rows({"dataset": "synthetic", "seed": 0}, 1)
    some = data.X_train[:50], data.Y_train[:50]
    model = overfitting.WatchedGLaS(8, epochs=2, early_stopping=False, random_state=0, n_jobs=1).watching(some=some)
    model.fit(data.X_train, data.Y_train)
    assert len(model.seen["some"]) == 2
    assert model.seen["some"][-1] == pytest.approx(embeddings.accuracy(model, *some))
    assert embeddings.judged(model, data)["train"] == pytest.approx(
        embeddings.accuracy(model, data.X_train, data.Y_train)
    )
