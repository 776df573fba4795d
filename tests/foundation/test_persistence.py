import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from contracts import make_rows
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import tailwise
from tailwise import persistence
from tailwise.base import TopK
from tailwise.errors import InvalidInput, ModelFileError
from tailwise.persistence.encoding import Writer
from tailwise.persistence.manifest import manifest_digest


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        1.5,
        float("inf"),
        "ä",
        [1, "two", None],
        (1, (2.5,)),
        {"a": 1, "b": [1, 2]},
        np.float32(1.5),
        np.int64(7),
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.zeros((0, 4), np.float32),
        np.array(5.0),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        ["x", "", "ü" * 3] * 200,
        TopK(np.zeros((1, 2), np.int32), np.zeros((1, 2), np.float32)),
    ],
    ids=repr,
)
def test_round_trip_of_each_kind_of_value(box, tmp_path, value):
    persistence.save(box(value, param=(1, 2)), tmp_path / "m")
    loaded = persistence.load(tmp_path / "m")
    assert type(loaded.value_) is type(value) and loaded.param == (1, 2)
    if isinstance(value, TopK):
        value, loaded.value_ = tuple(value), tuple(loaded.value_)
    np.testing.assert_equal(loaded.value_, value)


# Not st.text, which never draws surrogates.
ANY_STR = st.lists((st.integers(0, 0x10FFFF) | st.sampled_from([0xD83D, 0xDE00])).map(chr), max_size=5).map("".join)


@given(st.lists(ANY_STR, max_size=4), st.booleans())
def test_every_str_comes_back_exactly(texts, many):
    """Lone surrogates too, and pairs of them, which JSON would join: as values, packed, and as keys."""
    model = tailwise.JainPropensity().fit([[1]])
    value = {"texts": texts * (300 if many else 1), "keys": dict.fromkeys(texts, 1), "tuple": tuple(texts)}
    vars(model)["value_"] = value
    with tempfile.TemporaryDirectory() as folder:
        persistence.save(model, folder)
        assert persistence.load(folder).value_ == value


@pytest.mark.parametrize("text", ["\ud83d\ude00", "\ud800", "a\udfffb", "\U0001f600", "\0"], ids=ascii)
@pytest.mark.parametrize("times", [1, 300])
def test_surrogates_are_kept(box, tmp_path, text, times):
    persistence.save(box([text] * times, param={text: text}), tmp_path / "m")
    loaded = persistence.load(tmp_path / "m")
    assert loaded.value_ == [text] * times and loaded.param == {text: text}


def test_csr_and_nested_objects_and_tensors(box, tmp_path):
    torch = pytest.importorskip("torch")
    X = sparse.random_array((5, 6), density=0.3, format="csr", rng=np.random.default_rng(0))
    value = {"inner": box(X), "weights": {"w": torch.arange(3.0)}}
    persistence.save(box(value), tmp_path / "m")
    loaded = persistence.load(tmp_path / "m").value_
    np.testing.assert_array_equal(loaded["inner"].value_.toarray(), X.toarray())
    assert torch.equal(loaded["weights"]["w"], torch.arange(3.0))
    assert (tmp_path / "m").glob("*.safetensors")


def test_arrays_are_mapped_read_only(box, tmp_path):
    persistence.save(box(np.arange(10)), tmp_path / "m")
    array = persistence.load(tmp_path / "m").value_
    while not isinstance(array, np.memmap):
        assert not array.flags.writeable
        array = array.base


class Alien(NamedTuple):
    x: int


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda x: x, "holds data and no code"),
        (np.array([object()]), "array of Python objects"),
        (sparse.coo_array(np.eye(2)), "only CSR can be saved"),
        (Alien(1), "only classes of tailwise"),
        ({1: 2}, "cannot be saved"),
    ],
    ids=["function", "objects", "coo", "alien", "int keys"],
)
def test_what_cannot_be_saved_is_refused_and_nothing_is_left(box, tmp_path, value, message):
    with pytest.raises(InvalidInput, match=message):
        persistence.save(box(value), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_replacing_a_model_keeps_no_old_files_and_survives_a_crash(box, tmp_path, monkeypatch):
    path = tmp_path / "m"
    persistence.save(box(np.arange(5)), path)
    opened = persistence.load(path)
    monkeypatch.setattr("tailwise.persistence.folder.manifest_digest", lambda manifest: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        persistence.save(box(np.arange(6)), path)
    monkeypatch.undo()
    assert len(persistence.load(path).value_) == 5
    persistence.save(box(np.arange(7)), path)
    assert len(persistence.load(path).value_) == 7 and opened.value_.sum() == 10
    assert len(list(path.glob("*.npy"))) == 1 and [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_full_disk_changes_nothing(box, tmp_path, monkeypatch):
    path = tmp_path / "m"
    persistence.save(box(np.arange(5)), path)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileError, match=r"No space left on device.*nothing was changed"):
        persistence.save(box(np.arange(6)), path)
    monkeypatch.undo()
    assert len(persistence.load(path).value_) == 5 and [p.name for p in tmp_path.iterdir()] == ["m"]


def test_a_disk_that_fills_up_while_an_array_is_written(box, tmp_path, monkeypatch):
    """numpy writes arrays past Python, and would say how many values fitted instead of why no more did."""
    monkeypatch.setattr(Writer, "_add_file", lambda self, name, suffix, write: write(Path("/dev/full")))
    with pytest.raises(ModelFileError, match=r"No space left on device.*nothing was changed"):
        persistence.save(box(np.zeros(100_000)), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_to_save_changes_nothing(box, tmp_path, monkeypatch):
    def too_large(*arguments):
        raise MemoryError

    monkeypatch.setattr(Writer, "encode", too_large)
    with pytest.raises(ModelFileError, match=r"not enough memory.*nothing was changed"):
        persistence.save(box(np.zeros(5)), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_to_open_is_told_as_such(tmp_path):
    """Under a limit of the address space, as batch systems set it."""
    code = (
        "import resource, sys, numpy as np, tailwise\n"
        "from tailwise.errors import ModelFileError\n"
        "model = tailwise.Popularity().fit(np.ones((2, 2)), np.eye(2))\n"
        "model.label_counts_ = np.zeros(8_000_000, np.int64)\n"
        "model.save(sys.argv[1])\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 2**25, used + 2**25))\n"
        "try:\n    tailwise.load(sys.argv[1])\nexcept ModelFileError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "m"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{tmp_path / 'm'} does not fit into memory; ")


def test_other_files_are_never_overwritten(box, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    for target in (tmp_path / "notes", tmp_path / "notes" / "a.txt"):
        with pytest.raises(ModelFileError, match="exists and is not a tailwise model"):
            persistence.save(box(1), target)
    (tmp_path / "empty").mkdir()
    persistence.save(box(1), tmp_path / "empty")


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda p: None, "does not exist; pass a folder"),
        (lambda p: p.write_text(""), "is a file, not a folder"),
        (lambda p: p.mkdir(), "no manifest.json; it is not a tailwise model"),
        (lambda p: (p.mkdir(), (p / "manifest.json").write_text("{")), "is damaged"),
        (lambda p: (p.mkdir(), (p / "manifest.json").write_text("[]")), "not the manifest of a tailwise model"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path, prepare, message):
    prepare(tmp_path / "m")
    with pytest.raises(ModelFileError, match=message):
        tailwise.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class": "os:system"}, "not one of tailwise"),
        ({"class": "tailwise.baselines:np"}, "not a class"),
        ({"class": "tailwise.baselines:Nothing"}, "does not have"),
        ({"class": "tailwise.errors:TailwiseError"}, "not a class that tailwise saves"),
        ({"state": {"x_": {"$": "array", "file": "../../etc/passwd"}}}, "does not list"),
        ({"state": {"x_": {"$": "pickle"}}}, "unknown kind 'pickle'"),
        ({"params": {"nonsense": 1}}, "does not describe a model"),
    ],
)
def test_a_forged_manifest_runs_nothing(tmp_path, change, message):
    path = tmp_path / "m"
    tailwise.Popularity().fit(*make_rows()).save(path)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["model"] |= change
    manifest["sha256"] = manifest_digest(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ModelFileError, match=message):
        tailwise.load(path)


def test_a_changed_manifest_is_noticed(tmp_path):
    path = tmp_path / "m"
    tailwise.Popularity().fit(*make_rows()).save(path)
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text.replace('"n_labels_": 15', '"n_labels_": 14'))
    with pytest.raises(ModelFileError, match="was changed after it was written"):
        tailwise.load(path)
