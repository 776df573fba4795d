"""Is a matrix whose arrays lie refused by every model, in training and in prediction, and never followed?

Each try puts wrong indices, offsets or lengths in place of a matrix's own and hands it to a model in a process of its
own, because what follows them may die.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sklearn.base import clone

from drills.changes import CSR, byte_swapped, of_text
from drills.harness import Outcome, tried_apart, wanted
from drills.zoo import MODELS, models_of_rows, rows, rows_for
from tailwise.errors import InvalidInput

COUNT = 200
MODEST = 10
# The same numbers written otherwise are no lie about the matrix: they are converted.
LIES = [(part, change) for part, change in CSR if part != ".data" or change not in (byte_swapped, of_text)]


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    for name in filter(wanted, models_of_rows()):
        yield tried_apart(name, _try_all, name, count)


def _try_all(name: str, count: int, sender: Any) -> None:
    warnings.simplefilter("ignore")
    fitted = MODELS[name]()
    X, Y = rows_for(fitted.n_features_in_), rows()[1]
    for number in range(count):
        chance = random.Random(number)
        part, change = chance.choice(LIES)
        uses = {
            "fit X": lambda lying: clone(fitted).fit(lying, Y),
            "fit Y": lambda lying: clone(fitted).fit(X, lying),
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
