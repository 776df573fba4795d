"""``tailwise tune``."""

import json

import pytest

from tailwise import make_longtail
from tailwise.data.xmc import write_xmc


@pytest.fixture
def rows(tmp_path):
    data = make_longtail(400, 150, 30, random_state=3)
    path = tmp_path / "rows.txt"
    write_xmc(path, data.X_train, data.Y_train)
    return path


def test_it_prints_the_best_and_how_to_train_it(run, rows, tmp_path):
    page, study = tmp_path / "s.html", tmp_path / "s.jsonl"
    arguments = [
        "tune",
        rows,
        "-m",
        "nearest-rows",
        "--try",
        "k=2..60",
        "--trials",
        4,
        "--study",
        study,
        "--page",
        page,
    ]
    done = run(*arguments)
    assert done.code == 0
    assert "best" in done.out
    assert "as it was" in done.out
    assert f"tailwise train {rows} -o MODEL --model nearest-rows --set k=" in done.err
    assert page.read_text().count("<svg") == 1
    again = run(*arguments, "--json")
    assert "trial" not in again.err.replace("trials", "")
    assert len(json.loads(again.out)["trials"]) == 4


def test_texts_and_auto(run, corpus):
    done = run("tune", corpus / "train.jsonl", "-t", "title,body", "--trials", "1", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["parameters"] == {"C": 1.0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--try", "k=a..b"], "write two numbers"),
        (["--within", "p@1"], "write a metric and points"),
        (["--metric", "p@x"], "p@x"),
        (["--try", "kk"], "did you mean 'k'"),
        (["--set", "k=0"], "--set 'k=0'"),
    ],
)
def test_what_is_wrong_is_refused(run, rows, options, message):
    done = run("tune", rows, "-m", "nearest-rows", *options)
    assert done.code == 3
    assert message in done.err


def test_training_chooses_settings_in_the_time_that_is_left(run, rows, tmp_path, monkeypatch):
    monkeypatch.setattr("tailwise.text.settings._MOST_TRIALS", 2)
    done = run("train", rows, "-o", tmp_path / "model", "--effort", "best", "--minutes", "5", "--seed", "1")
    assert done.code == 0, done.err
    assert "trial 0: learning_rate 0.08, members__0__C 1" in done.err
    assert "of 2 tried on rows held out" in done.err
    refused = run("train", rows, "-o", tmp_path / "other", "-m", "dismec", "--minutes", "5")
    assert refused.code == 3
    assert "minutes=5 is for a model that is chosen by effort" in refused.err
