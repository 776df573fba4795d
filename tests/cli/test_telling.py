"""What the library logs reaches whoever waits; compiling is told once, and moves on a terminal."""

import io
import logging
import sys
import time
import warnings

import pytest

from tailwise.cli import output, telling
from tailwise.parallel import count_jobs, set_jobs

log = logging.getLogger("tailwise.kernels")


@pytest.fixture(autouse=True)
def loud():
    output.set_up(False)
    yield
    output.set_up(False)


def compile_for(seconds):
    log.info("compiling f", extra={"compiling": True})
    log.info("compiling g", extra={"compiling": True})
    time.sleep(seconds)
    log.info("compiled g", extra={"compiling": False})
    log.info("compiled f", extra={"compiling": False})


def test_long_compiling_is_told_once_with_what_it_cost(capsys, monkeypatch):
    monkeypatch.setattr(telling, "_WORTH_TELLING_SECONDS", 0.02)
    monkeypatch.setattr(telling, "_TICK_SECONDS", 0.01)
    with telling.telling():
        compile_for(0.2)
        compile_for(0.2)
    err = capsys.readouterr().err
    assert err.count("compiling for this machine") == 1
    assert "compiled 4 functions in 0 s" in err
    assert "\r" not in err


def test_short_compiling_is_not_told(capsys):
    with telling.telling():
        compile_for(0)
    assert capsys.readouterr().err == ""


def test_compiling_moves_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(telling, "_WORTH_TELLING_SECONDS", 0.02)
    monkeypatch.setattr(telling, "_TICK_SECONDS", 0.01)
    with telling.telling():
        compile_for(0.3)
    shown = sys.stderr.getvalue()
    assert shown.count("\x1b[Kcompiling: ") > 2
    assert shown.endswith("\x1b[K\rcompiled 2 functions in 0 s; later runs do without\n")


def test_warnings_are_notes(capsys):
    with telling.telling():
        warnings.simplefilter("always")
        warnings.warn("rows are long", UserWarning, stacklevel=1)
        log.warning("compiled code is kept elsewhere")
        log.info("not worth a word")
    assert capsys.readouterr().err == "note: rows are long\nnote: compiled code is kept elsewhere\n"
    assert not log.parent.handlers


def test_jobs_bound_the_threads_of_a_verb(run, model, corpus):
    try:
        assert run("predict", model, corpus / "test.jsonl", "-t", "title", "--jobs", "1").code == 0
        assert count_jobs(None) == count_jobs(7) == 1
    finally:
        set_jobs(None)
    assert run("train", corpus / "train.jsonl", "-o", "m", "--jobs", "0").code == 2


def test_warm_refuses_an_unknown_model_first(run):
    wrong = run("warm", "dismec", "no-such")
    assert wrong.code == 3 and "no-such" in wrong.err
