"""Cores: the affinity, and the quota of control groups of both versions."""

import os

import pytest

from tailwise import cpus, parallel


def groups(folder, own, files):
    """A tree of control groups, and what the kernel says about this process's own."""
    for name, text in files.items():
        path = folder / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "own").write_text(own)
    return folder / "cgroup", folder / "own"


@pytest.mark.parametrize(
    ("own", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/a/b\n", {"a/cpu.max": "200000 100000\n", "a/b/cpu.max": "400000 100000\n"}, 2.0),
        ("0::/host/path/that/is/not/here\n", {"cpu.max": "50000 100000\n"}, 0.5),
        ("0::/../x\n", {"cpu.max": "50000 100000\n"}, 0.5),
        ("1:cpu:/\n0::/\n", {"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3.0),
        (
            "4:cpu,cpuacct:/k\n",
            {"cpu,cpuacct/k/cpu.cfs_quota_us": "5000", "cpu,cpuacct/k/cpu.cfs_period_us": "1"},
            5000,
        ),
        ("1:cpu:/\n", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
        ("1:cpuset:/\n", {"cpu/cpu.cfs_quota_us": "1", "cpu/cpu.cfs_period_us": "1"}, None),
        ("0::/\n", {"cpu.max": "damaged"}, None),
        ("", {}, None),
    ],
)
def test_the_quota_of_a_container(tmp_path, own, files, quota):
    assert cpus.cpu_quota(*groups(tmp_path, own, files)) == quota


def test_without_control_groups_there_is_no_quota(tmp_path):
    assert cpus.cpu_quota(tmp_path, tmp_path / "none") is None


@pytest.mark.parametrize(("quota", "cores"), [(None, 8), (2.5, 3), (0.2, 1), (64.0, 8)])
def test_threads_follow_affinity_and_quota(monkeypatch, quota, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    monkeypatch.setattr(cpus, "_own_quota", lambda: quota)
    assert cpus.available_cores() == parallel.count_jobs(None) == parallel.count_jobs(-1) == cores
    assert parallel.count_jobs(-2) == max(1, cores - 1)
    assert parallel.count_jobs(12) == 12


def test_a_bound_holds_for_every_number_of_threads(monkeypatch):
    monkeypatch.setattr(parallel, "available_cores", lambda: 8)
    parallel.set_jobs(3)
    try:
        assert [parallel.count_jobs(n) for n in (None, -1, 1, 2, 5)] == [3, 3, 1, 2, 3]
    finally:
        parallel.set_jobs(None)
    assert parallel.count_jobs(None) == 8
