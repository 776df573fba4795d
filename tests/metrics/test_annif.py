"""Annif's metrics are Annif's: its printed figures, frozen, and its own code where it is installed apart."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tailwise.errors import InvalidInput
from tailwise.label_lists import encode_labels
from tailwise.metrics.annif import COUNTS, NAMES, annif_metrics
from tailwise.topk import TopK

ANNIF = Path(__file__).parents[2] / ".venv-annif" / "bin" / "python"
GOLDEN = json.loads(Path(__file__).with_name("annif_golden.json").read_text())
EVALUATE = """
import json, sys
from annif.eval import EvaluationBatch
from annif.suggestion import SubjectSuggestion

case = json.load(sys.stdin)


class Subjects(list):
    pass


batch = EvaluationBatch(Subjects(range(case["n_labels"])))
suggested = [[SubjectSuggestion(label, score) for label, score in row] for row in case["suggested"]]
batch.evaluate_many(suggested, case["true"])
print(json.dumps({name: float(value) for name, value in batch.results().items()}))
"""


def code(name):
    """How Annif writes a metric's name to a file."""
    return name.translate(str.maketrans(" ", "_", "()"))


def judged(case, **how):
    width = max(max(map(len, case["suggested"])), 1)
    labels = np.full((len(case["true"]), width), -1, np.int32)
    scores = np.full(labels.shape, -np.inf, np.float32)
    for row, found in enumerate(case["suggested"]):
        for place, (label, score) in enumerate(sorted(found, key=lambda pair: -pair[1])):
            labels[row, place], scores[row, place] = label, score
    ids = [str(label) for label in range(case["n_labels"])]
    Y = encode_labels([[str(label) for label in row] for row in case["true"]], ids)
    return annif_metrics(Y, TopK(labels, scores), **how)


def test_what_annif_eval_printed():
    found = judged(GOLDEN)
    assert [code(name) for name in found] == list(GOLDEN["metrics"])
    for name, value in found.items():
        assert value == pytest.approx(GOLDEN["metrics"][code(name)], abs=1e-6), name
        if name in COUNTS:
            assert isinstance(value, int)
    assert "F1@5                           0.4083 [" in str(found) and "True positives" in str(found)


def case_of(seed, ties):
    rng = np.random.default_rng(seed)
    n_labels = 30
    true = [rng.permutation(n_labels)[: rng.integers(0, 8)].tolist() for _ in range(80)]
    suggested = []
    for _ in true:
        n = rng.integers(0, 11)
        scores = rng.choice([0.1, 0.25, 0.5, 1.0], n) if ties else rng.permutation(np.linspace(0.05, 1, 11))[:n]
        suggested.append([[int(l), float(s)] for l, s in zip(rng.permutation(n_labels), scores, strict=False)])
    return {"n_labels": n_labels, "true": true, "suggested": suggested}


@pytest.mark.parametrize("ties", [False, True])
def test_annif_says_the_same(ties):
    if not ANNIF.exists():
        pytest.skip("Annif is not at hand in .venv-annif; `make peers` installs it")
    case = case_of(int(ties), ties)
    done = subprocess.run(
        [ANNIF, "-c", EVALUATE], input=json.dumps(case), capture_output=True, text=True, check=True, timeout=250
    )
    theirs, ours = json.loads(done.stdout), judged(case)
    assert list(ours) == list(theirs) == list(NAMES)
    for name, value in ours.items():
        assert value == pytest.approx(theirs[name], abs=1e-6), name


def test_intervals_hold_the_value_and_may_be_left_out():
    found = judged(GOLDEN)
    assert set(found) - set(found.intervals) == {*COUNTS, *(name for name in NAMES if "subj avg" in name)}
    for name, (low, high) in found.intervals.items():
        assert low < found[name] < high, name
    assert found.to_dict()["NDCG"]["low"] == found.intervals["NDCG"][0]
    assert judged(GOLDEN, confidence=None).intervals == {}
    assert dict(judged(GOLDEN, confidence=None)) == dict(found)


def test_the_size_of_the_vocabulary_counts_for_averages_over_labels():
    twice = judged(GOLDEN, n_labels=2 * GOLDEN["n_labels"])
    for name, value in judged(GOLDEN).items():
        assert twice[name] == pytest.approx(value / 2 if "(subj avg)" in name else value), name


def test_no_rows_are_refused():
    with pytest.raises(InvalidInput, match="there is nothing to judge"):
        annif_metrics(np.zeros((0, 3)), TopK(np.zeros((0, 2), np.int32), np.zeros((0, 2), np.float32)))
