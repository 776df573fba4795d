"""Where labels are tens of thousands, does a stack stay within six fits of its dearest member, and within 8 GB?

``python -m benchmarks stack_size [records-en records-de drawn]``

The stack is ``make_model("stacked")`` as it comes. Records are the training records of TIBKAT in English (41,333 rows,
22,625 labels) and German (49,119 rows, 24,555 labels), left out where they are not at hand; ``drawn`` are 50,000 labels
over 50,000 short rows of ``make_longtail``. Each set has a process of its own, on one thread. Printed are CPU-seconds
by stage, those of the whole fit over the dearest own fit of a member within it, and the most that the process ever
held; then what 2,000 rows take.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any
from unittest import mock

from benchmarks import corpora
from benchmarks.harness import ROOT, save_results

QUESTION = "Where labels are tens of thousands, does a stack stay within six fits of its dearest member, and 8 GB?"
_MOST_FITS, _MOST_MB = 6.0, 8_000
_ASKED = 2_000
_OWN = "on all rows"
_DRAWN = {"n_samples": 50_000, "n_features": 20_000, "n_labels": 50_000, "labels_per_row": 3.0, "exponent": 0.5}
_SETS = ("records-en", "records-de", "drawn")


def main(arguments: list[str]) -> None:
    if unknown := set(arguments) - set(_SETS):
        raise SystemExit(f"stack_size has no set {', '.join(sorted(unknown))}; there are: {', '.join(_SETS)}")
    results = {}
    for name in arguments or _SETS:
        code = f"import json; from benchmarks import stack_size; print(json.dumps(stack_size.measure({name!r})))"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        if found is None:
            print(f"{name} is not at hand; it was not measured")
            continue
        results[name] = found
        _tell(name, found)
    save_results("stack_size", results)


def _tell(name: str, found: dict[str, Any]) -> None:
    print(f"{name}: {found['rows']:,} rows, {found['labels']:,} labels, {found['values']:,} feature values")
    for stage, seconds in found["stages"].items():
        print(f"  {stage:32} {seconds:8.1f} CPU-s")
    fits, peak = found["fits"], found["peak MB"]
    print(
        f"  in all {found['CPU-s']:.1f} CPU-s, {fits:.1f} fits of {found['dearest']} "
        f"({'within' if fits <= _MOST_FITS else 'MORE than'} {_MOST_FITS:g}), peak {peak:,.0f} MB "
        f"({'within' if peak <= _MOST_MB else 'MORE than'} {_MOST_MB:,}); {_ASKED:,} rows predicted in "
        f"{found['predict CPU-s']:.1f} CPU-s"
    )


def measure(name: str) -> dict[str, Any] | None:
    """CPU-seconds by stage and peak memory of one fit."""
    import tailwise as tw
    from tailwise.models import make_model

    data = _rows(name)
    if data is None:
        return None
    X, Y = data
    model = make_model("stacked", random_state=0, n_jobs=1)
    warm = tw.make_longtail(500, 300, 200, random_state=1)
    model.fit(warm.X_train, warm.Y_train).predict_topk(warm.X_test)
    begun = time.process_time()
    with watched(lambda member: type(member).__name__) as stages:
        model.fit(X, Y)
    whole = time.process_time() - begun
    stages["", "joining candidates, features"] = whole - sum(stages.values())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    begun = time.process_time()
    model.predict_topk(X[:_ASKED])
    own = {member: seconds for (member, stage), seconds in stages.items() if stage == _OWN}
    dearest = max(own, key=own.__getitem__)
    return {
        "rows": X.shape[0],
        "labels": Y.shape[1],
        "values": int(X.nnz),
        "stages": {f"{member} {stage}".strip(): seconds for (member, stage), seconds in stages.items()},
        "CPU-s": whole,
        "dearest": dearest,
        "fits": whole / own[dearest],
        "peak MB": peak,
        "predict CPU-s": time.process_time() - begun,
    }


def _rows(name: str) -> tuple[Any, Any] | None:
    import tailwise as tw
    from tailwise.label_lists import indicator

    if name == "drawn":
        data = tw.make_longtail(**_DRAWN, background_words=15.0, propensity=1.0, test_fraction=0, random_state=0)
        return data.X_train, data.Y_train
    records = list(corpora.tibkat(name.removeprefix("records-")))
    if not records:
        return None
    texts = tw.Texts({field: [fields[field] for fields, _ in records] for field in records[0][0]})
    return tw.TextFeatures().fit_transform(texts), indicator([labels for _, labels in records])[0]


@contextmanager
def watched(named: Callable[[Any], str]) -> Iterator[dict[tuple[str, str], float]]:
    """CPU-seconds of what members do, each by its name, and of the boosting; steps of a step are part of it."""
    from tailwise.base import XMCModel
    from tailwise.tail import Stacked
    from tailwise.tail.boosting import BoostedTrees

    stages: dict[tuple[str, str], float] = defaultdict(float)
    within: list[tuple[str, str]] = []

    def counted(stage: tuple[str, str], work: Callable[[], Any]) -> Any:
        within.append(stage)
        begun = time.process_time()
        try:
            return work()
        finally:
            within.pop()
            stages[stage] += time.process_time() - begun

    def timed(name: str, stage: str) -> Callable[..., Any]:
        function = getattr(XMCModel, name)

        @wraps(function)
        def call(model: Any, *arguments: Any, **options: Any) -> Any:
            if within or isinstance(model, Stacked):
                return function(model, *arguments, **options)
            return counted((named(model), stage), lambda: function(model, *arguments, **options))

        return call

    def boost(*arguments: Any, **options: Any) -> Any:
        return counted(("", "boosting"), lambda: fit_trees(*arguments, **options))

    fit_trees = BoostedTrees.fit
    with ExitStack() as patches:
        for name, stage in {"fit": _OWN, "fit_part": "out of fold", "predict_topk": "candidates"}.items():
            patches.enter_context(mock.patch.object(XMCModel, name, timed(name, stage)))
        patches.enter_context(mock.patch.object(BoostedTrees, "fit", boost))
        yield stages
