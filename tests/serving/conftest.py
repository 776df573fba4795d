"""Small models to serve: of texts with two fields, names in two languages, notations, records kept."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tailwise import Bonsai, DiSMEC, Tagger, TextFeatures
from tailwise.data import Texts
from tailwise.serving.app import create_app
from tailwise.serving.service import Service
from tailwise.serving.settings import Settings

WORDS = {
    "tax": "income duty levy revenue treasury",
    "fish": "sea cod trawler quota catch",
    "steel": "iron furnace coal mill ore",
    "wine": "grape vineyard bottle vintage cellar",
}
GERMAN = {"tax": "Steuer", "fish": "Fisch", "steel": "Stähle", "wine": "Wein", "tea": "Tee"}


def uri(name):
    return f"http://example.org/{name}"


def records(n=240):
    """Titles and abstracts about one or two subjects, and which."""
    names = list(WORDS)
    titles, abstracts, labels = [], [], []
    for i in range(n):
        own = {names[i % 4]} | ({names[(i // 4) % 4]} if i % 3 == 0 else set())
        words = " ".join(" ".join(WORDS[label].split()[j % 5] for j in range(i, i + 4)) for label in sorted(own))
        titles.append(f"On {names[i % 4]} number{i}")
        abstracts.append(words)
        labels.append([uri(name) for name in sorted(own)])
    return Texts({"title": titles, "abstract": abstracts}), labels


def vocabulary():
    from tailwise.vocabulary.building import Builder

    builder = Builder()
    for place, (name, german) in enumerate(GERMAN.items()):
        concept = builder.concept(uri(name))
        builder.add_name(concept, name, "en")
        builder.add_name(concept, german, "de")
        builder.add_notation(concept, f"{place}.1")
    return builder.build()


def tagger(model=None, *, seed=0, keep=True):
    texts, labels = records()
    made = Tagger(model or DiSMEC(), features=TextFeatures(min_df=1), random_state=seed, keep_training_data=keep)
    return made.fit(texts, labels, vocab=vocabulary())


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A folder with the models ``subjects`` (learns, explains) and ``other`` (keeps no records)."""
    folder = tmp_path_factory.mktemp("models")
    tagger().save(folder / "subjects")
    tagger(Bonsai(), keep=False).save(folder / "other")
    return folder


@pytest.fixture
def copied(models, tmp_path):
    """The same folder, to be changed."""
    shutil.copytree(models, tmp_path / "models")
    return tmp_path / "models"


def client_of(folder, **given):
    """A client of an application that serves the models of a folder, whatever breaks in it raises here."""
    service = Service(Settings(folders=(Path(folder),), **given))
    service.shelf.open()
    return TestClient(create_app(service))


@pytest.fixture(scope="session")
def client(models):
    with client_of(models) as found:
        yield found


class Live:
    """``tailwise serve`` as a process."""

    def __init__(self, log, *arguments, **environment):
        self.log = log
        with log.open("w") as sink:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tailwise.cli", "serve", "--port", "0", *map(str, arguments)],
                stderr=sink,
                stdout=sink,
                env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            )
        self.url = None
        for _ in range(1200):
            said = [line for line in log.read_text().splitlines() if line.startswith("serving ")]
            if said:
                self.url = said[0].partition("http://")[2].partition("/")[0]
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        self.stop()
        raise AssertionError(log.read_text())

    def lines(self):
        """What was logged as JSON."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def ask(self, path, body=None, headers=None, kind="application/json"):
        """Status and answer of one request."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {**({} if data is None else {"Content-Type": kind}), **(headers or {})}
        request = urllib.request.Request(f"http://{self.url}{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as found:
                return found.status, found.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


@pytest.fixture(scope="session")
def one_worker(models, tmp_path_factory):
    """A service that tests share, which gives up early on slow requests."""
    service = Live(tmp_path_factory.mktemp("one") / "log", models, "--workers", 1, TAILWISE_SERVE_HEAD_SECONDS="1")
    yield service
    service.stop()


@pytest.fixture
def live(tmp_path):
    """Start services that end with the test: ``live(folder, "--workers", 2)``."""
    started, numbers = [], itertools.count()

    def start(*arguments, **environment):
        started.append(Live(tmp_path / f"serve-{next(numbers)}.log", *arguments, **environment))
        return started[-1]

    yield start
    for one in started:
        one.stop()
