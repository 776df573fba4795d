"""Is a matrix whose arrays lie refused by every model, in training and in prediction, and never followed?

Each try puts wrong indices, offsets or lengths in place of a matrix's own and hands it to a model in a process of its
own, because what follows them may die.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import tailwise
from drills.changes import CSR, byte_swapped, of_text
from drills.harness import Outcome, tried_apart
from tailwise.errors import InvalidInput

COUNT = 200
MODEST = 10
MODELS = ("Popularity", "Centroid", "NearestRows", "DiSMEC", "PPDSparse", "Parabel", "FastXML", "PfastreXML")
# The same numbers written otherwise are no lie about the matrix: they are converted.
LIES = [(part, change) for part, change in CSR if part != ".data" or change not in (byte_swapped, of_text)]


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    for name in MODELS:
        yield tried_apart(name, _try_all, name, count)


def _try_all(name: str, count: int, sender: Any) -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 60), density=0.2, format="csr", rng=rng, dtype=np.float32)
    Y = sparse.csr_array((rng.random((200, 40)) < 0.05).astype(np.float32))
    model = getattr(tailwise, name)(n_jobs=1) if name != "Popularity" else tailwise.Popularity()
    fitted = model.fit(X, Y)
    for number in range(count):
        chance = random.Random(number)
        part, change = chance.choice(LIES)
        uses = {
            "fit X": lambda lying: model.fit(lying, Y),
            "fit Y": lambda lying: model.fit(X, lying),
            "predict": lambda lying: fitted.predict_topk(lying),
        }
        for use, run in uses.items():
            lying = (Y if use == "fit Y" else X).copy()
            setattr(lying, part[1:], change(getattr(lying, part[1:]), chance))
            try:
                run(lying)
            except InvalidInput:
                sender.send(("refused", ""))
            except Exception as error:
                sender.send(("broken", f"{use}: {part} by {change.__name__}: {error!r}"))
            else:
                sender.send(("broken", f"{use}: {part} by {change.__name__} was accepted"))
