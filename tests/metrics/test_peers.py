"""Equal to napkinxc 0.7.2: to values it printed, and live where it is installed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from tailwise import Centroid, JainPropensity
from tailwise.data import is_cached, load_dataset
from tailwise.metrics import evaluate

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = json.loads(Path(__file__).with_name("napkinxc_golden.json").read_text())


def random_case(seed=20260101, n=300, n_labels=40):
    """Truth, predictions and inverse propensities from integers alone, so that every numpy draws the same."""
    state = np.random.RandomState(seed)
    inverse = 1 + state.randint(0, 1000, n_labels) / 100
    Y = state.randint(0, 1000, (n, n_labels)) < 80
    Y[:, 1], Y[::7] = True, False
    Y[:, n_labels - 1] = True
    labels = np.array([state.permutation(n_labels)[:5] for _ in range(n)])
    labels[::3, 0], labels[::3, 1:] = 1, np.arange(2, 6)
    return sparse.csr_array(Y.astype(np.float32)), labels, inverse


def as_peer_input(Y, labels, inverse):
    truth = [Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(Y.shape[0])]
    predicted = [[int(l) for l in row if l >= 0] for row in labels]
    return {"truth": truth, "predicted": predicted, "inverse": np.asarray(inverse).tolist()}


def assert_equal(Y, labels, inverse, expected):
    result = evaluate(Y, labels, list(expected), 1 / np.asarray(inverse), confidence=None)
    # napkinxc takes the macro mean over labels 0 … the last one that occurs, tailwise over all of them.
    for name, value in expected.items():
        ours = result[name].value
        if name.startswith("macro"):
            k = int(name.partition("@")[2])
            ours *= Y.shape[1] / (1 + max(int(Y.indices.max()), int(np.max(labels[:, :k]))))
        assert ours == pytest.approx(value, abs=1e-8), name


def test_golden_on_random_data():
    assert_equal(*random_case(), GOLDEN["random"])


def test_golden_on_eurlex_with_a_real_model():
    if not is_cached("eurlex-4k"):
        pytest.skip("EURLex-4K is not in the cache; tailwise.load_dataset('eurlex-4k') fetches it")
    eurlex = load_dataset("eurlex-4k")
    topk = Centroid().fit(eurlex.X_train, eurlex.Y_train).predict_topk(eurlex.X_test, k=5)
    propensity = JainPropensity().fit(eurlex.Y_train)
    assert_equal(eurlex.Y_test, topk.labels, propensity.inverse_, GOLDEN["eurlex-4k, Centroid"])


def peer_python():
    for python in (Path(sys.executable), ROOT / ".venv-peers" / "bin" / "python"):
        if python.exists() and subprocess.run([python, "-c", "import napkinxc"], capture_output=True).returncode == 0:
            return python
    pytest.skip("napkinxc is not installed (extra 'peers'); its printed values are tested all the same")


def test_live_on_random_data():
    python = peer_python()
    for seed in (1, 2):
        case = random_case(seed, n=120, n_labels=25)
        script = Path(__file__).with_name("napkinxc_values.py")
        done = subprocess.run(
            [python, script], input=json.dumps(as_peer_input(*case)), capture_output=True, text=True, check=True
        )
        assert_equal(*case, json.loads(done.stdout))
