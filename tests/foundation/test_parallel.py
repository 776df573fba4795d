import threading
import time

import pytest

from tailwise.errors import InvalidInput
from tailwise.parallel import count_jobs, map_blocks, progress, set_progress


def test_results_keep_the_order_of_blocks():
    def slow_first(block):
        time.sleep(0.05 if block == 0 else 0)
        return block

    assert map_blocks(slow_first, range(20), n_jobs=4) == list(range(20))
    assert map_blocks(slow_first, [], n_jobs=2) == []


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


def test_ctrl_c_stops_after_the_running_blocks(monkeypatch):
    ran = []

    def interrupting_wait(*args, **kwargs):
        time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr("tailwise.parallel.wait", interrupting_wait)

    def work(block):
        ran.append(block)
        time.sleep(0.1)

    with pytest.raises(KeyboardInterrupt):
        map_blocks(work, range(100), n_jobs=2)
    assert len(ran) <= 4
    assert not [t for t in threading.enumerate() if t.name.startswith("tailwise")]


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
