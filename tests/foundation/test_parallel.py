import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tailwise.embedding import ExactIndex
from tailwise.errors import InvalidInput
from tailwise.parallel import SharedSetting, count_jobs, map_blocks, map_shards, progress, set_progress


def test_results_keep_the_order_of_blocks():
    def slow_first(block):
        time.sleep(0.05 if block == 0 else 0)
        return block

    assert map_blocks(slow_first, range(20), n_jobs=4) == list(range(20))
    assert map_blocks(slow_first, [], n_jobs=2) == []


def test_the_dearest_shards_start_first_and_results_keep_their_order():
    begun = []

    def square(block):
        begun.append(block)
        return block**2

    assert map_shards(square, [1, 5, 2, 5, 3], n_jobs=1, weight=float) == [1, 25, 4, 25, 9]
    assert begun == [5, 5, 3, 2, 1]
    taken = []
    assert map_shards(square, [1, 3, 2], take=lambda *pair: taken.append(pair), n_jobs=1, weight=float) == []
    assert taken == [(3, 9), (2, 4), (1, 1)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_stops_the_rest(n_jobs):
    started = []

    def fail(block):
        started.append(block)
        if block == 1:
            raise RuntimeError("block 1")
        time.sleep(0.01)

    with pytest.raises(RuntimeError, match="block 1"):
        map_blocks(fail, range(200), n_jobs=n_jobs)
    assert len(started) < 100


def interrupt_after(seconds):
    """Ctrl-C for the main thread of this process."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


def wait_for_workers():
    for thread in threading.enumerate():
        if thread.name.startswith("tailwise"):
            thread.join(10)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_does_not_wait_for_the_running_blocks(n_jobs):
    ran, may_end = [], threading.Event()

    def work(block):
        ran.append(block)
        may_end.wait(10)

    interrupt_after(0.1)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        map_blocks(work, range(100), n_jobs=n_jobs, description="Working")
    assert time.monotonic() - start < 5
    may_end.set()
    wait_for_workers()
    assert ran == list(range(n_jobs))


def test_ctrl_c_stops_the_work_that_blocks_had_given_to_others():
    inner = []

    def outer(block):
        def work(part):
            inner.append(part)
            time.sleep(0.05)

        map_blocks(work, range(1000), n_jobs=1 + block)

    interrupt_after(0.2)
    with pytest.raises(KeyboardInterrupt):
        map_blocks(outer, range(2), n_jobs=2)
    wait_for_workers()
    assert 2 <= len(inner) < 200
    assert not [t for t in threading.enumerate() if t.name.startswith("tailwise")]


def test_without_memory_for_threads_the_work_is_done_here(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert map_blocks(lambda block: threading.current_thread().name, range(3), n_jobs=2) == ["MainThread"] * 3


def test_a_shared_setting_is_taken_back_by_the_last_one_within():
    threads, said = [8], []

    def change():
        before, threads[0] = threads[0], 1
        return lambda: threads.__setitem__(0, before)

    setting = SharedSetting(change)
    first_is_in, second_is_in, first_is_out = (threading.Event() for _ in range(3))

    def first():
        with setting:
            first_is_in.set()
            second_is_in.wait(10)
        said.append(threads[0])
        first_is_out.set()

    def second():
        first_is_in.wait(10)
        with setting:
            second_is_in.set()
            first_is_out.wait(10)
            said.append(threads[0])

    both = [threading.Thread(target=target) for target in (first, second)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join(20)
    assert said == [1, 1] and threads == [8]


def test_blas_has_its_threads_back_after_predictions_side_by_side():
    def limits():
        return {lib["filepath"]: lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}

    rng = np.random.default_rng(0)
    index = ExactIndex(n_jobs=1).build(rng.normal(size=(2000, 16)))
    queries = rng.normal(size=(600, 16)).astype(np.float32)
    with threadpool_limits(2, user_api="blas"):
        before = limits()
        map_blocks(lambda block: index.search(queries[: 200 * block], 3), [1, 2, 3, 1, 2, 3], n_jobs=3)
        assert limits() == before


@pytest.mark.parametrize("setting", [None, True])
def test_progress_without_a_standard_error(monkeypatch, setting):
    monkeypatch.setattr(sys, "stderr", None)
    try:
        set_progress(setting)
        assert map_blocks(lambda block: block, [1, 2], n_jobs=1, description="Counting") == [1, 2]
    finally:
        set_progress(None)


def test_count_jobs():
    assert count_jobs(3) == 3
    assert count_jobs(-1) == count_jobs(None) >= 1
    assert count_jobs(-1000) == 1
    for bad in (0, True, "2"):
        with pytest.raises(InvalidInput, match="n_jobs="):
            count_jobs(bad)


def test_progress_goes_to_standard_error_and_can_be_switched(capsys):
    try:
        set_progress(True)
        map_blocks(lambda block: block, [1, 2], n_jobs=1, description="Counting")
        with progress("Steps", total=1) as advance:
            advance(note="loss 0.5")
        shown = capsys.readouterr()
        assert "Counting" in shown.err and "loss 0.5" in shown.err and shown.out == ""
        set_progress(False)
        map_blocks(lambda block: block, [1, 2], n_jobs=1, description="Counting")
        assert capsys.readouterr().err == ""
    finally:
        set_progress(None)
