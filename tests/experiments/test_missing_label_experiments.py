import gzip
import json
import struct
from dataclasses import replace

import numpy as np
import pytest

from tailwise.cli import main
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.experiments import label_dropping, loss_correction
from tailwise.experiments.catalogue import QUESTIONS, load_experiment
from tailwise.experiments.running import SIZES, run_experiment


@pytest.mark.parametrize("name", QUESTIONS)
def test_cells_have_names_and_settings_are_plain(name):
    experiment = load_experiment(name)
    assert (experiment.name, experiment.question) == (name, QUESTIONS[name])
    for size in SIZES:
        settings = {"size": size, "seed": 0, **experiment.choose(size, {})}
        assert json.loads(json.dumps(settings)) == settings
        cells = experiment.cells(settings)
        assert len({json.dumps(cell) for cell in cells}) == len(cells) > 0


def test_unknown_names_are_refused():
    with pytest.raises(InvalidInput, match="experiment='los' is not one of 'losses', 'dropping', 'guess'"):
        load_experiment("los")


@pytest.fixture
def digits(monkeypatch, tmp_path):
    """No MNIST at hand: scikit-learn's digits."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)


class TestLosses:
    def test_same_bytes_for_any_number_of_jobs_and_the_claim(self, digits, tmp_path, monkeypatch):
        small = {
            "rows": 300,
            "test_rows": 300,
            "propensities": [0.3, 1.0],
            "repeats": 1,
            "hidden": 16,
            "learning_rate": 0.01,
        }
        quick = loss_correction.choose("quick", {})
        monkeypatch.setattr("tailwise.experiments.loss_correction.LOSSES", ("cross_entropy", "squared_error"))
        experiment = replace(load_experiment("losses"), choose=lambda size, options: {**quick, **small})
        done = run_experiment(experiment, tmp_path / "one", size="quick", n_jobs=1)
        run_experiment(experiment, tmp_path / "two", size="quick", n_jobs=2)
        for name in ("results.json", "results.csv", "losses.png", "losses.svg"):
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        assert "digits" in done.findings[0]
        at = {(r["loss"], r["correction"], r["propensity"]): r for r in done.rows}
        assert at["cross_entropy", "unbiased", 0.3]["accuracy"] > at["cross_entropy", "none", 0.3]["accuracy"]
        same = [at["cross_entropy", correction, 1.0]["accuracy"] for correction in loss_correction.CORRECTIONS]
        assert same[0] == same[1] == same[2]

    def test_mnist_is_read_from_its_files(self, digits, tmp_path):
        rng = np.random.default_rng(0)
        images, labels = rng.integers(0, 256, (5, 4, 4), np.uint8), np.array([3, 1, 4, 1, 5], np.uint8)
        folder = tmp_path / "mnist"
        folder.mkdir()
        for part in ("train", "t10k"):
            with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb") as file:
                file.write(struct.pack(">4B3I", 0, 0, 8, 3, 5, 4, 4) + images.tobytes())
            (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, 5) + labels.tobytes())
        found = loss_correction.load_images()
        assert found.name == "MNIST"
        np.testing.assert_allclose(found.X.toarray(), images.reshape(5, 16) / 255, rtol=1e-6)
        assert found.Y_test.indices.tolist() == [3, 1, 4, 1, 5]

        (folder / "t10k-labels-idx1-ubyte").write_bytes(struct.pack(">4BI", 0, 0, 8, 1, 5) + b"\x01\x02")
        with pytest.raises(DataFormatError, match=r"10 bytes .* expected a whole idx file"):
            loss_correction.load_images("mnist")
        (folder / "t10k-labels-idx1-ubyte").unlink()
        with pytest.raises(InvalidInput, match="lacks t10k-labels-idx1-ubyte"):
            loss_correction.load_images("mnist")
        with pytest.raises(InvalidInput, match="data='nowhere' is not a folder"):
            loss_correction.load_images("nowhere")


class TestDropping:
    @pytest.fixture(scope="class")
    @classmethod
    def done(cls, tmp_path_factory):
        return run_experiment(load_experiment("dropping"), tmp_path_factory.mktemp("x") / "out", size="quick")

    def test_scored_estimates_are_unbiased_and_plain_ones_are_not(self, done):
        judging = [r for r in done.rows if r["part"] == "judging"]
        assert len(judging) == 2 * len(label_dropping.ESTIMATES)
        for row in judging:
            error = row["sd"] / np.sqrt(row["n"])
            off = abs(row["mean"] - row["truth"])
            if row["what"] == "plain" or (row["metric"] == "ndcg@3" and row["what"] == "scored"):
                assert off > 5 * error
            else:
                assert off < 4 * error

    def test_every_training_is_in_the_table(self, done):
        what = {r["what"] for r in done.rows if r["part"] == "training"}
        assert {"forest, told nothing", "forest, told 0.55", "forest, told observed", "forest, told 0.25"} <= what
        assert all(
            (done.folder / f"{name}.{suffix}").is_file()
            for name in ("judging", "training")
            for suffix in ("png", "svg")
        )


class TestCommand:
    def test_guess_ranks_models_over_the_grid(self, tmp_path, capsys):
        assert main(["experiment", "guess", "--quick", "--output", str(tmp_path / "out"), "--json"]) == 0
        out, err = capsys.readouterr()
        done = json.loads(out)
        assert len(done["table"]) == 30 * 15
        assert {"a", "b", "winner", "sure", "Popularity", "Centroid"} <= set(done["table"][0])
        assert "it stays best for A in" in done["findings"][0]
        assert "computed 4 cells" in err
        assert {"results.json", "results.csv", "guess.png", "guess.svg"} <= {
            p.name for p in (tmp_path / "out").iterdir()
        }

        assert main(["experiment", "guess", "--quick", "--output", str(tmp_path / "out")]) == 0
        out, err = capsys.readouterr()
        assert done["findings"][0] in out and "computed 0 cells" in err

    def test_names_are_listed_and_wrong_ones_refused(self, capsys):
        assert main(["experiment"]) == 0
        listed = capsys.readouterr().out
        assert all(name in listed and question in listed for name, question in QUESTIONS.items())
        assert main(["experiment", "los"]) == 3
        assert "is not one of 'losses', 'dropping', 'guess'" in capsys.readouterr().err
        assert main(["experiment", "losses", "--quick", "--full"]) == 3
        assert "exclude each other" in capsys.readouterr().err


class TestLoop:
    def test_same_bytes_for_any_number_of_jobs_and_answers_are_learnt(self, tmp_path):
        pytest.importorskip("sqlalchemy")
        from tailwise.experiments import loop

        small = {**loop.choose("quick", {}), "rounds": 2, "questions": 60}
        experiment = replace(load_experiment("loop"), choose=lambda size, options: small)
        done = run_experiment(experiment, tmp_path / "one", size="quick", n_jobs=1)
        run_experiment(experiment, tmp_path / "two", size="quick", n_jobs=2)
        for name in ("results.json", "results.csv", "loop.svg"):
            assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        assert [row["answers"] for row in done.rows] == [0, 60, 120]
        assert done.rows[0]["p head"] is None and 0 < done.rows[1]["true p tail"] < done.rows[1]["true p head"] < 1
        assert done.rows[2]["labels added"] > done.rows[1]["labels added"] > 0
        assert 0 < done.rows[1]["learnt again"] < 150  # labels without a loss stay as they are
