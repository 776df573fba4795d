"""One small library, one service and one browser for all tests of the pages."""

import threading
import time
from contextlib import contextmanager

import pytest

from serving.pages.browsing import start
from serving.pages.small_world import TEXT, make_world

_HERE = ("http://127.0.0.1:", "data:", "blob:", "about:", "chrome:")
"""What is asked of no other machine; the browser's own first page is slow to come where the machine is busy."""


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """The folder of the model ``subjects`` and of the audit ``check``."""
    return make_world(tmp_path_factory.mktemp("world"))


@contextmanager
def served(**settings):
    """The address of a service that runs in this process."""
    import uvicorn

    from tailwise.serving.app import create_app
    from tailwise.serving.service import Service
    from tailwise.serving.settings import Settings

    service = Service(Settings(**settings))
    if service.settings.models:
        service.shelf.open()
    server = uvicorn.Server(uvicorn.Config(create_app(service), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the service did not start"
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="session")
def home(world):
    """The address of the service with the model and the audit."""
    from tailwise.serving.settings import ModelSource

    models = {"subjects": ModelSource(world / "subjects", name="Subjects")}
    with served(models=models, audits={"check": str(world / "check")}) as address:
        yield address


@pytest.fixture(scope="session")
def guarded(world):
    """The address of a service that asks for a token before it takes answers."""
    with served(audits={"check": str(world / "check")}, token="a long secret") as address:
        yield address


@pytest.fixture(scope="session")
def one_browser(tmp_path_factory):
    """A browser; skipped where none is installed."""
    made = start(tmp_path_factory.mktemp("profile"))
    yield made
    made.driver.quit()


@pytest.fixture
def browser(one_browser):
    """The browser; after the test nothing is in its console, and nothing was asked of other machines."""
    one_browser.complaints(), one_browser.requests()
    yield one_browser
    assert one_browser.complaints() == []
    elsewhere = [url for url in one_browser.requests() if not url.startswith(_HERE)]
    assert elsewhere == []


@pytest.fixture
def page(browser, home):
    """The page at ``/`` with suggestions for the text."""
    browser.show(f"{home}/")
    browser.write(TEXT)
    return browser
