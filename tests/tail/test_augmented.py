import numpy as np
import pytest

from tailwise import Centroid, DiSMEC
from tailwise.errors import InvalidInput
from tailwise.tail import TailAugmented, augment_rows
from tailwise.tail.candidates import is_hit


def test_augmented_rows_keep_labels_and_values(rows):
    X, Y = rows
    more_X, more_Y = augment_rows(X, Y, n_aug=3, keep_probability=0.7, swap=0.5, random_state=0)
    assert more_X.shape == (3 * X.shape[0], X.shape[1])
    np.testing.assert_array_equal(more_Y.toarray(), np.tile(Y.toarray(), (3, 1)))
    assert 0.65 < more_X.nnz / (3 * X.nnz) < 0.75
    original, changed = X.toarray(), more_X.toarray()
    for i in range(len(changed)):
        source = original[i % X.shape[0]]
        assert set(np.flatnonzero(changed[i])) <= set(np.flatnonzero(source))
        assert set(changed[i]) <= set(source) | {0.0}
    swapped_X, _ = augment_rows(X, Y, n_aug=1, keep_probability=1.0, swap=1.0, random_state=0)
    np.testing.assert_array_equal(np.sort(swapped_X.toarray(), axis=1), np.sort(original, axis=1))
    assert (swapped_X.toarray() != original).any()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n_aug": -1}, "n_aug=-1"),
        ({"keep_probability": 0.0}, "keep_probability=0.0"),
        ({"swap": 2}, "swap=2 is outside"),
    ],
)
def test_augmentation_errors(rows, bad, message):
    with pytest.raises(InvalidInput, match=message):
        augment_rows(*rows, **bad)


def test_head_and_tail_are_split_by_frequency(rows):
    X, Y = rows
    model = TailAugmented(Centroid(), tau=0.2, random_state=0).fit(X, Y)
    counts = model.label_counts_
    assert counts[model.head_labels_].min() >= counts[model.tail_labels_].max()
    assert set(model.head_labels_) | set(model.tail_labels_) == set(np.flatnonzero(counts))
    for tau in (0.0, 1.0):
        one_part = TailAugmented(Centroid(), tau=tau, random_state=0).fit(X, Y)
        empty, whole = (one_part.head_labels_, one_part.tail_labels_)[:: 1 if tau == 0 else -1]
        assert empty.size == 0
        np.testing.assert_array_equal(whole, np.flatnonzero(counts))
        assert is_hit(one_part.predict_topk(X, 3).labels, Y).mean() > 0.7


def test_no_copies_are_a_choice(rows):
    X, Y = rows
    more_X, more_Y = augment_rows(X, Y, n_aug=0)
    assert more_X.shape == (0, X.shape[1]) and more_Y.shape == (0, Y.shape[1])
    model = TailAugmented(Centroid(), n_aug=0, random_state=0).fit(X, Y)
    alone = Centroid().fit(X, Y[:, model.tail_labels_])
    np.testing.assert_array_equal(model.tail_.predict_topk(X, 3).labels, alone.predict_topk(X, 3).labels)


def test_parts_may_see_only_rows_of_their_own_labels():
    X = np.random.default_rng(0).random((60, 8))
    Y = np.zeros((60, 10))
    Y[:40, 0] = 1
    Y[np.arange(30, 57), 1 + np.arange(27) % 9] = 1
    model = TailAugmented(DiSMEC(random_state=0), tau=0.19, rows="own", n_aug=0).fit(X, Y)
    assert model.head_labels_.tolist() == [0]
    for part, labels, own in ((model.head_, [0], slice(0, 40)), (model.tail_, np.arange(1, 10), slice(30, 57))):
        alone = DiSMEC(random_state=0).fit(X[own], Y[own][:, labels])
        np.testing.assert_array_equal(part.bias_, alone.bias_)
        np.testing.assert_array_equal(part.weights_.toarray(), alone.weights_.toarray())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TailAugmented(Centroid(), tau=2), "tau=2 is outside"),
        (TailAugmented(Centroid(), rows="some"), "rows='some'"),
    ],
)
def test_wrong_parameters_say_what_is_wrong(rows, model, message):
    with pytest.raises(InvalidInput, match=message):
        model.fit(*rows)
