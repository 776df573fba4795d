import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from contracts import InThisProcess, assert_same_bits, make_rows
from sklearn.base import clone

import tailwise
from tailwise.distributed import Processes, RayExecutor, RunError, Submitting
from tailwise.distributed.engines import Lost
from tailwise.distributed.programs import compute_piece

MODEL = tailwise.Bonsai(random_state=0, max_leaf=3, n_trees=2)


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def expected(rows):
    return clone(MODEL).fit(*rows).predict_topk(rows[0])


class Failing(InThisProcess):
    """Fails the first ``n`` times that any one piece is asked for."""

    def __init__(self, n, error):
        super().__init__()
        self.n, self.error = n, error
        self.asked = {}

    def submit(self, function, *arguments):
        self.asked[arguments] = self.asked.get(arguments, 0) + 1
        if self.asked[arguments] <= self.n:
            future = Future()
            future.set_exception(self.error)
            return future
        return super().submit(function, *arguments)


def fit(tmp_path, engine, rows):
    with tailwise.workdir(tmp_path / "run", engine):
        return clone(MODEL).fit(*rows).predict_topk(rows[0])


def test_an_executor_of_threads_is_an_engine(rows, expected, tmp_path):
    with ThreadPoolExecutor(3) as executor:
        assert_same_bits(fit(tmp_path, executor, rows), expected)


def test_a_piece_that_fails_twice_is_tried_a_third_time(rows, expected, tmp_path):
    assert_same_bits(fit(tmp_path, Failing(2, OSError("the disk is slow")), rows), expected)


def test_a_piece_that_fails_three_times_stops_the_run_and_what_is_done_stays(rows, expected, tmp_path):
    with pytest.raises(RunError, match=r"piece 0 of site 0 failed 3 times.*OSError\('full'\).*is kept in"):
        fit(tmp_path, Failing(3, OSError("full")), rows)
    assert_same_bits(fit(tmp_path, InThisProcess(), rows), expected)


def test_an_error_of_tailwise_is_not_tried_again(rows, tmp_path):
    engine = Failing(1, RunError("of another version"))
    with pytest.raises(RunError, match="of another version"):
        fit(tmp_path, engine, rows)
    assert set(engine.asked.values()) == {1}


class Losing(Submitting):
    """Loses every second piece the first time."""

    def __init__(self, always=False):
        super().__init__(InThisProcess())
        self.seen, self.always, self.made_anew = set(), always, 0

    def submit(self, name, *arguments):
        if self.always or (arguments not in self.seen and arguments[-1] % 2):
            self.seen.add(arguments)
            future = Future()
            future.set_exception(Lost("killed"))
            return future
        return super().submit(name, *arguments)

    def replaced(self):
        self.made_anew += 1


def test_what_is_lost_is_computed_by_others(rows, expected, tmp_path):
    engine = Losing()
    assert_same_bits(fit(tmp_path, engine, rows), expected)
    assert engine.made_anew >= len(engine.seen) > 3


def test_processes_that_die_one_after_the_other_stop_the_run(rows, tmp_path):
    with pytest.raises(RunError, match="processes die one after the other"):
        fit(tmp_path, Losing(always=True), rows)


def test_a_file_system_that_is_not_shared_is_told(rows, tmp_path):
    class Elsewhere(InThisProcess):
        def submit(self, function, folder, *numbers):
            return super().submit(lambda: "00" * 32)

    with pytest.raises(RunError, match="lies on a file system that all its processes share"):
        fit(tmp_path, Elsewhere(), rows)
    with pytest.raises(RunError, match="this process does not see"):
        compute_piece(str(tmp_path / "nowhere"), 0, 0)


def test_a_piece_that_the_program_does_not_have_is_refused(rows, tmp_path):
    fit(tmp_path, InThisProcess(), rows)
    with pytest.raises(RunError, match="did not come to its site 99"):
        compute_piece(str(tmp_path / "run" / "job-000"), 99, 0)


def test_processes_and_their_death(rows, expected, tmp_path):
    engine = Processes(2)
    killed = []

    def kill():
        while not (tmp_path / "run").glob("**/*.shard") or not getattr(engine, "_executor", None):
            time.sleep(0.05)
        while len(killed) < 2:
            for pid in list(getattr(engine._executor, "_processes", None) or {})[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            time.sleep(1.0)

    threading.Thread(target=kill, daemon=True).start()
    try:
        assert_same_bits(fit(tmp_path, engine, rows), expected)
    finally:
        killed.extend([0, 0])
        engine.close()


_KILLED = """
import sys
from tailwise.distributed import Processes

if __name__ == "__main__":
    engine = Processes(2)
    engine.submit("nothing", "no-such-folder", 0, 0)
    print(*engine._executor._processes, flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
def test_processes_end_when_their_run_is_killed(tmp_path):
    (tmp_path / "run.py").write_text(_KILLED)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, str(tmp_path / "run.py")], **pipes) as run:
        workers = [Path(f"/proc/{pid}") for pid in run.stdout.readline().decode().split()]
        assert workers and all(worker.exists() for worker in workers)
        run.kill()
    ends = time.monotonic() + 60
    while any(worker.exists() for worker in workers):
        assert time.monotonic() < ends, "processes are left over"
        time.sleep(0.1)


def test_dask(rows, expected, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert_same_bits(fit(tmp_path, client, rows), expected)
        assert client.status == "running"
    with pytest.raises(RunError, match="no Dask scheduler answers"), pytest.MonkeyPatch.context() as patch:
        patch.setattr("tailwise.distributed.engines.Dask._PATIENCE_SECONDS", 0.5)
        fit(tmp_path / "other", "dask://127.0.0.1:9", rows)


def test_ray(rows, expected, tmp_path):
    ray = pytest.importorskip("ray", reason="ray is not installed")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        assert_same_bits(fit(tmp_path, RayExecutor(), rows), expected)
    finally:
        ray.shutdown()
