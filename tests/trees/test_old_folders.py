import zipfile
from pathlib import Path

import numpy as np
import pytest
from contracts import assert_same_bits
from scipy import sparse

import tailwise
from drills.forging import arrays_of, change_array
from tailwise.errors import ModelFileError


@pytest.fixture
def old(tmp_path):
    """A Parabel that was saved with weights of 16 bits, and what it predicted then."""
    with zipfile.ZipFile(Path(__file__).parents[1] / "golden" / "label-trees-of-16-bits.zip") as kept:
        kept.extractall(tmp_path)
    with np.load(tmp_path / "expected.npz") as expected:
        X = sparse.csr_array((expected["data"], expected["indices"], expected["indptr"]), shape=(40, 12_000))
        return tmp_path / "model", X, expected["labels"], expected["scores"]


def test_trees_of_16_bits_open_and_are_packed_anew(old, tmp_path):
    folder, X, labels, scores = old
    model = tailwise.load(folder)
    assert model.chunks_.weights.dtype == np.int8 and 0 < (np.diff(model.chunks_.first_run) == 0).mean() < 1
    top = model.predict_topk(X, 5)
    assert (top.labels[:, 0] == labels[:, 0]).all() and (top.labels == labels).mean() > 0.9
    np.testing.assert_allclose(top.scores, scores, atol=0.01)
    model.save(tmp_path / "new")
    assert_same_bits(tailwise.load(tmp_path / "new").predict_topk(X, 5), top)


@pytest.mark.parametrize(
    ("part", "value"), [("features", -1), ("features", 12_000), ("children", 10), ("runs", 9), ("words", 2**63)]
)
def test_indices_out_of_range_are_refused(old, part, value):
    def change(array):
        changed = array.copy()
        changed[-1] = value
        return changed

    change_array(old[0], next(name for name in arrays_of(old[0]) if f"chunks_.{part}-" in name), change)
    with pytest.raises(ModelFileError, match="no fit could have left"):
        tailwise.load(old[0], verify=False)
