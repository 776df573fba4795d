"""What may happen to a model folder while, and after, it is written."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tailwise import persistence
from tailwise.errors import ModelFileError
from tailwise.persistence.manifest import manifest_digest


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def array_of(path):
    return next(path.glob("*.npy"))


def test_of_two_threads_that_save_one_wins_whole(box, tmp_path):
    path = tmp_path / "m"
    models = [box({f"a{i}": np.full(50, 10 * m + i) for i in range(5)}) for m in range(2)]
    for _ in range(15):
        threads = [threading.Thread(target=persistence.save, args=(model, path)) for model in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        values = persistence.load(path).value_
        assert {int(a[0]) // 10 for a in values.values()} in ({0}, {1})
        assert len(names(path)) == 6 and names(tmp_path) == ["m"]


def test_of_two_processes_that_save_one_wins_whole(tmp_path):
    script = (
        "import sys, numpy as np; from tailwise import JainPropensity, persistence\n"
        "model = JainPropensity().fit([[1]])\n"
        "model.value_ = {str(i): np.full(50, 10 * int(sys.argv[2]) + i) for i in range(5)}\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for _ in range(20): persistence.save(model, sys.argv[1]); persistence.load(sys.argv[1])"
    )
    path = tmp_path / "m"
    savers = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(path), str(m)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for m in range(2)
    ]
    for saver in savers:
        saver.stdout.readline()
    for saver in savers:
        saver.stdin.write("go\n")
        saver.stdin.flush()
    for saver in savers:
        saver.communicate()
        assert saver.returncode == 0
    values = persistence.load(path).value_
    assert {int(a[0]) // 10 for a in values.values()} in ({0}, {1})
    assert len(names(path)) == 8 and names(tmp_path) == ["m"]


def test_loading_while_another_thread_saves(box, tmp_path):
    path = tmp_path / "m"
    models = [box({f"a{i}": np.full(50, 10 * m + i) for i in range(5)}) for m in range(2)]
    persistence.save(models[0], path)
    early, done = persistence.load(path), threading.Event()

    def save_on():
        while not done.is_set():
            for model in models:
                persistence.save(model, path)

    saver = threading.Thread(target=save_on)
    saver.start()
    try:
        stop = time.monotonic() + 1.5
        while time.monotonic() < stop:
            values = persistence.load(path, verify=False).value_
            assert {int(a[0]) // 10 for a in values.values()} in ({0}, {1})
    finally:
        done.set()
        saver.join()
    assert [int(a.sum()) for a in early.value_.values()] == [50 * i for i in range(5)]


def test_a_reader_goes_on_with_the_model_that_replaced_the_one_it_began(box, tmp_path, monkeypatch):
    from tailwise.persistence import folder

    path, real, turns = tmp_path / "m", folder.MappedFiles, []
    persistence.save(box(np.arange(5)), path)

    def interrupted(*arguments):
        turns.append(1)
        if len(turns) <= 3:
            persistence.save(box(np.arange(5 + len(turns))), path)
        return real(*arguments)

    monkeypatch.setattr(folder, "MappedFiles", interrupted)
    assert len(persistence.load(path).value_) == 8 and len(turns) == 4
    monkeypatch.setattr(folder, "_TRIES", 2)
    turns.clear()
    with pytest.raises(ModelFileError, match="replaced 2 times while it was being opened; open it when nobody saves"):
        persistence.load(path)


@pytest.mark.parametrize(
    "manifest", ['{"name": "my app", "icons": []}', "[]", "{", "\xff", '{"format": "other"}', "[" * 100_000]
)
def test_a_folder_with_a_manifest_of_its_own_is_not_a_model(box, tmp_path, manifest):
    web = tmp_path / "web"
    web.mkdir()
    (web / "manifest.json").write_text(manifest, encoding="latin-1")
    (web / "index.html").write_text("mine")
    assert not persistence.is_replaceable(web)
    with pytest.raises(ModelFileError, match="exists and is not a tailwise model; choose another path or remove it"):
        persistence.save(box(1), web)
    assert names(web) == ["index.html", "manifest.json"] and names(tmp_path) == ["web"]


def test_what_else_lies_in_a_model_folder_stays(box, tmp_path):
    path = tmp_path / "m"
    persistence.save(box(np.arange(5)), path)
    foreign = ["README.md", "notes.npy", "value_-0123456789abcdef.npy"]
    for name in foreign:
        (path / name).write_text("mine")
    (path / "sub").mkdir()
    persistence.save(box(np.arange(6)), path)
    assert len(persistence.load(path).value_) == 6
    assert len(names(path)) == 6 and {*foreign, "sub"} < set(names(path))


def test_a_manifest_that_lists_foreign_files_removes_none(box, tmp_path):
    path = tmp_path / "m"
    persistence.save(box(1), path)
    manifest = json.loads((path / "manifest.json").read_text())
    (tmp_path / "precious-0123456789abcdef.npy").write_text("mine")
    for name in ("thesis.txt", "../precious-0123456789abcdef.npy"):
        manifest["files"][name] = {"bytes": 4, "sha256": ""}
    (path / "thesis.txt").write_text("mine")
    (path / "manifest.json").write_text(json.dumps(manifest | {"sha256": manifest_digest(manifest)}))
    with pytest.raises(ModelFileError, match="does not describe a model and its files"):
        persistence.load(path)
    persistence.save(box(2), path)
    assert (path / "thesis.txt").exists() and (tmp_path / "precious-0123456789abcdef.npy").exists()


def test_a_model_of_any_version_may_be_replaced(box, tmp_path):
    path = tmp_path / "m"
    for version in (1, 99, None):
        persistence.save(box(np.arange(5)), path)
        manifest = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").write_text(json.dumps(manifest | {"format_version": version}))
        assert persistence.is_replaceable(path)
    persistence.save(box(1), path)
    assert names(path) == ["manifest.json"]


@pytest.mark.parametrize("damage", [b"", b"x" * 168, None], ids=["emptied", "overwritten", "linked out"])
def test_saving_again_repairs_a_damaged_file(box, tmp_path, damage):
    path = tmp_path / "m"
    persistence.save(box(np.arange(5)), path)
    victim = array_of(path)
    if damage is None:
        victim.rename(tmp_path / "elsewhere")
        victim.symlink_to(tmp_path / "elsewhere")
    else:
        victim.write_bytes(damage)
    with pytest.raises(ModelFileError):
        persistence.load(path)
    persistence.save(box(np.arange(5)), path)
    assert persistence.load(path).value_.tolist() == [0, 1, 2, 3, 4]
    assert damage is not None or (tmp_path / "elsewhere").exists()


def test_an_equal_file_is_left_where_it_is(box, tmp_path):
    path = tmp_path / "m"
    persistence.save(box(np.arange(5)), path)
    before = array_of(path).stat().st_ino
    persistence.save(box(np.arange(5)), path)
    assert array_of(path).stat().st_ino == before


def test_files_that_a_killed_saver_left_inside_go_with_the_next_save(box, tmp_path):
    """Before it swapped the manifest, or after: no manifest lists them, but their names are their digests."""
    path = tmp_path / "m"
    persistence.save(box(np.arange(5)), path)
    content = array_of(path).read_bytes()[:-1] + b"x"
    orphan = path / f"value_-{hashlib.sha256(content).hexdigest()[:16]}.npy"
    orphan.write_bytes(content)
    persistence.save(box(np.arange(5)), path)
    assert not orphan.exists() and len(names(path)) == 2


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077], ids=oct)
def test_permissions_are_those_of_the_umask(box, tmp_path, umask):
    old = os.umask(umask)
    try:
        persistence.save(box(np.arange(5)), tmp_path / "m")
        persistence.save(box(np.arange(6)), tmp_path / "m")
    finally:
        os.umask(old)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o777 & ~umask
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "m").iterdir()} == {0o666 & ~umask}


def test_a_folder_that_was_prepared_keeps_its_permissions(box, tmp_path):
    path = tmp_path / "m"
    path.mkdir()
    path.chmod(0o710)
    persistence.save(box(1), path)
    assert path.stat().st_mode & 0o777 == 0o710


def test_saving_through_a_link_replaces_the_model_behind_it(box, tmp_path):
    (tmp_path / "versions").mkdir()
    persistence.save(box(1), tmp_path / "versions" / "v1")
    (tmp_path / "current").symlink_to(tmp_path / "versions" / "v1")
    persistence.save(box(2), tmp_path / "current")
    assert (tmp_path / "current").is_symlink() and persistence.load(tmp_path / "versions" / "v1").value_ == 2
    assert names(tmp_path / "versions") == ["v1"]
