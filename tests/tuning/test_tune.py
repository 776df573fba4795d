"""Settings chosen by data: what is found, that it goes on, and what is refused."""

import json
from html.parser import HTMLParser
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from tailwise import (
    Centroid,
    DiSMEC,
    Ensemble,
    NearestRows,
    PropensityReranker,
    Sublinear,
    evaluate,
    make_longtail,
    tune,
)
from tailwise.errors import InvalidInput
from tailwise.ranges import OneOf, Range
from tailwise.tuning.compositions import own_ranges, with_parameters
from tailwise.tuning.rungs import FACTOR, ladder


@pytest.fixture(scope="module")
def data():
    return make_longtail(700, 300, 40, random_state=3)


def search(data, model=None, **options):
    options = {"parameters": {"k": (1, 60)}, "n_trials": 8} | options
    return tune(model or NearestRows(), data.X_train, data.Y_train, **options)


def facts(found):
    return [trial._replace(seconds=0) for trial in found.trials]


def test_the_first_trial_is_the_model_as_it_is_and_the_best_is_the_best(data):
    found = search(data, metric="p@1")
    assert found.trials[0].parameters == {"k": NearestRows().k}
    assert found.trials[found.best].values[-1] == max(trial.values[-1] for trial in found.trials if trial.whole)
    assert found.gain >= 0
    assert found.model.get_params()["k"] == found.parameters["k"]
    assert found.intervals[found.best][0] <= found.trials[found.best].values[-1] <= found.intervals[found.best][1]


def test_it_finds_what_a_grid_finds(data):
    from tailwise.data.splitting import split_rows

    split = split_rows(data.Y_train, 0.2, random_state=0)
    grid = {}
    for k in (1, 2, 4, 8, 16, 32, 60):
        model = NearestRows(k).fit(data.X_train[split.train], data.Y_train[split.train])
        top = model.predict_topk(data.X_train[split.test], 5)
        grid[k] = evaluate(data.Y_train[split.test], top, "p@5", confidence=None)["p@5"].value
    found = search(data, n_trials=20)
    assert found.trials[found.best].values[-1] >= max(grid.values()) - 0.5


def test_the_same_number_gives_the_same_trials(data):
    assert facts(search(data)) == facts(search(data))


def test_an_interrupted_search_comes_to_the_same_trials(data, tmp_path):
    path = tmp_path / "search.jsonl"
    search(data, n_trials=3, study=path)
    lines = path.read_text().splitlines()
    assert len(lines) == 4
    with path.open("a") as half:
        half.write(lines[-1][:20])  # what a killed run leaves
    tried = []
    found = search(data, study=path, on_trial=tried.append)
    assert [trial.number for trial in tried] == [3, 4, 5, 6, 7]
    assert facts(found) == facts(search(data))
    assert facts(search(data, study=path, on_trial=tried.append)) == facts(found)
    assert len(tried) == 5


def test_a_study_of_something_else_is_refused(data, tmp_path):
    path = tmp_path / "search.jsonl"
    search(data, n_trials=1, study=path)
    with pytest.raises(InvalidInput, match=r"another search: its metric is 'p@5', not 'psp@5'"):
        search(data, metric="psp@5", study=path)
    path.write_text("no journal\n")
    with pytest.raises(InvalidInput, match=r"search\.jsonl:1: this is no line of a search"):
        search(data, study=path)
    assert path.read_text() == "no journal\n"


def test_a_damaged_trial_is_refused_with_its_line(data, tmp_path):
    path = tmp_path / "search.jsonl"
    search(data, n_trials=2, study=path)
    lines = path.read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | {"parameters": {"k": "many"}})
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InvalidInput, match=r"search\.jsonl:2: this is no trial of the search"):
        search(data, study=path)


def test_no_more_is_lost_than_may_be(data):
    model = PropensityReranker(NearestRows(), tail=0.0)
    ranges = {"tail": (0.0, 1.0)}
    free = search(data, model, parameters=ranges, metric="psp@5", n_trials=10)
    held = search(data, model, parameters=ranges, metric="psp@5", max_loss={"p@1": 0.5}, n_trials=10)
    assert held.trials[held.best].lost["p@1"] <= 0.5
    assert held.trials[held.best].values[-1] <= free.trials[free.best].values[-1]
    assert any(trial.lost["p@1"] > 0.5 for trial in held.trials)


def test_minutes_end_a_search_after_the_model_as_it_is(data):
    assert len(search(data, minutes=0).trials) == 1


def test_parameters_of_models_within_models():
    model = Ensemble([Sublinear(DiSMEC()), NearestRows()])
    ranges = own_ranges(model)
    assert {"members__0__power", "members__0__base__C", "members__1__k"} <= set(ranges)
    assert ranges["members__0__base__C"] == Range(1 / 16, 16.0, 1.0, log=True)
    changed = with_parameters(model, {"members__0__base__C": 2.0, "members__1__k": 7})
    assert changed.members[0].base.C == 2.0
    assert changed.members[1].k == 7
    assert model.members[0].base.C is None


def test_a_composition_is_tuned_through_its_parts(data):
    ranges = {"members__0__power": (0.2, 1.0), "members__1__k": [5, 30]}
    model = Ensemble([Sublinear(Centroid()), NearestRows()], random_state=0)
    found = search(data, model, parameters=ranges, n_trials=9)
    assert found.ranges["members__1__k"] == OneOf((5, 30), 30)
    assert found.model.members[1].k == found.parameters["members__1__k"]
    assert set(found.importance) == set(ranges)
    assert sum(found.importance.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parameters": {"kk": (1, 2)}}, "'kk', which is none of the model's; did you mean 'k'"),
        ({"parameters": {"k": (5, 2)}}, r"pass \(low, high\), two numbers, the lower one first"),
        ({"parameters": {"k": (0, 5)}}, r"k=0 is outside \[1, inf\)"),
        ({"parameters": {"k": []}}, "a list of values"),
        ({"parameters": {"n_jobs": None}}, "has no range; pass one"),
        ({"parameters": []}, "parameters is empty"),
        ({"metric": "precision"}, "metric"),
        ({"max_loss": {"p@1": -1}}, "max_loss"),
        ({"n_trials": 0}, "n_trials=0"),
    ],
)
def test_what_is_wrong_is_refused_before_any_fit(data, options, message, monkeypatch):
    monkeypatch.setattr(NearestRows, "fit", lambda *_: pytest.fail("it was fitted"))
    with pytest.raises(InvalidInput, match=message):
        search(data, **options)


def test_a_model_that_finds_nothing_worth_trying_says_so(data):
    with pytest.raises(InvalidInput, match="Centroid does not say what is worth trying"):
        tune(Centroid(), data.X_train, data.Y_train)


def test_rungs_hold_one_another():
    Y = make_longtail(20_000, 50, 3_000, random_state=0).Y_train
    order = np.random.default_rng(1).permutation(Y.shape[0])
    rungs = ladder(Y, np.sort(order[3000:]), np.sort(order[:3000]), np.random.default_rng(0))
    assert len(rungs) > 1
    assert rungs[-1].labels.size == Y.shape[1]
    assert rungs[-1].rows.size == Y.shape[0] - 3000
    for lower, upper in pairwise(rungs):
        assert np.isin(lower.rows, upper.rows).all()
        assert np.isin(lower.labels, upper.labels).all()
        assert upper.rows.size / lower.rows.size == pytest.approx(FACTOR, rel=0.01)
    for rung in rungs[:-1]:
        assert (np.diff(rung.matrices(Y, Y)[3].indptr) > 0).all()


class _Open(HTMLParser):
    def __init__(self):
        super().__init__()
        self.charts = 0

    def handle_starttag(self, tag, attrs):
        self.charts += tag == "svg"


def test_the_page_has_a_plot_of_what_mattered_and_of_each_parameter(data):
    found = search(data, parameters={"k": None, "sharpness": None}, n_trials=9)
    parser = _Open()
    parser.feed(found.page())
    assert parser.charts == 3
    assert "as it was" in str(found)


def test_time_is_left_for_the_fit_that_follows(data, monkeypatch):
    clock = iter(range(0, 10**6, 5))
    # Of that module alone: threads look at the clock of all, when they like.
    monkeypatch.setattr("tailwise.tuning.search.time", SimpleNamespace(monotonic=lambda: next(clock)))
    alone, then_fit = (search(data, n_trials=50, minutes=2, then_fit=after) for after in (False, True))
    # A trial takes 5 s and a look at the clock as long; 5 s more are for the last trial, and 6.25 for the fit.
    assert 1 < len(then_fit.trials) < len(alone.trials) < 50
