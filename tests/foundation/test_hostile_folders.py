"""Folders that somebody damaged or wrote by hand: one clear error each, and nothing hangs, crashes or leads out."""

import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import tailwise
from drills import flip, harness, hostile
from drills.forging import forge_array, forge_file, forge_manifest
from tailwise import persistence
from tailwise.errors import ModelFileError
from tailwise.persistence import checks

GOLDEN = Path(__file__).parents[1] / "golden" / "folders-0.1.0.zip"


@pytest.fixture(scope="module")
def folders_of_0_1_0(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folders")
    with zipfile.ZipFile(GOLDEN) as packed:
        packed.extractall(folder)
    return sorted(folder.iterdir())


def test_models_of_0_1_0_are_refused_with_the_way_out(folders_of_0_1_0):
    assert len(folders_of_0_1_0) >= 25
    for path in folders_of_0_1_0:
        for reads in (tailwise.load, persistence.read_manifest):
            with pytest.raises(ModelFileError) as refused:
                reads(path)
            assert str(refused.value) == (
                f"{path} was written by tailwise 0.1.0 (format 1), which this version does not open; "
                "train it again from its data, or open it with: pip install 'tailwise<0.2'"
            )


@pytest.mark.parametrize("drill", [hostile.of_parts, flip.drill], ids=lambda drill: drill.__module__)
def test_the_drills_find_nothing(drill, tmp_path):
    for outcome in drill(40, tmp_path):
        assert outcome.passed, str(outcome)
        assert outcome.refused + outcome.changed + outcome.intact == outcome.tried >= 9


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        (".indptr", lambda a: a[::-1].copy(), "indptr does not rise"),
        (".indptr", lambda a: a - 1, r"indptr runs from -1 to 9, not from 0 to 10"),
        (".indptr", lambda a: a[:-1], r"indptr has shape \(5,\), not \(6\)"),
        (".indptr", lambda a: a.astype(float), "indptr has dtype <f8"),
        (".indptr", lambda a: a.astype(">i4"), "indptr has dtype >i4"),
        (".indices", lambda a: a + 6, r"indices holds \d+ at position \d, outside \[0, 5\]"),
        (".indices", lambda a: a - 6, r"indices holds -\d at position 0, outside \[0, 5\]"),
        (".indices", lambda a: a[:-1], r"indices has shape \(9,\), not \(10\)"),
        (".data", lambda a: a.reshape(2, 5), r"data has shape \(2, 5\), not \(any\)"),
        (".data", lambda a: a.astype("S3"), r"data has dtype \|S3"),
    ],
)
@pytest.mark.parametrize("verify", [True, False])
def test_a_matrix_that_kernels_could_not_trust(box, tmp_path, part, change, message, verify):
    matrix = sparse.random_array((5, 6), density=1 / 3, format="csr", rng=np.random.default_rng(0))
    persistence.save(box(matrix), tmp_path / "m")
    forge_array(tmp_path / "m", part, change)
    with pytest.raises(ModelFileError, match=message) as refused:
        persistence.load(tmp_path / "m", verify=verify)
    assert ".indices-" in str(refused.value) and "restore it or save the model again" in str(refused.value)


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        (".offsets", lambda a: a[::-1].copy(), "offsets does not rise"),
        (".offsets", lambda a: a * 2, "offsets runs from 0 to 2400, not from 0 to 1200"),
        (".offsets", lambda a: a[:0], r"offsets has shape \(0,\), not \(1\)"),
        (".offsets", lambda a: a.astype(float), "offsets has dtype"),
        (".text", lambda a: a | 128, "UnicodeDecodeError"),
        (".text", lambda a: a.reshape(2, -1), "text has shape"),
    ],
)
@pytest.mark.parametrize("verify", [True, False])
def test_strings_that_are_none(box, tmp_path, part, change, message, verify):
    persistence.save(box(["abcd"] * 300), tmp_path / "m")
    forge_array(tmp_path / "m", part, change)
    with pytest.raises(ModelFileError, match=rf"\.offsets-.*{message}.*restore it or save"):
        persistence.load(tmp_path / "m", verify=verify)


HEADER = b"\x93NUMPY\x01\x00\x76\x00"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"no array at all" * 20,
        HEADER + b"{'descr': '<i8', 'fortran_order': False, 'shape': ((((((".ljust(118) + b"x" * 40,
        HEADER + b"{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}".ljust(118) + b"x" * 40,
        HEADER + b"{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000,)}".ljust(118) + b"x" * 40,
        HEADER + b"{'descr': '|O', 'fortran_order': False, 'shape': (5,)}".ljust(118) + b"x" * 40,
        HEADER.replace(b"\x01\x00", b"\x09\x00") + b"{}".ljust(118),
    ],
    ids=["empty", "magic", "text", "tokens", "negative", "huge", "objects", "version"],
)
@pytest.mark.parametrize("verify", [True, False])
def test_files_that_are_no_arrays(box, tmp_path, content, verify):
    path = tmp_path / "m"
    persistence.save(box(np.arange(5)), path)
    name = forge_file(path, next(path.glob("*.npy")).name, content)
    with pytest.raises(ModelFileError, match=rf"{name} is not an array that tailwise wrote.*restore it or save"):
        persistence.load(path, verify=verify)


def test_tensors_that_are_none(box, tmp_path):
    torch = pytest.importorskip("torch")
    path = tmp_path / "m"
    persistence.save(box({"w": torch.arange(3.0)}), path)
    name = forge_file(path, next(path.glob("*.safetensors")).name, b"x" * 100)
    with pytest.raises(ModelFileError, match=rf"{name} holds no tensors \(Safetensor.*restore it or save"):
        persistence.load(path)


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"$": "scalar", "dtype": "<i4", "value": 10**30},
        {"$": "scalar", "dtype": "O", "value": 1},
        {"$": "csr", "shape": [1, 1]},
        {"$": "strings", "type": "list", "files": []},
        {"$": "array", "file": ["a"]},
        {"$": "text", "hex": "no"},
        {"$": ["array"]},
        {"$": "pairs", "items": [[1], 2]},
        nested(900),
    ],
    ids=lambda value: str(value)[:40],
)
def test_manifests_that_describe_no_model(box, tmp_path, model):
    persistence.save(box(1), tmp_path / "m")
    forge_manifest(tmp_path / "m", lambda value: value | {"state": {"value_": model}} if "state" in value else value)
    with pytest.raises(ModelFileError, match=r"its manifest does not describe a model \(.*; restore it or save"):
        persistence.load(tmp_path / "m")


def test_a_manifest_too_deep_to_read(box, tmp_path):
    persistence.save(box(1), tmp_path / "m")
    (tmp_path / "m" / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(ModelFileError, match=r"manifest.json is damaged \(RecursionError.*remove the folder"):
        persistence.load(tmp_path / "m")


@pytest.mark.parametrize("change", [{"files": []}, {"files": {"a": 1}}, {"model": None, "files": None}])
def test_a_manifest_without_its_parts(box, tmp_path, change):
    path = tmp_path / "m"
    persistence.save(box(1), path)
    manifest = json.loads((path / "manifest.json").read_text()) | change
    (path / "manifest.json").write_text(json.dumps(manifest))
    forge_manifest(path, lambda value: value)
    with pytest.raises(ModelFileError, match="does not describe a model and its files"):
        persistence.read_manifest(path)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("which", ["manifest.json", "*.npy"])
@pytest.mark.parametrize("kind", ["fifo", "link out", "link inside", "folder"])
def test_only_files_of_the_folder_itself_are_read(box, tmp_path, which, kind):
    path = tmp_path / "m"
    persistence.save(box(np.arange(5)), path)
    victim = next(path.glob(which))
    target = (path if kind == "link inside" else tmp_path) / "target"
    victim.rename(target)
    if kind == "fifo":
        os.mkfifo(victim)
    elif kind == "folder":
        victim.mkdir()
    else:
        victim.symlink_to(target)
    message = "is a symbolic link; put the file itself there" if "link" in kind else "is not a regular file"
    for verify in (True, False):
        with pytest.raises(ModelFileError, match=rf"{victim.name} {message}"):
            persistence.load(path, verify=verify)


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("wrong"), AttributeError("no")], ids=repr)
def test_what_a_class_refuses_is_told_with_its_name(box, tmp_path, monkeypatch, error):
    def check(self):
        raise error

    model = box(1)
    persistence.save(model, tmp_path / "m")
    monkeypatch.setattr(type(model), "check", check)
    with pytest.raises(ModelFileError, match=r"holds a Box that no fit could have left.*restore it or save"):
        persistence.load(tmp_path / "m")


def test_a_class_names_the_array_that_it_refuses(box, tmp_path, monkeypatch):
    model = box(np.array([0, 7, 2]))
    persistence.save(model, tmp_path / "m")
    monkeypatch.setattr(type(model), "check", lambda self: checks.check_indices("value_", self.value_, 5))
    with pytest.raises(ModelFileError, match=r"Box .*\(value_ holds 7 at position 1, outside \[0, 4\]\)"):
        persistence.load(tmp_path / "m")
    monkeypatch.setattr(type(model), "check", lambda self: checks.check_indices("value_", self.value_, 8))
    assert persistence.load(tmp_path / "m").value_.tolist() == [0, 7, 2]


def test_an_object_without_a_state_has_none_to_check(box, tmp_path, monkeypatch):
    model = box(box(1))
    del model.value_.value_
    persistence.save(model, tmp_path / "m")
    monkeypatch.setattr(type(model), "check", lambda self: self.value_)
    persistence.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda: checks.check_array("a", [1]), "a is a list, not an array"),
        (lambda: checks.check_array("a", np.array(["x"])), "a has dtype <U1"),
        (lambda: checks.check_array("a", np.zeros(9, np.uint8)[1:].view(np.int64)), "a is not aligned"),
        (lambda: checks.check_shape("a", np.zeros((2, 3)), (2, 4)), r"a has shape \(2, 3\), not \(2, 4\)"),
        (lambda: checks.check_shape("a", np.zeros((2, 3)), (2, 3, None)), r"not \(2, 3, any\)"),
        (lambda: checks.check_shape("a", np.zeros((2, 3)), (None, 3), "iu"), "a has dtype <f8"),
        (lambda: checks.check_range("a", np.array([1.0, np.nan]), 0), "a holds nan at position 1"),
        (
            lambda: checks.check_range("a", np.array([[1, 2], [3, -4]]), 0, 9),
            r"a holds -4 at position 3, outside \[0, 9\]",
        ),
        (lambda: checks.check_indices("a", np.array([0.0]), 5), "a has dtype <f8"),
        (lambda: checks.check_indices("a", np.array([-1]), 5), "a holds -1"),
        (lambda: checks.check_indices("a", np.array([-2]), 5, missing=True), "a holds -2"),
        (lambda: checks.check_finite("a", np.array([0, np.inf, 1])), "a holds inf at position 1"),
        (lambda: checks.check_finite("a", np.array([0, np.nan, 1])), "a holds nan at position 1"),
        (lambda: checks.check_monotone("a", np.array([0, 2, 1])), "it holds 1 at position 2 after 2"),
        (lambda: checks.check_monotone("a", np.array([0, 2, 2]), strict=True), "it holds 2 at position 2 after 2"),
        (lambda: checks.check_offsets("a", np.array([0, 2, 3]), 2, 4), "a runs from 0 to 3, not from 0 to 4"),
        (lambda: checks.check_csr("a", None, None, None, [1, 2.0]), r"a has the shape \[1, 2.0\], not two lengths"),
    ],
)
def test_checks_name_the_array_and_the_value(check, message):
    with pytest.raises(checks.Violation, match=message):
        check()


def test_checks_accept_what_is_right():
    empty = np.empty(0, np.int32)
    for check in (checks.check_finite, checks.check_range, checks.check_monotone):
        assert check("a", empty) is empty
    checks.check_indices("a", np.array([-1, 4]), 5, missing=True)
    checks.check_offsets("a", np.array([0], np.int64), 0, 0)
    checks.check_finite("a", np.array([1e308, -1e308]))
    for dtype in (np.int32, np.int64):
        indptr = np.array([0, 1, 1], dtype)
        assert checks.check_csr("a", np.ones(1, np.float32), np.zeros(1, np.int32), indptr, [2, 1]) == (2, 1)


def test_a_drill_counts_what_it_finds(tmp_path):
    harness.small_model(0).save(tmp_path / "m")
    outcome = harness.Outcome("x")
    outcome.judge(tmp_path / "m", {harness.identity(harness.small_model(0))})
    outcome.judge(tmp_path / "m", set())
    outcome.judge(tmp_path / "nowhere", set())
    assert (outcome.tried, outcome.intact, outcome.broken, outcome.refused) == (3, 1, 1, 1) and not outcome.passed
    (tmp_path / ".m.01234567.tailwise-tmp").mkdir()
    assert harness.left_over(tmp_path / "m") == 1
