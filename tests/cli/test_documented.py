"""Every command line that the documentation shows, given to the real parser: no verb runs."""

import re
import shlex
from pathlib import Path

import pytest

from tailwise.cli.app import command

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(tailwise [^`]+)`")
SHELL_WORDS = ("|", ">", ">>", "<", "&&", ";")
PLACEHOLDERS = ("VERB",)


class WrongLine(Exception):
    """A command line that the parser refuses, or whose placeholders name other parameters."""


def commands_in(line):
    """The commands ``tailwise …`` of a line of shell, as lists of arguments."""
    try:
        words = shlex.split(line, comments=True, posix=False)
    except ValueError:
        return []
    found = []
    for word, before in zip(words, ["|", *words], strict=False):
        if word == "tailwise" and before in (*SHELL_WORDS, "$"):
            found.append([])
        elif word in SHELL_WORDS:
            found.append(None)
        elif found and found[-1] is not None:
            found[-1] += shlex.split(word)
    return [arguments for arguments in found if arguments is not None]


def parse(arguments, *, whole=True):
    """Bind ``arguments`` as the command would; a part of a line need not name all that is required."""
    group, context = command(), None
    try:
        while hasattr(group, "resolve_command"):
            context = group.make_context("tailwise", list(arguments), parent=context)
            name, group, arguments = group.resolve_command(context, list(arguments))
        context = group.make_context(name, list(arguments), parent=context)
    except Exception as error:
        # typer brings its own copy of click, so the class is known by its name only.
        if type(error).__name__ == "MissingParameter" and not whole:
            return
        raise WrongLine(f"{arguments}: {type(error).__name__}: {error}") from error
    for parameter in group.params:
        value = context.params.get(parameter.name)
        for one in value if isinstance(value, list | tuple) else [value]:
            named = (parameter.metavar or parameter.name).upper().split("|")
            if re.fullmatch(r"[A-Z]+…?", str(one)) and str(one) not in named:
                raise WrongLine(f"{one} stands where the command takes {' or '.join(named)}")


def shown_lines():
    """(where, arguments, whether it is a whole command) of every command line of the documentation."""
    for page in PAGES:
        text, where = page.read_text(encoding="utf-8"), str(page.relative_to(ROOT))
        for block in FENCE.findall(text):
            for line in block.splitlines()[1:-1]:
                yield from ((where, arguments, True) for arguments in commands_in(line))
        for code in INLINE.findall(FENCE.sub("", text)):
            yield from ((where, arguments, False) for arguments in commands_in(code))
    table = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE):
        yield from (("docs/command.md", shlex.split(code), True) for code in re.findall(r"`([^`]+)`", row))
    for verb, group in command().commands.items():
        for line in (group.help or "").splitlines():
            yield from ((f"tailwise {verb} --help", arguments, True) for arguments in commands_in(line.strip()))


LINES = [line for line in shown_lines() if not set(PLACEHOLDERS) & set(line[1])]


@pytest.mark.parametrize(("where", "arguments", "whole"), LINES, ids=[f"{w}: {' '.join(a)}"[:80] for w, a, _ in LINES])
def test_the_parser_takes_what_is_shown(where, arguments, whole):
    if "--help" not in arguments and arguments != ["--install-completion"]:
        parse(arguments, whole=whole)


def test_every_place_shows_something_and_every_verb_is_shown():
    places = {where for where, _, _ in LINES}
    verbs = set(command().commands)
    assert {"README.md", "docs/command.md", "docs/index.md", "docs/experiments.md"} <= places
    assert {f"tailwise {verb} --help" for verb in verbs - {"datasets"}} <= places
    assert {arguments[0] for where, arguments, _ in LINES if where == "docs/command.md"} >= verbs


@pytest.mark.parametrize(
    "line",
    [
        "tailwise explain MODEL TEXT LABEL",
        "tailwise explain my-model label text more",
        "tailwise explain my-model",
        "tailwise train data.jsonl -o m --no-such-option",
        "tailwise train data.jsonl",
        "tailwise learn data.jsonl",
        "tailwise datasets get eurlex-4k",
        "tailwise train data.jsonl -o m --tail 7",
        "cat text | tailwise suggest MODEL -k many",
    ],
)
def test_a_wrong_line_would_be_noticed(line):
    (arguments,) = commands_in(line)
    with pytest.raises(WrongLine):
        parse(arguments)


def test_commands_are_found_in_shell_lines():
    assert commands_in("$ tailwise predict m d > out.tsv  # a comment") == [["predict", "m", "d"]]
    assert commands_in("tailwise info a --label-separator '|'") == [["info", "a", "--label-separator", "|"]]
    assert commands_in("pdftotext a.pdf - | tailwise suggest m -k 10") == [["suggest", "m", "-k", "10"]]
    assert commands_in("pip install tailwise") == commands_in("it's not shell") == []
