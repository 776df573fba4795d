"""A small corpus, and running the command as a user would."""

import json
from typing import NamedTuple

import pytest

from tailwise.cli import main
from tailwise.cli.app import command
from tailwise.parallel import set_progress

WORDS = {
    "tax": "income duty levy revenue treasury",
    "fish": "sea cod trawler quota catch",
    "steel": "iron furnace coal mill ore",
    "wine": "grape vineyard bottle vintage cellar",
}


def every_verb(group=None, before=()):
    """The words of each verb that can be run: ("train",), ("audit", "plan"), …"""
    for name, verb in (group or command()).commands.items():
        if hasattr(verb, "commands"):
            yield from every_verb(verb, (*before, name))
        else:
            yield (*before, name)


def pytest_generate_tests(metafunc):
    """A test of ``each_verb`` is one of each verb, those of groups too."""
    if "each_verb" in metafunc.fixturenames:
        verbs = list(every_verb())
        metafunc.parametrize("each_verb", verbs, ids=[" ".join(words) for words in verbs])


class Run(NamedTuple):
    """What one command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command line; ``stdin`` is what it reads."""
    import io
    import sys

    def call(*arguments, stdin=""):
        monkeypatch.setattr(
            sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin if isinstance(stdin, bytes) else stdin.encode()))
        )
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        finally:
            set_progress(None)
        captured = capsys.readouterr()
        return Run(int(code), captured.out, captured.err)

    return call


def records(n=80):
    """Rows about one or two of the words, with those as labels."""
    names = list(WORDS)
    rows = []
    for i in range(n):
        labels = [names[i % 4]] + ([names[(i // 4) % 4]] if i % 3 == 0 and (i // 4) % 4 != i % 4 else [])
        words = " ".join(" ".join(WORDS[label].split()[j % 5] for j in range(i, i + 4)) for label in labels)
        rows.append({"title": f"On {labels[0]} {i}", "body": words, "labels": labels})
    return rows


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A folder with train.jsonl, test.jsonl, train.csv and names.json."""
    folder = tmp_path_factory.mktemp("corpus")
    for name, rows in (("train", records()), ("test", records(24))):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = ["title,body,tags"] + [f"{r['title']},{r['body']},{'|'.join(r['labels'])}" for r in records()]
    (folder / "train.csv").write_text("\n".join(lines) + "\n")
    (folder / "names.json").write_text(json.dumps({label: f"The {label}" for label in WORDS}))
    return folder


@pytest.fixture(scope="session")
def model(corpus, tmp_path_factory):
    """A centroid model of the corpus, trained by the command."""
    path = tmp_path_factory.mktemp("models") / "centroid"
    arguments = ["train", corpus / "train.jsonl", "-o", path, "-m", "centroid", "-t", "title,body", "-q"]
    assert main([*map(str, arguments), "--label-names", str(corpus / "names.json")]) == 0
    set_progress(None)
    return path
