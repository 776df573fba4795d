"""How many labels a row gets: the first few of its ranking, by what they are expected to be worth.

With independent labels of probabilities ``q_1 >= q_2 >= …`` the best set of k labels is the first k, for every utility
that grows with hits. Its expected worth is exact: hits among the first k and relevant labels behind them are two
independent sums of coins (Poisson-binomial), and

    E[u(k)] = Σ_h Σ_m P(h hits) P(m missed) u(h, k, h + m).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tailwise.errors import InvalidInput
from tailwise.parameters import Constraint
from tailwise.topk import TopK
from tailwise.validation import check_number

Worth = Callable[[np.ndarray, int, np.ndarray], np.ndarray]
"""What ``h`` hits in a set of ``k`` are worth where ``r`` labels are relevant; arrays of h and r broadcast."""

_ROWS_A_BLOCK = 256
TRUSTED = 0.8


def _f_score(beta: float) -> Worth:
    def worth(h: np.ndarray, k: int, r: np.ndarray) -> np.ndarray:
        return _share((1 + beta**2) * h, k + beta**2 * r)

    return worth


def _jaccard(h: np.ndarray, k: int, r: np.ndarray) -> np.ndarray:
    return _share(h, k + r - h)


def _recall(h: np.ndarray, k: int, r: np.ndarray) -> np.ndarray:
    return _share(h, r)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """``part / whole``; nothing of nothing is all of it, as an empty set is right for a row without labels."""
    part, whole = np.broadcast_arrays(np.asarray(part, np.float64), np.asarray(whole, np.float64))
    return np.divide(part, whole, out=np.ones(whole.shape), where=whole > 0)


class Utility(Constraint):
    """What a set of labels should be best at: ``"f1"``, ``"f0.5"``, ``"jaccard"``, ``"precision>=0.8"``, …

    >>> UTILITY.check("assign", "f1")
    'f1'
    >>> UTILITY.check("assign", "f")
    Traceback (most recent call last):
    ...
    tailwise.errors.InvalidInput: assign='f' is not known; pass 'f1' (or another beta: 'f0.5', 'f2'), 'jaccard', ...
    """

    _FORM = re.compile(r"(f)([0-9]*\.?[0-9]+)|(jaccard)|(precision|recall)\s*>=\s*([0-9]*\.?[0-9]+)")

    def check(self, name: str, value: Any) -> Any:
        """The value, the name of a utility."""
        self.parse(name, value)
        return value

    def parse(self, name: str, value: Any) -> tuple[str, float]:
        """The kind of utility, and its beta or the share that is asked for."""
        found = self._FORM.fullmatch(value) if isinstance(value, str) else None
        if not found:
            raise InvalidInput(
                f"{name}={value!r} is not known; pass 'f1' (or another beta: 'f0.5', 'f2'), 'jaccard', "
                "'precision>=0.8' or 'recall>=0.8'"
            )
        if found[1]:
            return "f", float(check_number(f"the beta of {name}={value!r},", float(found[2]), low=0, open_low=True))
        if found[3]:
            return "jaccard", 0.0
        share = check_number(f"the share of {name}={value!r},", float(found[5]), low=0, high=1)
        return str(found[4]), float(share)

    def __str__(self) -> str:
        return "a utility such as 'f1', 'f0.5', 'jaccard', 'precision>=0.8' or 'recall>=0.8'"


UTILITY = Utility()


def set_sizes(probabilities: np.ndarray, utility: str = "f1") -> np.ndarray:
    """How many of its first labels each row gets: (n,) ints, exact for independent labels.

    ``probabilities`` (n, k) descend in each row; labels that are not among them count as irrelevant. ``"f1"`` and its
    kin take the size of the highest expected worth, the smaller of equals; ``"precision>=p"`` takes as many as keep
    the expected precision at p or above, ``"recall>=r"`` as few as have the expected recall at r or above (all, where
    none do). Time is O(k³) a row.

    >>> set_sizes(np.array([[0.9, 0.8, 0.1], [0.2, 0.1, 0.1], [0.01, 0.0, 0.0]])).tolist()
    [2, 0, 0]
    >>> set_sizes(np.array([[0.9, 0.8, 0.1]]), "precision>=0.6").tolist()
    [3]
    """
    kind, number = UTILITY.parse("utility", utility)
    q = np.clip(np.asarray(probabilities, np.float64), 0, 1)
    n, k = q.shape
    if kind == "precision":
        reached = np.cumsum(q, axis=1) / np.arange(1, k + 1) >= number - 1e-9
        return np.where(reached, np.arange(1, k + 1), 0).max(axis=1, initial=0)
    worth: Worth = {"f": _f_score(number), "jaccard": _jaccard, "recall": _recall}[kind]
    blocks = [expected_worth(q[start : start + _ROWS_A_BLOCK], worth) for start in range(0, n, _ROWS_A_BLOCK)]
    values = np.concatenate([np.empty((0, k + 1)), *blocks])
    if kind == "recall":
        reached = values >= number - 1e-9
        return np.where(reached.any(axis=1), reached.argmax(axis=1), k)
    # Equal but for rounding is equal: the smaller set.
    return (values >= values.max(axis=1, keepdims=True) - 1e-12).argmax(axis=1)


def worth_most(top: TopK, utility: str = "f1", at_least: int = 0) -> TopK:
    """The first labels of rows whose scores are probabilities: as many as :func:`set_sizes` says, or ``at_least``."""
    sizes = set_sizes(np.where(top.labels >= 0, top.scores, 0.0), utility)
    return top.first(np.maximum(sizes, at_least))


def relevance(top: TopK, propensity: np.ndarray) -> TopK:
    """Labels by the chance that they are right, recorded or not: ``min(1, q / p)`` of the chance q to be recorded.

    ``propensity`` (n_labels,) is the chance p that a right label was recorded.

    >>> top = TopK(np.array([[2, 0]], np.int32), np.array([[0.5, 0.4]], np.float32))
    >>> relevance(top, np.array([0.5, 1.0, 0.9])).labels
    array([[0, 2]], dtype=int32)
    """
    present = top.labels >= 0
    chances = np.where(present, np.minimum(1.0, top.scores / np.asarray(propensity)[top.labels]), -np.inf)
    order = np.lexsort((np.where(present, top.labels, np.iinfo(np.int32).max), -chances), axis=1)
    labels, scores = (np.take_along_axis(part, order, axis=1) for part in (top.labels, chances))
    return TopK(labels, scores.astype(np.float32))


def expected_worth(q: np.ndarray, worth: Worth) -> np.ndarray:
    """E[worth] of the first 0, 1, …, k labels of each row: (n, k + 1), for probabilities ``q`` (n, k)."""
    n, k = q.shape
    behind = np.zeros((k + 1, n, k + 1))
    behind[k, :, 0] = 1
    for j in range(k - 1, -1, -1):
        behind[j] = _with_coin(behind[j + 1], q[:, j])
    ahead = np.zeros((n, k + 1))
    ahead[:, 0] = 1
    values = np.empty((n, k + 1))
    for size in range(k + 1):
        h, m = np.arange(size + 1)[:, None], np.arange(k - size + 1)[None, :]
        values[:, size] = ((ahead[:, : size + 1] @ worth(h, size, h + m)) * behind[size][:, : k - size + 1]).sum(axis=1)
        if size < k:
            ahead = _with_coin(ahead, q[:, size])
    return values


def _with_coin(counts: np.ndarray, probability: np.ndarray) -> np.ndarray:
    """The distribution of a count after one more coin; ``counts`` (n, most + 1) never reach the last place before."""
    changed = counts * (1 - probability[:, None])
    changed[:, 1:] += counts[:, :-1] * probability[:, None]
    return changed


class Rule(NamedTuple):
    """How many labels rows get where nothing is said.

    With ``expects``, as many as have the highest expected F1, at least one. Else those of score ``threshold`` and more,
    at least one; or where ``threshold`` is None, the ``size`` best.
    """

    threshold: float | None
    size: int
    expects: bool = False

    @classmethod
    def learn(cls, scores: np.ndarray, hits: np.ndarray, n_true: np.ndarray, *, probabilities: bool = False) -> Rule:
        """The rule of the higher mean F1 on rows whose labels are known, among two that give as many as rows have.

        Scores that are ``probabilities`` say by themselves how many, unless they are far from it: then the expected
        sets reach less than :data:`TRUSTED` of that F1.

        ``scores`` (n, k) descend, ``hits`` (n, k) say which labels are right, ``n_true`` (n,) how many there are. One
        score for all rows serves margins, which mean the same in every row; cosines and re-ranked scores do not, and
        their rows get the same number of labels.

        >>> scores, hits = np.array([[0.9, 0.8], [0.7, 0.1]]), np.array([[True, True], [True, False]])
        >>> Rule.learn(scores, hits, np.array([2, 1]))
        Rule(threshold=0.7, size=2, expects=False)
        """
        size = max(1, round(float(n_true.mean()))) if n_true.size else 1
        present = np.sort(scores[np.isfinite(scores)])[::-1]
        wanted = min(int(n_true.sum()), present.size)
        if not wanted:
            return cls(None, size)
        threshold = float(present[wanted - 1])
        by_score = np.maximum((scores >= threshold).sum(axis=1), 1)
        by_size = np.full(len(scores), size)
        reached = [_mean_f1(hits, sizes, n_true) for sizes in (by_score, by_size)]
        expects = False
        if probabilities:
            expected = np.maximum(set_sizes(np.where(np.isfinite(scores), scores, 0.0)), 1)
            expects = _mean_f1(hits, expected, n_true) >= TRUSTED * max(reached)
        return cls(threshold if reached[0] >= reached[1] else None, size, expects)


def _mean_f1(hits: np.ndarray, sizes: np.ndarray, n_true: np.ndarray) -> float:
    found = np.where(np.arange(hits.shape[1]) < sizes[:, None], hits, False).sum(axis=1)
    return float((2 * found / (sizes + n_true)).mean())
