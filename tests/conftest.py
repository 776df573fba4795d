from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run: a red suite means a changed program, not another draw.
settings.register_profile("same", derandomize=True)
settings.load_profile("same")

pytest.register_assert_rewrite("contracts")

# A shell makes its background jobs deaf to Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of development data beside the project; tests that need it are skipped where it is absent."""
    if not _SHARED_DATA.is_dir():
        pytest.skip("the development data is not beside this checkout (../shared/data)")
    return _SHARED_DATA


@pytest.fixture(autouse=True, scope="session")
def _one_thread_for_blas() -> None:
    """Two test workers on two cores: BLAS threads would only get in each other's way."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
