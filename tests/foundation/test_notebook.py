import io
import sys
import types

from tailwise import notebook, parallel


def as_kernel(monkeypatch):
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(notebook, "_SECONDS_BETWEEN", 0.0)


def test_progress_in_a_notebook_is_a_line_that_moves_and_goes(monkeypatch):
    as_kernel(monkeypatch)
    assert parallel.map_blocks(lambda block: block, [1, 2], n_jobs=1, description="Counting") == [1, 2]
    written = sys.stderr.getvalue()
    assert "\rCounting: 50 %, 0 s" in written and "\rCounting: 100 %, 0 s" in written
    assert written.endswith(" \r"), "nothing is left"
    with notebook.moving_line("Reading", None) as advance:
        advance(3, "loss 0.1")
    assert "\rReading: 3, 0 s loss 0.1" in sys.stderr.getvalue()


def test_a_terminal_of_ipython_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace()))
    assert not notebook.in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    assert not notebook.in_notebook()


def test_work_that_is_done_at_once_writes_nothing(monkeypatch):
    as_kernel(monkeypatch)
    monkeypatch.setattr(notebook, "_SECONDS_BETWEEN", 60.0)
    parallel.map_blocks(lambda block: block, [1, 2], n_jobs=1, description="Counting")
    assert sys.stderr.getvalue() == ""
