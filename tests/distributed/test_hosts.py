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
BRIDGE = f"twb{os.getpid() % 100000}"


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], check=check, capture_output=True, text=True)


@pytest.fixture
def hosts():
    """The names of three network namespaces, joined by a bridge that this host is on too."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("hosts of their own network need root and the command ip")
    with ExitStack() as ends:
        made = ip("link", "add", BRIDGE, "type", "bridge", check=False)
        if made.returncode:
            pytest.skip(f"this system makes no bridges ({made.stderr.strip()})")
        ends.callback(ip, "link", "del", BRIDGE, check=False)
        ip("addr", "add", f"{NET}.254/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        names = []
        for number in range(1, 4):
            name = f"{BRIDGE}h{number}"
            made = ip("netns", "add", name, check=False)
            if made.returncode:
                pytest.skip(f"this system makes no network namespaces ({made.stderr.strip()})")
            ends.callback(ip, "netns", "del", name, check=False)
            ip("link", "add", f"{BRIDGE}v{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"{BRIDGE}v{number}", "master", BRIDGE, "up")
            ip("-n", name, "addr", "add", f"{NET}.{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            names.append(name)
        yield names


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


def test_a_run_over_three_hosts(hosts, tmp_path):
    pytest.importorskip("distributed", reason="needs the extra dask")
    X, Y = make_rows()
    address = f"tcp://{NET}.1:8786"
    dask = str(Path(sys.executable).parent / "dask")
    scheduler = [dask, "scheduler", "--host", f"{NET}.1", "--port", "8786", "--no-dashboard"]
    worker = [dask, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    on = ["ip", "netns", "exec"]
    with ExitStack() as ends:
        for host, command in zip(hosts, [scheduler, worker, worker], strict=True):
            process = subprocess.Popen([*on, host, *command], **quiet)
            ends.callback(process.wait)
            ends.callback(process.kill)
        done = subprocess.run(
            [*on, hosts[0], sys.executable, "-c", WORK, address, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=200,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {f"{NET}.2", f"{NET}.3"}
    expected = tailwise.Bonsai(random_state=0, max_leaf=3).fit(X, Y).predict_topk(X)
    assert_same_bits(tailwise.load(tmp_path / "model").predict_topk(X), expected)
