from __future__ import annotations

import os
import signal
import socket

import pytest
from hypothesis import HealthCheck, settings

# The first call of a kernel compiles it, and two workers share the machine: time says nothing about an example.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# The same examples in every run: a red suite means a changed program, not another draw. `make test-random` explores.
settings.register_profile("same", derandomize=True, **_PATIENT)
settings.register_profile("random", derandomize=False, print_blob=True, **_PATIENT)
settings.load_profile(os.environ.get("TAILWISE_TEST_PROFILE", "same"))

pytest.register_assert_rewrite("contracts")

# A shell makes its background jobs deaf to Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _one_thread_for_blas() -> None:
    """Two test workers on two cores: BLAS threads would only get in each other's way."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


@pytest.fixture(autouse=True, scope="session")
def _no_network():
    """A test that asks another machine fails wherever it runs, not only where there is no network."""
    connect = socket.socket.connect

    def connect_here(self, address):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            here = address[0] in ("", "localhost", "::1") or address[0].startswith("127.")
            assert here, f"a test asked the network for {address}"
        return connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect_here)
        yield
