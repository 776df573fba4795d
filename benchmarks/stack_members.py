"""Which members earn their place in a stack? ``python -m benchmarks stack_members [--rows 3000] [--sets a,b]``.

Seven members are fitted once on four fifths of some training rows of each data set of ``generality``; then stacks of
some of them learn anew how to combine: the four that ``make_model("stacked")`` has, these without each and with each of
the others, and all seven. Printed are, beside what the four reach, the points that each stack gains on each set and on
average, and its CPU-seconds beside theirs. P@k are of labels ranked by probability, PSP@5 by probability / propensity.
What was computed is kept in ``benchmarks/results`` and not computed again: a new default begins with a new file.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np
from scipy import sparse

import tailwise as tw
from benchmarks.generality import SETS
from benchmarks.harness import RESULTS, save_results
from benchmarks.stack_size import watched
from benchmarks.subsets import Judged, Kept
from tailwise.display import Table
from tailwise.models import STACKED_MEMBERS
from tailwise.tail.ranking import sort_topk
from tailwise.tail.reranker import gains

QUESTION = "Which members earn their place in a stack?"
MEMBERS = {
    "DiSMEC": lambda: tw.DiSMEC(random_state=0),
    "PWDiSMEC": lambda: tw.PWDiSMEC(random_state=0),
    "Centroid": lambda: tw.Centroid(),
    "NearestRows": lambda: tw.NearestRows(),
    "five nearest rows": lambda: tw.NearestRows(k=5, sharpness=4.0),
    "steep PWDiSMEC": lambda: tw.PWDiSMEC(0.3, weighting="steep", random_state=0),
    "Bonsai": lambda: tw.Bonsai(random_state=0),
}
_SETS = "eurlex,bibtex,delicious,records-en,nouns,glosses,packages,longtail"
_FIFTHS = 5
_WIDTH = 50
_FOUR = "the four"


def stacks() -> dict[str, tuple[str, ...]]:
    """The members of each stack that is judged."""
    four = tuple(STACKED_MEMBERS)
    others = tuple(name for name in MEMBERS if name not in four)
    return (
        {_FOUR: four}
        | {f"without {name}": tuple(one for one in four if one != name) for name in four}
        | {f"and {name}": (*four, name) for name in others}
        | {"all seven": (*four, *others)}
    )


def main(arguments: list[str]) -> None:
    options = {"--rows": "3000", "--sets": _SETS}
    for name in options:
        if name in arguments:
            options[name] = arguments[arguments.index(name) + 1]
    path = RESULTS / f"stack_members-{options['--rows']}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for name in options["--sets"].split(","):
        if name not in found:
            data = SETS[name](int(options["--rows"]))
            if data is None:
                print(f"{name} is not at hand; it was not measured")
                continue
            found[name] = _judge(*data)
            path.write_text(json.dumps(found, indent=1))
    found = {name: found[name] for name in options["--sets"].split(",") if name in found}
    for metric in ("p@1", "p@5", "psp@5", "CPU-s"):
        _print(metric, found)
    save_results("stack_members", {"rows": int(options["--rows"]), "values": found})


def _judge(X: Any, Y: Any) -> dict[str, dict[str, float]]:
    """Every stack's metrics on the fifth that is held out."""
    held = np.random.default_rng(1).permutation(X.shape[0]) % _FIFTHS == 0
    Y = sparse.csr_array(Y)
    Y = sparse.csr_array(Y[:, np.flatnonzero(np.diff(Y[~held].tocsc().indptr))])
    X_train, Y_train, Y_held = X[~held], sparse.csr_array(Y[~held]), sparse.csr_array(Y[held])
    stack = Kept([make() for make in MEMBERS.values()], random_state=0, n_jobs=1)
    with watched(repr) as stages:
        stack.fit(X_train, Y_train)
    costs = [sum(seconds for (name, _), seconds in stages.items() if name == repr(one)) for one in stack.members_]
    judged = Judged(stack, X[held])
    inverse = 1 / tw.JainPropensity().fit(Y_train).propensity_
    found = {}
    for name, members in stacks().items():
        own = [list(MEMBERS).index(member) for member in members]
        begun = time.process_time()
        top = judged.rank(Y_train, own, _WIDTH)
        combining = time.process_time() - begun
        rare = sort_topk(top.labels, gains(top.scores, top.labels, inverse, 1.0), 5)
        by_probability = tw.evaluate(Y_held, top, ("p@1", "p@3", "p@5"), confidence=None)
        found[name] = {metric: by_probability[metric].value for metric in ("p@1", "p@3", "p@5")}
        for_rare = tw.evaluate(Y_held, rare, ("psp@5",), propensity=1 / inverse, confidence=None)
        found[name] |= {"psp@5": for_rare["psp@5"].value, "CPU-s": combining + sum(costs[m] for m in own)}
    return found


def _print(metric: str, found: dict[str, dict[str, dict[str, float]]]) -> None:
    first = np.array([found[name][_FOUR][metric] for name in found])
    rows = [[_FOUR, *(f"{value:.1f}" for value in first), ""]]
    for stack in list(stacks())[1:]:
        values = np.array([found[name][stack][metric] for name in found])
        if metric == "CPU-s":
            cells, mean = [f"× {value:.2f}" for value in values / first], f"× {values.sum() / first.sum():.2f}"
        else:
            cells, mean = [f"{value:+.1f}" for value in values - first], f"{np.mean(values - first):+.2f}"
        rows.append([stack, *cells, mean])
    print(Table(f"{metric}, inside training rows, beside the four", [metric, *found, "mean"], rows), "\n")
