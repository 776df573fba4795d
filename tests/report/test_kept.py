"""What a report keeps beside a model: numbers that come back, and are shown by the report's own parts."""

import json

import numpy as np
import pytest

from tailwise.errors import ModelFileError
from tailwise.experiments.report import kept
from tailwise.persistence import read_manifest


@pytest.fixture(scope="module")
def folder(trial, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "centroid"
    trial.models[0].tagger.save(path)
    assert kept.keep(trial, trial.models[0], path, 5) == path / kept.FILE
    return path


def test_numbers_come_back(trial, folder):
    found = kept.read(folder / kept.FILE)
    judged = trial.models[0]
    assert (found.data, found.k, found.model) == (trial.name, 5, read_manifest(folder)["sha256"])
    alone = trial._replace(models=[judged]).metrics(["p@5", "recall@5:tail", "coverage@5:head"])[judged.name]
    for name, value in alone.items():
        assert found.metrics[name].value == pytest.approx(value.value, nan_ok=True)
        assert found.metrics[name].low == pytest.approx(value.low, nan_ok=True)
    calibration = kept.facts.reliability_of(trial, judged, 5)
    np.testing.assert_allclose(found.calibration.observed, calibration.observed)
    np.testing.assert_allclose(found.coverage, kept.facts.coverage_of(trial, judged, found.ks))


def test_it_is_shown_by_the_parts_of_the_report(folder):
    shown = kept.shown(folder / kept.FILE, "<A model>", read_manifest(folder)["sha256"])
    assert shown["current"]
    assert [part["id"] for part in shown["sections"]] == ["metrics", "calibration", "coverage", "glossary"]
    html = "".join(part["html"] for part in shown["sections"])
    assert html.count("<svg") == 3
    assert "<A model>" not in html and "&lt;A model&gt;" in html
    assert "style=" not in html, "the service's pages allow no inline style"
    assert json.loads(json.dumps(shown)) == shown
    assert not kept.shown(folder / kept.FILE, "m", "another version")["current"]


def test_nothing_kept_is_nothing_shown(tmp_path):
    assert kept.shown(tmp_path / kept.FILE, "m", "v") is None


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"metrics": []},
        {"coverage": {"k": [1, 2], "value": [1.0]}},
        {"coverage": {"k": [], "value": []}},
        {"coverage": {"k": [10**9], "value": [1.0]}},
        {"calibration": {"score": [None], "observed": [0.5], "size": [1], "error": None}},
        {"made": "yesterday"},
        {"k": "<script>"},
        {"k": 0},
    ],
)
def test_a_file_from_elsewhere_is_refused_with_the_way_out(folder, tmp_path, change):
    body = json.loads((folder / kept.FILE).read_text(encoding="utf-8")) | change
    (tmp_path / kept.FILE).write_text(json.dumps(body), encoding="utf-8")
    with pytest.raises(ModelFileError, match="tailwise report MODEL DATA"):
        kept.read(tmp_path / kept.FILE)


@pytest.mark.parametrize("raw", [b"", b"[1]", b"\xff", b"[" * 100_000, b" " * 2_000_000])
def test_bytes_that_are_no_evaluation_are_refused(tmp_path, raw):
    (tmp_path / kept.FILE).write_bytes(raw)
    with pytest.raises(ModelFileError, match="does not hold an evaluation"):
        kept.read(tmp_path / kept.FILE)


def test_saving_the_model_again_leaves_it_and_says_that_it_is_old(trial, folder, tmp_path):
    path = tmp_path / "model"
    trial.models[0].tagger.save(path)
    kept.keep(trial, trial.models[0], path, 3)
    trial.models[1].tagger.save(path)
    assert not kept.shown(path / kept.FILE, "m", read_manifest(path)["sha256"])["current"]
