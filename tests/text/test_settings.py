"""What is left of the time that training may take goes into settings."""

import re

import numpy as np
import pytest

from tailwise import Bonsai, Columns, DiSMEC, NearestRows, PropensityReranker, Stacked, Tagger, make_longtail
from tailwise.by_size import BySize
from tailwise.errors import InvalidInput, MissingExtra, import_extra
from tailwise.text import effort, settings
from tailwise.text.effort import Plan
from tailwise.text.settings import choose_settings

SMALL = BySize(one_vs_rest=NearestRows(), tree=NearestRows())


@pytest.fixture(scope="module")
def data():
    return make_longtail(500, 200, 30, test_fraction=0, random_state=3)


def train(data, n_trials, monkeypatch, **options):
    told = []
    monkeypatch.setattr(settings, "_MOST_TRIALS", n_trials)
    tagger = Tagger(SMALL, effort="quick", minutes=5, **options)
    return tagger.fit(data.X_train, data.Y_train, on_step=lambda *step: told.append(step)), told


def test_settings_are_tried_told_and_trained_with(data, monkeypatch):
    tagger, told = train(data, 6, monkeypatch, calibrate=False)
    tried = [what for name, what in told if name == "settings"]
    assert [line.partition(":")[0] for line in tried[:-1]] == [f"trial {number}" for number in range(6)]
    assert "of 6 tried on rows held out: k " in tried[-1]
    assert told[-1][0] == "training"
    assert (tagger.model_.k, tagger.model_.sharpness) != (30, 1.0)
    assert f"k {tagger.model_.k}" in tried[-1]
    again, _ = train(data, 6, monkeypatch, calibrate=False)
    for one, other in zip(*(model.predict_topk(data.X_train) for model in (tagger, again)), strict=True):
        np.testing.assert_array_equal(one, other, "the same number of trials, the same model")


def test_rare_labels_choose_by_psp_and_tail_is_not_tried(data, monkeypatch):
    tagger, told = train(data, 2, monkeypatch, calibrate=False, tail=0.7)
    tried = [what for name, what in told if name == "settings"]
    assert all("psp@5" in line and "tail" not in line and "base__" not in line for line in tried[:2])
    assert isinstance(tagger.model_, PropensityReranker)
    assert tagger.model_.tail == 0.7


def test_what_somebody_set_stays():
    stack = Stacked([Columns(DiSMEC(C=0.3)), Columns(Bonsai(n_trees=1)), NearestRows(k=7)])
    free = settings._free_parameters(stack)
    assert "members__1__base__C" in free
    assert "members__2__sharpness" in free
    assert not {"members__0__base__C", "members__2__k"} & set(free)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(NearestRows(), "", 100.0, 1.0), "training alone takes about [\\d.]+ minutes, and 3.0 are left"),
        (Plan(NearestRows(k=3, sharpness=2.0), "", 0.1, 1.0), "none that are worth trying"),
    ],
)
def test_settings_stay_where_there_is_no_time_or_nothing_to_choose(data, plan, message):
    told = []
    choice = {"minutes": 3.0, "tail": 0.0, "propensity": None, "random_state": 0, "tell": told.append}
    assert choose_settings(plan, data.X_train, data.Y_train, **choice) is plan.model
    (line,) = told
    assert re.search(message, line)


def test_a_named_model_is_not_for_it(data):
    with pytest.raises(InvalidInput, match="minutes=5 is for a model that is chosen by effort; leave the model out"):
        Tagger("centroid", minutes=5).fit(data.X_train, data.Y_train)


def test_without_optuna_the_extra_is_named(data, monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(effort, "import_extra", lambda *a: import_extra(*a, importer=absent))
    with pytest.raises(MissingExtra, match="minutes=5 needs optuna; install it with: pip install 'tailwise\\[tune\\]'"):
        Tagger(minutes=5).fit(data.X_train, data.Y_train)
