"""Is everything that can be passed to ``fit`` and ``predict_topk`` taken rightly or refused with one clear error?

Each try passes something that a program could pass by mistake: another type, shape, dtype or value for X, Y, k or a
parameter. Whatever is predicted must be a right top k, and whatever is refused must be refused by tailwise.
"""

from __future__ import annotations

import decimal
import fractions
import random
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from drills.harness import Outcome, tried_apart, wanted
from drills.zoo import MODELS, _checked, models_of_rows, rows, rows_for
from tailwise.base import XMCModel
from tailwise.errors import TailwiseError

COUNT = 500
MODEST = 10
SECONDS = 60

Change = Callable[[Any, random.Random], Any]


def _dense(X: Any) -> Any:
    return np.asarray(X.toarray())


def _with_entry(value: Any) -> Change:
    def change(X: Any, chance: random.Random) -> Any:
        dense = _dense(X).astype(float)
        dense[chance.randrange(dense.shape[0]), chance.randrange(dense.shape[1])] = value
        return sparse.csr_array(dense) if chance.random() < 0.5 else dense

    return change


def _of_type(dtype: Any) -> Change:
    return lambda X, chance: _dense(X).astype(dtype)


def _as_format(format: str) -> Change:
    return lambda X, chance: X.asformat(format)


def _instead(value: Any) -> Change:
    return lambda X, chance: value


def _duplicated(X: Any, chance: random.Random) -> Any:
    coo = X.tocoo()
    parts = [np.concatenate([part, part[:3]]) for part in (coo.coords[0], coo.coords[1], coo.data)]
    return sparse.coo_array((parts[2], (parts[0], parts[1])), shape=X.shape)


def _unsorted(X: Any, chance: random.Random) -> Any:
    made = X.copy()
    made.indices, made.data = made.indices[::-1].copy(), made.data[::-1].copy()
    made.indptr = made.indptr[-1] - made.indptr[::-1]
    return made


def _with_zeros(X: Any, chance: random.Random) -> Any:
    made = X.copy()
    made.data[:: chance.randrange(1, 5)] = 0
    return made


MATRICES: list[Change] = [
    *map(_instead, (None, 3, "a text", b"bytes", [], [[]], {}, {"a": 1}, object(), float("nan"), range(4), np.nan)),
    *map(_instead, (["one text", "another"], [["a"], ["b"]], [[1, 2], [3]], [[[1]]], np.zeros(7), np.zeros((2, 3, 4)))),
    *map(_instead, (np.zeros((0, 30)), np.zeros((80, 0)), np.zeros((0, 0)), sparse.csr_array((80, 30)), np.array(5.0))),
    *map(_of_type, (bool, np.int8, np.int64, np.uint64, np.float16, np.longdouble, complex, object, str, "S3", ">f4")),
    *map(_of_type, ("datetime64[s]", "timedelta64[s]", [("a", float)], np.void)),
    *map(_with_entry, (np.nan, np.inf, -np.inf, 1e39, -1e300, 1e-46, -0.0, -1.0, 2.0, 0.5)),
    *map(_as_format, ("csc", "coo", "bsr", "dia", "dok", "lil")),
    lambda X, chance: X[: chance.randrange(X.shape[0])],
    lambda X, chance: X[:, : chance.randrange(X.shape[1])],
    lambda X, chance: sparse.hstack([X, X]),
    lambda X, chance: _dense(X).tolist(),
    lambda X, chance: np.ma.masked_less(_dense(X), 0.2),
    lambda X, chance: np.asmatrix(_dense(X)),
    lambda X, chance: np.asfortranarray(_dense(X))[::-1, ::2],
    lambda X, chance: X[0],
    lambda X, chance: _dense(X)[0],
    lambda X, chance: sparse.csr_array(X, dtype=np.int8),
    lambda X, chance: sparse.csr_array(X, dtype=complex),
    lambda X, chance: memoryview(_dense(X)),
    lambda X, chance: iter(_dense(X)),
    _duplicated,
    _unsorted,
    _with_zeros,
]
NUMBERS = (
    *(0, -1, 1, 2.5, 1e400, -np.inf, np.nan, 2**70, -(2**70), True, None, "5", b"5", [], [3], (), {}, object()),
    *(np.int8(3), np.float32(2), np.array(3), np.array([3]), np.bool_(True), decimal.Decimal(2), 1 + 2j),
    *(fractions.Fraction(1, 3), "auto", "jain", "", "\0", "x" * 10_000),
)


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    """``count`` abuses of each model, in a process of its own."""
    for name in filter(wanted, models_of_rows()):
        yield tried_apart(name, _abuse, name, count)


def _abuse(name: str, count: int, sender: Any) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    fitted = MODELS[name]()
    for number in range(count):
        # A hang ends the process by SIGALRM, which the drill reports.
        signal.alarm(SECONDS)
        sender.send(_one(fitted, random.Random(f"{name} {number}")))


def _one(fitted: XMCModel, chance: random.Random) -> tuple[str, str]:
    X, Y = rows_for(fitted.n_features_in_), rows()[1]
    parameters = sorted(fitted.get_params(deep=False))
    way = chance.choice(("fit X", "fit Y", "predict X", "k", *["parameter"][: len(parameters)]))
    what = ""
    try:
        if way == "fit X":
            abused = chance.choice(MATRICES)(X, chance)
            what = _shown(abused)
            fitted = clone(fitted).fit(abused, Y)
        elif way == "fit Y":
            abused = chance.choice(MATRICES)(Y, chance)
            what = _shown(abused)
            fitted = clone(fitted).fit(X, abused)
        elif way == "predict X":
            abused = chance.choice(MATRICES)(X, chance)
            what = _shown(abused)
            _checked(fitted.predict_topk(abused, 3), fitted.n_labels_)
            return "intact", ""
        elif way == "k":
            k = chance.choice(NUMBERS)
            what = _shown(k)
            _checked(fitted.predict_topk(X, k), fitted.n_labels_)
            return "intact", ""
        else:
            parameter = chance.choice(parameters)
            value = chance.choice(NUMBERS)
            what = f"{parameter}={_shown(value)}"
            fitted = clone(fitted).set_params(**{parameter: value}).fit(X, Y)
        # What was taken must serve.
        _checked(fitted.predict_topk(np.ones((2, fitted.n_features_in_)), 3), fitted.n_labels_)
    except TailwiseError as error:
        return ("refused", "") if str(error).strip() else ("broken", f"{way}: {what}: an empty message")
    except Exception as error:
        return "broken", f"{way}: {what}: {error!r}"
    return "intact", ""


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {getattr(value, 'dtype', '')} {getattr(value, 'shape', '')} {value!r}"[:120]
