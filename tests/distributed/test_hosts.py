"""Three hosts with networks of their own on one machine: a scheduler, and two that work."""

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from contracts import assert_same_bits, make_rows

import tailwise

NET = "10.213.77"
HOSTS = [f"tailwise-{os.getpid()}-{number}" for number in (1, 2, 3)]
CANNOT = 77
WORK = """
import sys
import tailwise
from contracts import make_rows
from tailwise.distributed import Dask

engine = Dask(sys.argv[1])
engine._executor.wait_for_workers(2, timeout=60)
with tailwise.workdir(sys.argv[2] + "/run", engine):
    tailwise.Bonsai(random_state=0, max_leaf=3).fit(*make_rows()).save(sys.argv[2] + "/model")
print(*(where.split("//")[1].split(":")[0] for where in engine._executor.scheduler_info()["workers"]))
"""


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], check=check, capture_output=True, text=True)


def make_hosts(ends):
    """Three network namespaces joined by a bridge; the bridge is in the namespace of this process."""
    made = ip("link", "add", "hosts", "type", "bridge", check=False)
    if made.returncode:
        print(f"this system makes no bridges ({made.stderr.strip()})")
        sys.exit(CANNOT)
    ip("link", "set", "hosts", "up")
    for number, name in enumerate(HOSTS, start=1):
        made = ip("netns", "add", name, check=False)
        if made.returncode:
            print(f"this system makes no network namespaces ({made.stderr.strip()})")
            sys.exit(CANNOT)
        ends.callback(ip, "netns", "del", name, check=False)
        ip("link", "add", f"host{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", f"host{number}", "master", "hosts", "up")
        ip("-n", name, "addr", "add", f"{NET}.{number}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "link", "set", "lo", "up")


def main(folder):
    """Train on the three hosts; says which of them worked."""
    address = f"tcp://{NET}.1:8786"
    dask = str(Path(sys.executable).parent / "dask")
    scheduler = [dask, "scheduler", "--host", f"{NET}.1", "--port", "8786", "--no-dashboard"]
    worker = [dask, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    on = ["ip", "netns", "exec"]
    with ExitStack() as ends:
        make_hosts(ends)
        for host, command in zip(HOSTS, [scheduler, worker, worker], strict=True):
            process = subprocess.Popen([*on, host, *command], **quiet)
            ends.callback(process.wait)
            ends.callback(process.kill)
        work = [*on, HOSTS[0], sys.executable, "-c", WORK, address, folder]
        return subprocess.run(work, timeout=200, check=False).returncode


def test_a_run_over_three_hosts(tmp_path):
    pytest.importorskip("distributed", reason="needs the extra dask")
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("hosts of their own network need root and the commands ip and unshare")
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join(filter(None, [tests, os.environ.get("PYTHONPATH")]))
    # In a network of its own: a browser of another test takes a new interface for a changed network.
    done = subprocess.run(
        ["unshare", "--net", sys.executable, __file__, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONPATH": paths},
    )
    if done.returncode == CANNOT or "unshare" in done.stderr:
        pytest.skip(done.stdout or done.stderr)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {f"{NET}.2", f"{NET}.3"}
    X, Y = make_rows()
    expected = tailwise.Bonsai(random_state=0, max_leaf=3).fit(X, Y).predict_topk(X)
    assert_same_bits(tailwise.load(tmp_path / "model").predict_topk(X), expected)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
