"""One progress for a whole run: what is done, and how long the rest takes."""

import sys

import pytest
from contracts import make_rows

import tailwise
from tailwise import parallel
from tailwise.distributed.progress import Progress


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def watched():
    """A progress, its clock, and what its bar was told."""
    clock, told = Clock(), []
    return Progress(lambda amount, note: told.append((amount, note)), clock), clock, told


def test_time_left_follows_from_the_costs_of_pieces(watched):
    progress, clock, told = watched
    with progress.site([3.0, 1.0, 4.0], found=[]) as finish:
        assert progress.seconds_left is None
        clock.now = 30.0
        finish(0)
        assert progress.done == pytest.approx(3 / 8)
        assert progress.seconds_left == pytest.approx(50.0)
        assert told[-1] == (pytest.approx(37.5), "about 50 s left")
        finish(2)
        finish(1)
    assert progress.done == pytest.approx(1.0)
    assert sum(amount for amount, _ in told) == pytest.approx(100.0)


def test_what_an_earlier_run_left_is_done_but_took_no_time(watched):
    progress, clock, _ = watched
    with progress.site([1.0] * 4, found=[0, 1]) as finish:
        assert progress.done == pytest.approx(0.5)
        assert progress.seconds_left is None
        clock.now = 10.0
        finish(2)
        assert progress.seconds_left == pytest.approx(10.0)


def test_steps_that_were_announced(watched):
    progress, clock, _ = watched
    for step in range(2):
        with progress.share(0.5), progress.share(0.25), progress.site([1.0, 1.0], found=[]) as finish:
            clock.now += 1.0
            finish(0)
            assert progress.done == pytest.approx(0.5 * step + 0.5 * 0.25 * 0.5)
            finish(1)
    assert progress.done == pytest.approx(1.0)


def test_a_step_that_is_read_took_no_time(watched):
    progress, clock, _ = watched
    with progress.share(0.5):
        pass
    with progress.share(0.5), progress.site([1.0, 1.0], found=[]) as finish:
        clock.now = 5.0
        finish(0)
        assert progress.done == pytest.approx(0.75)
        assert progress.seconds_left == pytest.approx(5.0)


def test_a_site_that_nobody_announced_makes_room_for_itself(watched):
    progress, clock, _ = watched
    for number in range(1, 4):
        with progress.site([2.0], found=[]) as finish:
            assert progress.done == pytest.approx((number - 1) / number)
            clock.now += 1.0
            finish(0)
            assert progress.done == pytest.approx(1.0)


class Watched(Progress):
    seen: list = []

    def _show(self):
        self.seen.append(self.done)
        super()._show()


@pytest.mark.parametrize(
    "model",
    [
        tailwise.DiSMEC(random_state=0),
        tailwise.Stacked([tailwise.DiSMEC(random_state=0), tailwise.Centroid()], random_state=0, max_iter=5),
        tailwise.Calibrated(tailwise.DiSMEC(random_state=0), random_state=0),
    ],
    ids=["one-vs-rest", "stack", "around"],
)
def test_a_run_goes_from_nothing_to_all(model, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["tailwise.distributed.workdir"], "Progress", Watched)
    for _ in range(2):
        monkeypatch.setattr(Watched, "seen", [])
        with tailwise.workdir(tmp_path / "run"):
            model.fit(*make_rows())
        assert Watched.seen == sorted(Watched.seen)
        assert Watched.seen[-1] == pytest.approx(1.0)
    # The second run found everything.


def test_one_bar_for_a_run_on_standard_error(tmp_path, capsys):
    parallel.set_progress(True)
    try:
        with tailwise.workdir(tmp_path / "run"):
            tailwise.DiSMEC(random_state=0).fit(*make_rows())
    finally:
        parallel.set_progress(None)
    lines = [line for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert len(lines) == 1
    assert "DiSMEC.fit" in lines[0]
    assert "100%" in lines[0]
