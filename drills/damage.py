"""Is a changed bit in a folder of rows, of a run or of an audit refused, mended or harmless?

Rows must be read as they were written, or refused. A run that is begun again must end with the bits of a fit in
memory, or be refused. An audit may only fail as tailwise does: a database has no digests, so that what is read may
have changed.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from drills.harness import Outcome, tried_apart
from drills.zoo import rows
from tailwise.errors import TailwiseError

COUNT = 2_000
MODEST = 50


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    for name, (make, read) in STORES.items():
        yield tried_apart(name, _flip_on, make, read, count, folder / name)


def _flip_on(
    make: Callable[[Path], object], read: Callable[[Path], bytes], count: int, folder: Path, sender: Any
) -> None:
    warnings.simplefilter("ignore")
    good, path = folder / "good", folder / "store"
    folder.mkdir()
    make(good)
    # By its own name: a run is where it was begun.
    good.rename(path)
    expected = read(path)
    shutil.copytree(path, good)
    for number in range(count):
        sender.send(flipped(path, good, read, expected, random.Random(number)))


def flipped(
    path: Path, good: Path, read: Callable[[Path], bytes], expected: bytes, chance: random.Random
) -> tuple[str, str]:
    """How reading the store at ``path`` ended with one bit changed; it is then as in ``good`` again."""
    file = chance.choice(sorted(one for one in path.rglob("*") if one.is_file() and one.stat().st_size))
    content = bytearray(file.read_bytes())
    # Half of the changes hit the beginning: headers, and the first offsets.
    content[chance.randrange(min(256, len(content)) if chance.random() < 0.5 else len(content))] ^= (
        1 << chance.randrange(8)
    )
    file.write_bytes(content)
    try:
        kind, why = ("intact", "") if read(path) == expected else ("changed", "")
    except TailwiseError as error:
        kind, why = ("refused", "") if str(error).strip() else ("broken", "an empty message")
    except Exception as error:
        kind, why = "broken", f"{file.name}: {error!r}"
    if kind == "changed" and file.suffix != ".db":
        kind, why = "broken", f"{file.name}: other numbers"
    shutil.rmtree(path)
    shutil.copytree(good, path)
    return kind, why


def _make_rows(path: Path) -> None:
    from tailwise.data.mapped import write_rows

    write_rows(path, [rows()])


def _read_rows(path: Path) -> bytes:
    from tailwise.data.mapped import read_rows

    return _digest(getattr(matrix, part) for matrix in read_rows(path) for part in ("data", "indices", "indptr"))


def _read_run(path: Path) -> bytes:
    """Begin it, or go on: members of a stack are kept whole, blocks of labels and of rows in pieces."""
    import tailwise as tw

    X, Y = rows()
    with tw.workdir(path):
        model = tw.Ensemble([tw.DiSMEC(n_jobs=1), tw.Centroid(n_jobs=1)], random_state=0).fit(X, Y)
        return _digest(model.predict_topk(X, 5))


def _make_audit(path: Path) -> None:
    import tailwise as tw
    from tailwise.audit import Audit, Origin, plan_audit

    X, Y = rows()
    names = [f"label {i}" for i in range(Y.shape[1])]
    plan = plan_audit(tw.Centroid(n_jobs=1), X, Y, n_questions=40, doubles=0.2)
    with Audit.create(path, plan, Origin("model", "data", names, names)) as audit:
        for _ in range(20):
            question = audit.next_question("anna")
            audit.answer(question.id, "yes", "anna")


def _read_audit(path: Path) -> bytes:
    from tailwise.audit import Audit

    with Audit.open(path) as audit:
        said = repr((audit.history(), audit.standing(), audit.questions(), audit.origin, audit.progress()))
        return _digest([said.encode(), *audit.plan.questions])


def _digest(parts: Any) -> bytes:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part if isinstance(part, bytes) else part.tobytes())
    return whole.digest()


STORES: dict[str, tuple[Callable[[Path], object], Callable[[Path], bytes]]] = {
    "rows": (_make_rows, _read_rows),
    "run": (_read_run, _read_run),
    "audit": (_make_audit, _read_audit),
}
