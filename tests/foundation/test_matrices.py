import re

import numpy as np
import pytest
from contracts import make_rows
from scipy import sparse

from tailwise.baselines import Centroid
from tailwise.errors import InvalidInput
from tailwise.metrics import evaluate
from tailwise.propensity import propensity_from_hierarchy
from tailwise.validation import check_features, check_labels


def matrix(format="csr", indices=np.int32):
    """Rows 0, 1 and 2 hold columns (0, 2), (1) and (0, 1, 3) of 4."""
    rows, columns = [0, 0, 1, 2, 2, 2], [0, 2, 1, 0, 1, 3]
    made = sparse.csr_array((np.ones(6, np.float32), (rows, columns)), shape=(3, 4))
    made.indices, made.indptr = made.indices.astype(indices), made.indptr.astype(indices)
    return made.asformat(format)


def with_parts(made, **parts):
    """Parts put in place behind scipy's back."""
    for name, value in parts.items():
        setattr(made, name, value)
    return made


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


LIES = {
    "index too large": (lambda m: {"indices": changed(m.indices, 4, 4)}, r"indices holds 4 at row 2 \(entry 4\)"),
    "index negative": (lambda m: {"indices": changed(m.indices, 2, -1)}, r"indices holds -1 at row 1 \(entry 2\)"),
    "indptr falls": (lambda m: {"indptr": changed(m.indptr, 1, 5)}, r"indptr falls from 5 to 3 at row 1"),
    "indptr negative": (lambda m: {"indptr": changed(m.indptr, 1, -1)}, r"indptr falls from 0 to -1 at row 0"),
    "indptr starts late": (lambda m: {"indptr": changed(m.indptr, 0, 1)}, r"indptr runs from 1 to 6"),
    "indptr ends early": (lambda m: {"indptr": changed(m.indptr, -1, 5)}, r"indptr runs from 0 to 5"),
    "indptr ends late": (lambda m: {"indptr": changed(m.indptr, -1, 900)}, r"indptr runs from 0 to 900"),
    "indptr too short": (lambda m: {"indptr": m.indptr[:-1]}, r"indptr has 3 entries; . of shape \(3, 4\) needs 4"),
    "data too short": (lambda m: {"data": m.data[:-2]}, r"data has shape \(4,\) but .\.indices has 6"),
    "indices too short": (lambda m: {"indices": m.indices[:-2]}, r"data has shape \(6,\) but .\.indices has 4"),
    "indices of floats": (lambda m: {"indices": m.indices.astype(float)}, r"indices is array.*signed integers"),
    "indices byte-swapped": (lambda m: {"indices": m.indices.astype(">i4")}, r"indices is array.*signed integers"),
    "indices unsigned": (lambda m: {"indices": m.indices.astype(np.uint64)}, r"indices is array.*signed integers"),
    "shape too small": (lambda m: {"_shape": (3, 2)}, r"indices holds 2 at row 0 \(entry 1\), outside \[0, 1\]"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("indices", [np.int32, np.int64])
@pytest.mark.parametrize(("name", "check"), [("X", check_features), ("Y", check_labels)])
def test_arrays_that_lead_outside_of_a_matrix_are_refused_by_name_and_place(name, check, lie, indices):
    parts, said = LIES[lie]
    made = matrix(indices=indices)
    with pytest.raises(InvalidInput, match=rf"^{name}\.{said}"):
        check(with_parts(made, **parts(made)))


def test_an_index_that_would_wrap_around_in_32_bits_is_refused():
    made = matrix(indices=np.int64)
    with pytest.raises(InvalidInput, match=rf"X\.indices holds {2**32 + 3} at row 2 \(entry 5\)"):
        check_features(with_parts(made, indices=changed(made.indices, 5, 2**32 + 3)))


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr"])
def test_flags_that_lie_are_not_believed(format):
    made = matrix(format)
    if format == "coo":
        made.coords = tuple(np.concatenate([part, part[:1]])[::-1].copy() for part in made.coords)
        made.data = np.ones(7, np.float32)
    else:
        made.indices[:2] = made.indices[1::-1].copy()
        made.indices[-1] = made.indices[-2]
        made.has_sorted_indices = True
    made.has_canonical_format = True
    truth = np.zeros((3, 4), np.float32)
    entries = made.tocoo(copy=True) if format == "coo" else sparse.coo_array(matrix_entries(made), shape=(3, 4))
    np.add.at(truth, entries.coords, entries.data)
    before = made.data.copy()
    checked = check_features(made)
    rising = np.diff(checked.indices) > 0
    assert all(rising[a : b - 1].all() for a, b in zip(checked.indptr[:-1], checked.indptr[1:], strict=True))
    np.testing.assert_array_equal(checked.toarray(), truth)
    np.testing.assert_array_equal(made.data, before)


def matrix_entries(made):
    """The entries of a compressed matrix by its arrays alone; blocks are of one value."""
    line = np.repeat(np.arange(made.indptr.size - 1), np.diff(made.indptr))
    places = (made.indices, line) if made.format == "csc" else (line, made.indices)
    return made.data.ravel(), places


def test_other_formats_that_lead_outside_are_refused():
    coo = matrix("coo")
    with pytest.raises(InvalidInput, match=r"X\.coords\[1\] holds 99 at entry 3, outside \[0, 3\]"):
        check_features(with_parts(coo, coords=(coo.coords[0], changed(coo.coords[1], 3, 99))))
    with pytest.raises(InvalidInput, match=r"X\.coords\[0\] has 6 entries but X\.data has 5"):
        check_features(with_parts(matrix("coo"), data=np.ones(5, np.float32)))
    csc = matrix("csc")
    with pytest.raises(InvalidInput, match=r"X\.indices holds 3 at column 1 \(entry 2\), outside \[0, 2\]"):
        check_features(with_parts(csc, indices=changed(csc.indices, 2, 3)))
    bsr = sparse.bsr_array(np.ones((4, 4), np.float32), blocksize=(2, 2))
    with pytest.raises(InvalidInput, match=r"X\.indices holds 2 at row 1 \(entry 3\), outside \[0, 1\]"):
        check_features(with_parts(bsr, indices=changed(bsr.indices, 3, 2)))
    dia = sparse.dia_array((np.ones((2, 3), np.float32), [0, 1]), shape=(3, 3))
    with pytest.raises(InvalidInput, match=r"X\.offsets has shape \(5,\)"):
        check_features(with_parts(dia, offsets=np.arange(5, dtype=np.int32)))
    lil = matrix("lil")
    lil.rows[0] = [0, 77]
    with pytest.raises(InvalidInput, match=r"X\.indices holds 77 at row 0"):
        check_features(lil)
    dok = matrix("dok")
    dok._dict[2, 50] = 1.0
    with pytest.raises(InvalidInput, match=r"X cannot be read as a matrix of float32 .* 50"):
        check_features(dok)


def test_a_matrix_of_objects_is_refused():
    with pytest.raises(InvalidInput, match="X cannot be read as a matrix of float32"):
        check_features(with_parts(matrix(), data=np.array(["one"] * 6, dtype=object)))


def test_models_metrics_and_hierarchies_refuse_them_too():
    X, Y = make_rows()
    model = Centroid(n_jobs=1).fit(X, Y)
    lying = with_parts(X.copy(), indices=changed(X.indices, 0, X.shape[1] + 10**6))
    for use in (lambda: model.predict_topk(lying), lambda: Centroid().fit(lying, Y), lambda: model.explain(lying, 0)):
        with pytest.raises(InvalidInput, match=re.escape("X.indices holds")):
            use()
    scores = model.predict(X)
    with pytest.raises(InvalidInput, match=re.escape("topk.indices holds")):
        evaluate(Y, with_parts(scores, indices=changed(scores.indices, 0, 10**8)), ["p@1"])
    parents = sparse.csr_array(np.eye(Y.shape[1], dtype=np.float32))
    with pytest.raises(InvalidInput, match=re.escape("parents.indices holds")):
        propensity_from_hierarchy(Y, with_parts(parents, indices=changed(parents.indices, 0, 10**8)))


def test_a_matrix_in_order_is_taken_as_an_array_without_a_copy():
    made = sparse.csr_matrix(matrix())
    checked = check_features(made)
    assert type(checked) is sparse.csr_array and type(made) is sparse.csr_matrix
    assert checked.data is made.data and checked.indices is made.indices
    assert isinstance(checked.sum(axis=1), np.ndarray) and not isinstance(checked.sum(axis=1), np.matrix)
    np.testing.assert_array_equal((checked * checked).toarray(), made.multiply(made).toarray())
