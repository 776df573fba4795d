"""Do the readers take what a format allows, refuse everything else with its line, and never do anything else?

Each try changes a valid file: bits flip, pieces are cut, repeated, or taken from other places and from a list of nasty
ones. The reader and a plain twin of it then read the file. Both read the same, or both refuse: all else is broken.
"""

from __future__ import annotations

import random
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from drills.formats import DAMAGED, Reader, readers, same
from drills.harness import Outcome, wanted
from tailwise.errors import DataFormatError, TailwiseError

COUNT = 20_000
MODEST = 1_000

_SLOW_SECONDS = 10.0
_WHOLE = (
    r"no row|damaged|no <label>|more bytes|the columns|no concept|no skos|resources nested|a skos:Concept without"
    r"|nested too deeply|Exceeds the limit|a lone surrogate|no names|an empty id|[0-9,]+ rows|an answer without"
)
"""How the refusal of a file as a whole begins."""
NASTY = (
    *(bytes([byte]) for byte in b"\n\r\0\x1b\x85\xff\"'\\,;: \t#%{}[]-+.e0_"),
    *(b"\r\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xd9\xa1", b"\\ud800"),
    *(b"1_0", b"nan", b"inf", b"1e39", b"1e-50", b"2147483647", b"4294967296", b"9" * 30, b"9" * 5000, b"[" * 1200),
    *(b"<!DOCTYPE a>", b"&amp;", b"<label name='b'/>"),
)


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    """Each reader with ``count`` changed files."""
    warnings.filterwarnings("ignore", ".*features are taken to count from 1")
    for reader in readers():
        if not wanted(reader.name):
            continue
        outcome = Outcome(reader.name)
        for number in range(count):
            chance = random.Random(f"{reader.name} {number}")
            path = folder / f"file{reader.suffix}"
            path.write_bytes(reader.packed(_changed(reader.seed, chance) if number else reader.seed))
            outcome.count(*judge(reader, path))
        yield outcome


def judge(reader: Reader, path: Path) -> tuple[str, str]:
    """How reading the file ended, as :class:`drills.harness.Outcome` counts it, and why."""
    started = time.monotonic()
    refusal: TailwiseError | None = None
    found = expected = None
    try:
        found = reader.read(path)
    except TailwiseError as error:
        refusal = error
    except Exception as error:
        return "broken", f"{_start(path)}: {error!r}"
    if time.monotonic() - started > _SLOW_SECONDS:
        return "broken", f"{_start(path)}: slow"
    if refusal is not None and not _is_told(refusal, path, reader.one_record):
        return "broken", f"no file, or no line: {refusal}"
    if reader.twin is None:
        if refusal is not None:
            return "refused", ""
        return ("intact", "") if reader.sound(found) else ("broken", f"read what cannot be: {_start(path)}")
    try:
        expected = reader.twin(path.read_bytes())
        readable = True
    except (ValueError, *DAMAGED):
        readable = False
    if readable and refusal is not None:
        return ("refused", "") if reader.stricter else ("broken", f"refused what can be read: {refusal}")
    if not readable and refusal is None:
        return "broken", f"read what cannot be: {_start(path)}"
    if refusal is not None:
        return "refused", ""
    return ("intact", "") if same(found, expected) else ("broken", f"read otherwise: {_start(path)}")


def _is_told(refusal: TailwiseError, path: Path, one_record: bool) -> bool:
    """Whether a refusal names the file, and the line unless it is of the file as a whole."""
    if not isinstance(refusal, DataFormatError):
        return str(path) in str(refusal)
    return one_record or refusal.line is not None or re.match(_WHOLE, refusal.found) is not None


def _start(path: Path) -> str:
    return repr(path.read_bytes()[:200])


def _changed(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        a, b = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
        b = min(b, a + chance.choice((1, 3, 10, 1000)))
        match chance.randrange(5):
            case 0 if data:
                at = chance.randrange(len(data))
                data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
            case 1:
                data = data[:a] + data[b:]
            case 2:
                data = data[:b] + data[a:b] * chance.choice((1, 2, 50)) + data[b:]
            case 3:
                at = chance.randrange(len(data) + 1)
                data = data[:at] + data[a:b] + data[at:]
            case _:
                data = data[:a] + chance.choice(NASTY) + data[a if chance.random() < 0.5 else b :]
    return data
