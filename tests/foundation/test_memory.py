"""Free memory: of the machine, and of control groups of both versions."""

import numpy as np
import pytest
from scipy import sparse

from tailwise import memory

MACHINE = "MemTotal: 100 kB\nMemAvailable:      50 kB\n"


def free(folder, own, files):
    for name, text in files.items():
        path = folder / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "own").write_text(own)
    (folder / "meminfo").write_text(MACHINE)
    return memory.free_memory(folder / "cgroup", folder / "own", folder / "meminfo")


@pytest.mark.parametrize(
    ("own", "files", "bytes_free"),
    [
        ("", {}, 51_200),
        ("0::/\n", {"memory.max": "max\n", "memory.stat": "anon 10\n"}, 51_200),
        ("0::/\n", {"memory.max": "4000\n", "memory.stat": "anon 1000\nfile 2900\n"}, 3000),
        ("0::/a/b\n", {"a/memory.max": "4000\n", "a/memory.stat": "anon 4500\n"}, 0),
        (
            "4:memory:/x\n",
            {"memory/x/memory.limit_in_bytes": "900", "memory/x/memory.stat": "cache 800\ntotal_rss 100"},
            800,
        ),
        ("4:cpu:/x\n", {"memory/x/memory.limit_in_bytes": "900", "memory/x/memory.stat": "total_rss 100"}, 51_200),
        ("0::/\n", {"memory.max": "4000\n"}, 51_200),
    ],
)
def test_free_memory(tmp_path, own, files, bytes_free):
    assert free(tmp_path, own, files) == bytes_free


def test_where_nothing_tells(tmp_path):
    assert memory.free_memory(tmp_path, tmp_path / "none", tmp_path / "none") is None


def test_mapped_rows_are_told_from_those_in_memory(tmp_path, monkeypatch):
    array = np.memmap(tmp_path / "a", np.float32, "w+", shape=(1000,))
    assert memory.is_mapped(array)
    assert memory.is_mapped(array.view(np.ndarray)[10:][::2])
    assert not memory.is_mapped(np.array(array))
    rows = sparse.csr_array(np.ones((2, 500), np.float32))
    monkeypatch.setattr(memory, "free_memory", lambda: 10_000)
    assert memory.memory_apart(rows, 1) is None
    rows.data = array.view(np.ndarray)
    assert memory.memory_apart(rows, 2) == 3000
    monkeypatch.setattr(memory, "free_memory", lambda: 100_000)
    assert memory.memory_apart(rows, 2) is None
