"""Training and test rows: rare labels are where they can be learned and judged, groups and time are kept apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tailwise.data import make_longtail, split_rows
from tailwise.errors import InvalidInput


@st.composite
def _labels(draw):
    n_rows, n_labels = draw(st.integers(2, 60)), draw(st.integers(1, 12))
    density = draw(st.sampled_from([0.02, 0.1, 0.3]))
    return sparse.random_array((n_rows, n_labels), density=density, rng=draw(st.integers(0, 999)), format="csr") > 0


def _counts(Y, rows):
    return np.asarray(Y[rows].sum(axis=0)).ravel()


@settings(max_examples=60, deadline=None)
@given(_labels(), st.sampled_from([0.05, 0.2, 0.5, 0.9]), st.integers(0, 9))
def test_every_row_is_on_one_side_and_repeated_labels_are_trained_on(Y, fraction, seed):
    train, test = split_rows(Y, fraction, random_state=seed)
    assert sorted([*train, *test]) == list(range(Y.shape[0])) and train.size and test.size
    total = _counts(Y, np.arange(Y.shape[0]))
    assert (_counts(Y, train)[total >= 2] > 0).all()
    again = split_rows(Y, fraction, random_state=seed)
    assert (again.train == train).all() and (again.test == test).all()


@pytest.mark.parametrize("fraction", [0.1, 0.2, 0.5])
def test_labels_of_five_rows_are_on_both_sides(fraction):
    Y = make_longtail(1500, n_features=50, n_labels=300, random_state=0).Y_train
    train, test = split_rows(Y, fraction)
    total = _counts(Y, np.arange(Y.shape[0]))
    assert ((total >= 2) & (total < 5)).any() and (total >= 5).sum() > 50
    assert (_counts(Y, train)[total >= 2] > 0).all()
    assert (_counts(Y, test)[total >= 5] > 0).all()
    assert abs(test.size / Y.shape[0] - fraction) < 0.02


def test_the_guarantee_comes_before_the_size():
    Y = sparse.csr_array(np.repeat(np.eye(10), 5, axis=0))
    train, test = split_rows(Y, 0.02)
    assert (_counts(Y, test) == 1).all() and (_counts(Y, train) == 4).all()


@settings(max_examples=40, deadline=None)
@given(_labels(), st.integers(2, 8), st.integers(0, 9))
def test_a_group_is_never_on_both_sides(Y, n_groups, seed):
    groups = [f"g{i % n_groups}" for i in range(Y.shape[0])]
    train, test = split_rows(Y, 0.3, groups=groups, random_state=seed)
    assert train.size and test.size and train.size + test.size == Y.shape[0]
    assert not {groups[row] for row in train} & {groups[row] for row in test}


def test_the_latest_rows_are_test():
    when = np.random.default_rng(0).permutation(50)
    train, test = split_rows(np.ones((50, 1)), 0.2, order=when)
    assert test.size == 10 and when[test].min() > when[train].max()


def test_refusals():
    Y = np.ones((4, 1))
    with pytest.raises(InvalidInput, match=r"test_fraction=1\.5"):
        split_rows(Y, 1.5)
    with pytest.raises(InvalidInput, match="Y has 1 rows; it needs 2"):
        split_rows(Y[:1])
    with pytest.raises(InvalidInput, match="split by one of them"):
        split_rows(Y, groups=[1, 2, 3, 4], order=[1, 2, 3, 4])
    with pytest.raises(InvalidInput, match="groups has 3 entries but Y has 4 rows"):
        split_rows(Y, groups=[1, 2, 3])
    with pytest.raises(InvalidInput, match="it needs 2 groups"):
        split_rows(Y, groups=[1, 1, 1, 1])
