import csv
import json

import pytest

from tailwise.errors import InvalidInput
from tailwise.experiments.plotting import line, make_figure
from tailwise.experiments.running import Experiment, Summary, run_experiment


class Counted:
    """A small experiment that counts what it computes and can be stopped."""

    def __init__(self, stop_after=None, at_once=False):
        self.computed, self.prepared, self.stop_after = [], 0, stop_after
        self.experiment = Experiment(
            "squares",
            "What is a square?",
            lambda size, options: {"n": 4, **options},
            lambda settings: [{"x": x, "kind": "a/b c"} for x in range(settings["n"])],
            self.prepare,
            self.compute,
            self.summarise,
            options=("n",),
            cells_at_once=at_once,
        )

    def prepare(self, settings, n_jobs):
        self.prepared += 1
        return settings["seed"]

    def compute(self, shared, cell, n_jobs):
        if len(self.computed) == self.stop_after:
            raise KeyboardInterrupt
        self.computed.append(cell["x"])
        return {"y": cell["x"] ** 2 + shared, "gone": float("nan")}

    def summarise(self, settings, results, prepared):
        figure, axes = make_figure(1, 1)
        line(axes[0, 0], 0, [r["x"] for r in results], [r["y"] for r in results], label="squares")
        return Summary([{"x": r["x"], "y": r["y"]} for r in results], [f"{len(results)} squares"], {"plot": figure})


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_writes_results_table_and_plots(tmp_path):
    done = run_experiment(Counted().experiment, tmp_path / "out", seed=1)
    assert done.findings == ["4 squares"] and done.computed == 4
    results = json.loads((tmp_path / "out/results.json").read_text())
    assert results["experiment"] == "squares" and results["seed"] == 1
    assert results["cells"][2] == {"x": 2, "kind": "a/b c", "y": 5, "gone": None}
    with (tmp_path / "out/results.csv").open() as file:
        assert list(csv.DictReader(file))[3] == {"x": "3", "y": "10"}
    assert (tmp_path / "out/plot.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "out/plot.svg").read_bytes()


@pytest.mark.parametrize("at_once", [False, True])
def test_a_stopped_run_goes_on_and_ends_the_same(tmp_path, at_once):
    run_experiment(Counted().experiment, tmp_path / "whole", n_jobs=1)
    stopped = Counted(stop_after=2, at_once=at_once)
    with pytest.raises(KeyboardInterrupt):
        run_experiment(stopped.experiment, tmp_path / "parts", n_jobs=1)
    assert len(list((tmp_path / "parts/cells").iterdir())) == 2
    (tmp_path / "parts/cells/x=0,kind=a_b_c.json").write_text('{"x": 0, "y')
    again = Counted(at_once=at_once)
    assert run_experiment(again.experiment, tmp_path / "parts", n_jobs=2).computed == 3
    assert sorted(again.computed) == [0, 2, 3] and again.prepared == 1
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    nothing_left = Counted()
    assert run_experiment(nothing_left.experiment, tmp_path / "parts").computed == 0
    assert nothing_left.prepared == 0


def test_a_folder_belongs_to_one_run(tmp_path):
    run_experiment(Counted().experiment, tmp_path / "out")
    with pytest.raises(InvalidInput, match=r"holds a run with seed=0, but this one has seed=3; choose another folder"):
        run_experiment(Counted().experiment, tmp_path / "out", seed=3)
    with pytest.raises(InvalidInput, match=r"size='default'.*size='quick'"):
        run_experiment(Counted().experiment, tmp_path / "out", size="quick")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("do not touch")
    with pytest.raises(InvalidInput, match="holds no experiment; choose another folder"):
        run_experiment(Counted().experiment, tmp_path / "mine")


def test_wrong_arguments(tmp_path):
    with pytest.raises(InvalidInput, match="size='huge' is not one of 'quick', 'default', 'full'"):
        run_experiment(Counted().experiment, tmp_path / "out", size="huge")
    with pytest.raises(InvalidInput, match="squares has no option 'm'; it takes: n"):
        run_experiment(Counted().experiment, tmp_path / "out", m=1)
    assert not (tmp_path / "out").exists()
