"""Ours beside the published figures."""

import csv
import io
import pkgutil
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher

import tailwise
from tailwise import kernels, make_longtail
from tailwise.cli import main
from tailwise.errors import DownloadError, InvalidInput
from tailwise.experiments import reproduce as work
from tailwise.experiments.methods import METHODS, Method, select


@pytest.fixture(scope="module")
def data():
    small = make_longtail(400, 200, 60, random_state=0)
    small.name = "EURLex-4K"
    return small


@pytest.fixture(scope="module")
def rows(data):
    published = Method("Centroid", tailwise.Centroid, "DiSMEC")
    return work.reproduce(data, [*select(["popularity"]), published])


def test_rows_hold_metrics_costs_and_the_published_figures(rows):
    popular, centroid = rows
    assert popular.published == {}
    assert centroid.published["p@1"] == 82.4
    assert centroid.difference("p@1") == pytest.approx(centroid.values["p@1"] - 82.4)
    assert popular.difference("p@1") is None
    assert centroid.train_seconds > 0
    assert centroid.peak_mb > 10


def test_the_values_are_those_of_evaluate(data, rows):
    topk = tailwise.Centroid().fit(data.X_train, data.Y_train).predict_topk(data.X_test, 5)
    propensity = tailwise.JainPropensity().fit(data.Y_train)
    expected = tailwise.evaluate(data.Y_test, topk, ["psp@3"], propensity=propensity, confidence=None)
    assert rows[1].values["psp@3"] == pytest.approx(expected["psp@3"].value)


def test_the_three_tables_say_the_same(rows, tmp_path):
    markdown, plain, html = (path.read_text() for path in work.write_tables(tmp_path, "A title", rows))
    assert markdown.startswith("# A title\n\n| method |")
    assert "| published | 82.4 |" in markdown
    found = list(csv.DictReader(io.StringIO(plain)))
    assert [row["method"] for row in found] == ["Popularity", "Centroid"]
    assert float(found[1]["psp@3"]) == pytest.approx(rows[1].values["psp@3"], abs=1e-4)
    assert found[1]["published p@1"] == "82.4"
    assert "<h1>A title</h1>" in html
    assert html.count("<tr>") == sum(1 + len(table.rows) for table in work.tables("", rows))


def test_rows_are_kept_as_they_come(data):
    seen = []
    work.reproduce(data, select(["popularity", "centroid"]), on_row=lambda rows: seen.append(len(rows)))
    assert seen == [1, 2]


class Compiled:
    """A model whose first use takes 100 s more than the later ones, by the clock it is given."""

    def __init__(self, clock, used):
        self.clock, self.used = clock, used

    def _work(self, what, rows, seconds):
        first = what not in {name for name, _ in self.used}
        self.used.append((what, rows))
        self.clock.now += seconds + 100 * first

    def fit(self, X, Y):
        self._work("fit", X.shape[0], 3)
        return self

    def predict_topk(self, X, k):
        self._work("predict", X.shape[0], 0.1)
        return tailwise.TopK(np.zeros((X.shape[0], k), np.int32) - 1, np.full((X.shape[0], k), -np.inf, np.float32))


def test_times_are_those_of_compiled_code_and_compiling_is_told_apart(monkeypatch, data):
    clock, used = SimpleNamespace(now=0.0), []
    ticking = SimpleNamespace(perf_counter=lambda: clock.now, process_time=lambda: clock.now)
    monkeypatch.setattr("tailwise.measure.time", ticking)
    (row,) = work.reproduce(data, [Method("Compiled", lambda: Compiled(clock, used))])
    few = min(work.WARM_UP_ROWS, data.n_train)
    assert used == [("fit", few), ("predict", few), ("fit", data.n_train), ("predict", data.n_test)]
    assert row.compile_seconds == pytest.approx(203.1)
    assert row.train_seconds == row.train_cpu_seconds == pytest.approx(3)
    assert row.ms_a_row == pytest.approx(1000 * 0.1 / data.n_test)


def signatures():
    """For which types each kernel is compiled in this process."""
    modules = [import_module(found.name) for found in pkgutil.walk_packages(kernels.__path__, "tailwise.kernels.")]
    functions = {f for module in modules for f in vars(module).values() if isinstance(f, Dispatcher)}
    return {(f.__module__, f.__name__, str(types)) for f in functions for types in f.signatures}


@pytest.mark.parametrize("method", select(demo=True), ids=lambda method: method.name)
def test_a_few_rows_compile_all_that_the_others_need(method):
    many = make_longtail(1200, 400, 600, random_state=0)
    work._use_on_few_rows(method.make(), many.X_train, many.Y_train)
    before = signatures()
    method.make().fit(many.X_train, many.Y_train).predict_topk(many.X_test, 5)
    assert signatures() == before


def test_data_without_test_rows_are_refused(data):
    with pytest.raises(InvalidInput, match="no test rows"):
        work.reproduce(replace(data, X_test=None, Y_test=None, Y_test_complete=None), select(["popularity"]))


def test_the_demo_is_a_part_of_the_table():
    assert {method.name for method in select(demo=True)} == {m.name for m in METHODS if m.demo}
    assert select() == list(METHODS)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_makes_an_unfitted_model_with_a_seed(method):
    model = method.make()
    assert isinstance(model, tailwise.XMCModel)
    assert all(value == 0 for name, value in model.get_params().items() if name.endswith("random_state"))


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInput, match=r"'gradient' is not known; choose from Popularity"):
        select(["gradient"])


def test_without_the_dataset_the_demo_says_what_stands_in(monkeypatch):
    def fail(name):
        raise DownloadError("no index can be reached")

    monkeypatch.setattr(work, "load_dataset", fail)
    stand_in, note = work.demo_dataset()
    assert stand_in.n_labels == 2000
    assert "no index can be reached" in note
    assert "synthetic" in note


def test_the_command_prints_and_writes_the_table(monkeypatch, tmp_path, capsys, data):
    monkeypatch.setattr(work, "demo_dataset", lambda: (data, "a stand-in"))
    assert main(["reproduce", "--demo", "--methods", "popularity,centroid", "-o", str(tmp_path / "out")]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0].split()[:3] == ["method", "P@1", "P@3"]
    assert "note: a stand-in" in captured.err
    assert sum(line.startswith("compiling took ") for line in captured.err.splitlines()) == 1
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["table.csv", "table.html", "table.md"]


def write_xmc(path, X, Y):
    lines = [f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}"]
    for x, y in zip(X.toarray(), Y.toarray(), strict=True):
        entries = " ".join(f"{j}:{x[j]:.6g}" for j in np.flatnonzero(x))
        lines.append(",".join(map(str, np.flatnonzero(y))) + " " + entries)
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_files_that_the_user_names_stand_beside_the_figures_of_the_data_set(tmp_path, data):
    train = write_xmc(tmp_path / "some-train.txt", data.X_train, data.Y_train)
    test = write_xmc(tmp_path / "some-test.txt", data.X_test, data.Y_test)
    out = tmp_path / "out"
    named = ["--dataset", "bibtex", "--train", train, "--test", test]
    assert main(["reproduce", *named, "--methods", "nearestrows,leml,ml-cssp", "-o", str(out)]) == 0
    with (out / "table.csv").open() as file:
        found = {row["method"]: row["published p@1"] for row in csv.DictReader(file)}
    assert found == {"NearestRows": "57.04", "LEML": "62.54", "ML-CSSP": "44.98"}


def test_a_test_file_without_a_training_file_is_refused(tmp_path, capsys):
    assert main(["reproduce", "--dataset", "bibtex", "--test", str(tmp_path / "test.txt")]) != 0
    assert "name the training file too, by --train" in capsys.readouterr().err
