import json
import threading

import numpy as np
import pytest
from contracts import InThisProcess, assert_same_bits, make_rows
from sklearn.base import clone

import tailwise
from tailwise.distributed import jobs
from tailwise.distributed.jobs import MOST_PIECES, RunError, Site
from tailwise.errors import InvalidInput
from tailwise.runs import current_run, kept

MODELS = {
    "one-vs-rest": tailwise.DiSMEC(random_state=0),
    "tree": tailwise.Bonsai(random_state=0, max_leaf=3, n_trees=2),
    "forest": tailwise.PfastreXML(random_state=0, n_trees=5),
    "stack": tailwise.Stacked([tailwise.DiSMEC(random_state=0), tailwise.Centroid()], random_state=0, max_iter=5),
    "around": tailwise.Calibrated(tailwise.Parabel(max_leaf=4, random_state=0), random_state=0),
}


@pytest.fixture(scope="module")
def rows():
    return make_rows()


class Killed(BaseException):
    """As if the process had died."""


class DyingAfter:
    """Threads that die when so many pieces are done."""

    elsewhere = False

    def __init__(self, n):
        self.left = n

    def compute(self, job, site, missing, **how):
        for piece in missing:
            if not self.left:
                raise Killed
            job.write(site, piece)
            self.left -= 1

    def end(self, job):
        pass


@pytest.mark.parametrize("name", MODELS)
def test_a_run_that_was_stopped_anywhere_goes_on_to_the_same_bits(name, rows, tmp_path):
    X, Y = rows
    expected = clone(MODELS[name]).fit(X, Y).predict_topk(X)
    stops = 0
    while True:
        try:
            with tailwise.workdir(tmp_path / "run", DyingAfter(3)):
                found = clone(MODELS[name]).fit(X, Y)
            break
        except Killed:
            stops += 1
    assert stops >= 1 or name == "one-vs-rest"
    assert_same_bits(found.predict_topk(X), expected)


def test_without_a_seed_the_run_draws_the_same_when_it_goes_on(rows, tmp_path):
    X, Y = rows
    with tailwise.workdir(tmp_path / "run"):
        first = tailwise.Bonsai(max_leaf=3).fit(X, Y)
    with tailwise.workdir(tmp_path / "run", InThisProcess(allowed=0)):
        again = tailwise.Bonsai(max_leaf=3).fit(X, Y)
    assert_same_bits(again.predict_topk(X), first.predict_topk(X))


def test_a_damaged_piece_is_computed_again(rows, tmp_path):
    X, Y = rows
    with tailwise.workdir(tmp_path / "run"):
        first = tailwise.DiSMEC(random_state=0).fit(X, Y)
    for path in (tmp_path / "run").rglob("*.shard"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
    with tailwise.workdir(tmp_path / "run"):
        again = tailwise.DiSMEC(random_state=0).fit(X, Y)
    assert_same_bits(again.predict_topk(X), first.predict_topk(X))


def test_prediction_by_ranges_of_rows(rows, tmp_path, monkeypatch):
    X, Y = rows
    monkeypatch.setattr("tailwise.base._ROWS_A_SHARD", 50)
    model = tailwise.Bonsai(random_state=0, max_leaf=3).fit(X, Y)
    apart = InThisProcess()
    with tailwise.workdir(tmp_path / "run", apart):
        found = model.predict_topk(X, 3)
    assert [arguments[1:] for arguments in apart.calls] == [(0, 0), (0, 1), (0, 2)]
    assert_same_bits(found, model.predict_topk(X, 3))


def test_several_calls_are_jobs_of_their_own(rows, tmp_path):
    X, Y = rows
    for _ in range(2):
        with tailwise.workdir(tmp_path / "run"):
            tailwise.DiSMEC(random_state=0).fit(X, Y)
            tailwise.DiSMEC(C=2.0, random_state=0).fit(X, Y)
    assert sorted(path.name for path in (tmp_path / "run").glob("job-*")) == ["job-000", "job-001"]


def test_another_n_jobs_is_the_same_run(rows, tmp_path):
    X, Y = rows
    with tailwise.workdir(tmp_path / "run"):
        tailwise.DiSMEC(random_state=0, n_jobs=1).fit(X, Y)
    with tailwise.workdir(tmp_path / "run", InThisProcess(allowed=0)):
        tailwise.DiSMEC(random_state=0, n_jobs=2).fit(X, Y)


@pytest.mark.parametrize("change", ["parameter", "rows", "labels"])
def test_another_run_in_the_folder_is_refused(change, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "_BYTES_A_DIGEST", 100)
    X, Y = rows
    with tailwise.workdir(tmp_path / "run"):
        tailwise.DiSMEC(random_state=0).fit(X, Y)
    if change == "rows":
        X = X.copy()
        X.data[-1] *= 2
    if change == "labels":
        Y = Y[:, ::-1]
    model = tailwise.DiSMEC(C=3.0 if change == "parameter" else 1.0, random_state=0)
    with (
        pytest.raises(InvalidInput, match=r"holds another run: DiSMEC\.fit with other data or parameters"),
        tailwise.workdir(tmp_path / "run"),
    ):
        model.fit(X, Y)


def test_another_version_is_refused(rows, tmp_path, monkeypatch):
    X, Y = rows
    with tailwise.workdir(tmp_path / "run"):
        tailwise.DiSMEC(random_state=0).fit(X, Y)
    now = jobs.versions()
    monkeypatch.setattr(jobs, "versions", lambda: {**now, "numba": "0.1"})
    with (
        pytest.raises(InvalidInput, match=rf"begun with numba {now['numba']}, and this process 0\.1"),
        tailwise.workdir(tmp_path / "run"),
    ):
        tailwise.DiSMEC(random_state=0).fit(X, Y)
    with pytest.raises(RunError, match="every process of a run needs the same versions"):
        jobs.Job(tmp_path / "run" / "job-000").open_inputs()


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "README").write_text("mine")
    with pytest.raises(InvalidInput, match="holds no run of tailwise"), tailwise.workdir(tmp_path):
        pass
    assert (tmp_path / "README").read_text() == "mine"


def test_a_run_within_a_run_is_refused(tmp_path):
    with (
        tailwise.workdir(tmp_path / "a"),
        pytest.raises(InvalidInput, match="within a run already"),
        tailwise.workdir(tmp_path / "b"),
    ):
        pass
    assert current_run() is None


def test_other_threads_are_not_within_the_run(tmp_path):
    seen = []
    with tailwise.workdir(tmp_path / "run"):
        thread = threading.Thread(target=lambda: seen.append(current_run()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_an_unknown_engine_is_refused(tmp_path):
    for engine in ("spark", object()):
        with pytest.raises(InvalidInput, match="engine="), tailwise.workdir(tmp_path / "run", engine):
            pass


def test_what_is_kept_outside_a_job_is_done_at_once(tmp_path):
    with tailwise.workdir(tmp_path / "run"):
        assert kept(lambda: 3) == 3


def test_inputs_name_nothing_but_calls_of_models(rows, tmp_path):
    X, Y = rows
    with tailwise.workdir(tmp_path / "run", InThisProcess()):
        tailwise.DiSMEC(random_state=0).fit(X, Y)
    job = jobs.Job(tmp_path / "run" / "job-000")
    inputs = job.open_inputs()
    inputs.call = "save"
    with pytest.raises(tailwise.errors.ModelFileError, match="a job calls 'save'"):
        inputs()


@pytest.mark.parametrize("n", [0, 1, 5, 1000, 5000])
@pytest.mark.parametrize("shape", ["equal", "skewed", "nothing"])
def test_pieces_cover_the_blocks_in_order(n, shape):
    costs = {"equal": np.ones(n), "skewed": 1 / np.arange(1, n + 1), "nothing": np.zeros(n)}[shape]
    site = Site.cut(0, None, list(range(n)), lambda block: costs[block])
    assert site.ends[0] == 0 and site.ends[-1] == n and np.all(np.diff(site.ends) > 0)
    assert site.n_pieces <= MOST_PIECES
    if shape == "skewed" and n == 5000:
        share = np.add.reduceat(costs, site.ends[:-1]) / costs.sum()
        assert share[1:].max() < 2 * max(1 / MOST_PIECES, costs.max() / costs.sum())


def test_the_folder_of_a_job_tells_what_it_is(rows, tmp_path):
    with tailwise.workdir(tmp_path / "run"):
        tailwise.DiSMEC(random_state=0).fit(*rows)
    facts = json.loads((tmp_path / "run" / "job-000" / "job.json").read_text())
    assert facts["what"] == "DiSMEC.fit" and facts["versions"]["tailwise"] == tailwise.__version__
