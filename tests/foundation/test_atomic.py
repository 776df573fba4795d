import gzip
import lzma
import os
import stat
import subprocess
import sys
import threading
import time

import pytest

from tailwise.atomic import (
    OutputError,
    locked,
    temporaries_of,
    temporary_folder,
    told_when_unwritable,
    write_whole,
    writing,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def start_writer(path, code):
    """A process that runs ``code`` with ``path`` and says so once it has done it."""
    script = f"import sys, time, pathlib; from tailwise.atomic import *; path = pathlib.Path(sys.argv[1])\n{code}"
    process = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


WRITES = "with writing(path) as file:\n file.write(b'half'); file.flush(); print('ready', flush=True); time.sleep(60)"
FOLDER = "with temporary_folder(path) as f:\n (f / 'a').mkdir(); print('ready', flush=True); time.sleep(60)"
LOCKS = "with locked(path):\n print('ready', flush=True); time.sleep(60)"


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "x.txt"
    with pytest.raises(ZeroDivisionError), writing(path) as file:
        file.write(b"half")
        assert not path.exists()
        raise ZeroDivisionError
    assert names(path.parent) == []
    with writing(path) as file:
        file.write(b"whole")
    assert path.read_bytes() == b"whole" and names(path.parent) == ["x.txt"]


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".xz", lzma.open), (".GZ", gzip.open)])
def test_packed_files(tmp_path, suffix, opener):
    for name in ("a", "b"):
        with writing(tmp_path / f"{name}{suffix}") as file:
            file.write(b"text" * 100)
    with opener(tmp_path / f"a{suffix}") as file:
        assert file.read() == b"text" * 100
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077, 0o027], ids=oct)
def test_permissions_are_those_of_the_umask(tmp_path, umask):
    old = os.umask(umask)
    try:
        write_whole(tmp_path / "x.txt", "text")
        with temporary_folder(tmp_path / "folder") as folder:
            folder.rename(tmp_path / "folder")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "x.txt").stat().st_mode) == 0o666 & ~umask
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o777 & ~umask


def test_file_and_folder_are_on_the_disk_before_it_returns(tmp_path, monkeypatch):
    done, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append(stat.S_IFMT(os.fstat(fd).st_mode)), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda *paths: (done.append("rename"), replace(*paths)))
    with writing(tmp_path / "x.gz") as file:
        file.write(b"text")
    assert done == [stat.S_IFREG, "rename", stat.S_IFDIR]


@pytest.mark.parametrize("code", [WRITES, FOLDER], ids=["file", "folder"])
def test_the_next_write_removes_what_a_killed_one_left_and_nothing_else(tmp_path, code):
    path = tmp_path / "x.txt"
    killed, alive = start_writer(path, code), start_writer(path, code)
    try:
        foreign = [".x.txt.abc.tmp", ".x.txt.0123456789abcdef.tailwise-tmp", ".y.txt.01234567.tailwise-tmp"]
        for name in foreign:
            (tmp_path / name).write_text("mine")
        assert len(temporaries_of(path)) == 2
        write_whole(path, "text")
        assert len(temporaries_of(path)) == 2
        killed.kill()
        killed.wait()
        assert len(temporaries_of(path)) == 2
        write_whole(path, "text")
        assert len(temporaries_of(path)) == 1
        assert {*foreign, "x.txt"} < set(names(tmp_path))
    finally:
        for process in (killed, alive):
            process.kill()
            process.wait()
            process.stdout.close()
    write_whole(path, "text")
    assert temporaries_of(path) == []


def test_a_temporary_of_this_process_is_left_alone(tmp_path):
    with writing(tmp_path / "x") as file, temporary_folder(tmp_path / "x") as folder:
        write_whole(tmp_path / "x", "other")
        assert folder.is_dir()
        file.write(b"mine")
    assert (tmp_path / "x").read_bytes() == b"mine" and names(tmp_path) == ["x"]


def test_one_thread_at_a_time_holds_the_lock(tmp_path):
    inside, most = [], []

    def work():
        for _ in range(50):
            with locked(tmp_path / "x"):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1 and len(most) == 400 and names(tmp_path) == []


def test_death_releases_the_lock(tmp_path):
    holder = start_writer(tmp_path / "x", LOCKS)
    taken = threading.Event()

    def work():
        with locked(tmp_path / "x"):
            taken.set()

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.1)
    assert not taken.is_set()
    holder.kill()
    thread.join(10)
    assert taken.is_set() and names(tmp_path) == []
    holder.wait()
    holder.stdout.close()


def test_what_cannot_be_written_is_told(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match=r"cannot write .*folder: Is a directory; nothing was changed"):
        write_whole(tmp_path / "folder", "text")
    with pytest.raises(OutputError, match="No space"), told_when_unwritable("x"):
        raise OSError(28, "No space left on device")
    with pytest.raises(OutputError, match="the first"), told_when_unwritable("x"):
        raise OutputError("the first")
    (tmp_path / "closed").mkdir()
    write_whole("/dev/null", ["a", "b"])
