"""Is a model with one changed bit refused, and harmless without verification?

With verification every change must be refused or give the same bits. Without it, sizes, headers and indices are
looked at: what opens and answers with other numbers counts as changed; an exception that is not tailwise's, or the
death of the process that predicts with it, counts as broken.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drills.harness import Outcome, identity, processes, small_model
from tailwise.persistence.manifest import MANIFEST

COUNT = 10_000
MODEST = 500


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    path = folder / "model"
    small_model(0).save(path)
    for verify in (True, False):
        yield flips(count, path, verify)


def flips(count: int, path: Path, verify: bool) -> Outcome:
    """Flip one bit at a time, in a process that is started again where it dies."""
    outcome, context, done = Outcome(f"verify={verify}"), processes(), 0
    good = {file.name: file.read_bytes() for file in sorted(path.iterdir())}
    while done < count:
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=_flip_on, args=(theirs, path, verify, done, count))
        worker.start()
        theirs.close()
        try:
            while done < count:
                outcome.count(*ours.recv())
                done += 1
        except EOFError:
            worker.join()
            code = worker.exitcode or 0
            outcome.count("broken", f"the process died: {signal.Signals(-code).name if code < 0 else code}")
            done += 1
        worker.join()
        for name, content in good.items():
            (path / name).write_bytes(content)
    return outcome


def _flip_on(pipe: Any, path: Path, verify: bool, start: int, count: int) -> None:
    known = {identity(small_model(0))}
    files = sorted(path.iterdir())
    for number in range(start, count):
        chance = random.Random(number)
        # The manifest is text, and refused whole by its own digest: one flip in ten is enough for it.
        chosen = chance.choice([f for f in files if (f.name == MANIFEST) == (number % 10 == 0)])
        content = bytearray(chosen.read_bytes())
        # Half of the flips hit the header or what follows it: small arrays and the first offsets.
        at = chance.randrange(min(256, len(content)) if number % 2 else len(content))
        content[at] ^= 1 << chance.randrange(8)
        good = chosen.read_bytes()
        _overwrite(chosen, bytes(content))
        outcome = Outcome("")
        outcome.judge(path, known, verify=verify)
        _overwrite(chosen, good)
        kind = next(kind for kind in ("intact", "refused", "changed", "broken") if getattr(outcome, kind))
        pipe.send((kind, next(iter(outcome.reasons), "")))


def _overwrite(path: Path, content: bytes) -> None:
    # A new file: the old one may still be mapped.
    scratch = path.with_suffix(".flip")
    scratch.write_bytes(content)
    scratch.replace(path)
