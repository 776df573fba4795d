"""What is drawn: pools, inclusion probabilities, and what the plan says of itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailwise as tw
from tailwise.audit import STRATA, Plan, make_pool_of_new_rows, missing_chance, plan_audit, plan_questions
from tailwise.audit.drawing import _inclusion, _shares
from tailwise.errors import InvalidInput
from tailwise.tail.candidates import is_hit


def test_the_pool_has_unrecorded_pairs_and_says_how_much_it_cannot_see(world):
    pool = world.plan.pool
    assert not is_hit(pool.labels, world.Y, pool.rows).any()
    assert ((pool.missing >= 0.1) | (pool.place < 5)).all()
    # What it says of missing labels from recorded ones is true: of the labels that are missing, it holds that share.
    missing = world.complete - world.Y
    held = is_hit(pool.labels, world.complete, pool.rows)
    grown = held / pool.reach_of(pool.seen) / pool.seen_share[pool.labels]
    known = pool.label_counts > 0
    counts = np.bincount(missing.tocsr().indices[missing.tocsr().data > 0], minlength=known.size)
    for s in range(3):
        truth = counts[known & (pool.strata == s)].sum()
        assert grown[pool.strata[pool.labels] == s].sum() == pytest.approx(truth, rel=0.15)
    assert held.sum() < counts.sum() * 0.97


def test_chances_are_calibrated(world):
    pool = world.plan.pool
    right = is_hit(pool.labels, world.complete, pool.rows)
    for low, high in ((0.1, 0.4), (0.4, 0.7), (0.7, 1.01)):
        own = (pool.missing >= low) & (pool.missing < high)
        assert pool.missing[own].mean() == pytest.approx(right[own].mean(), abs=0.12)


def test_draws_have_the_probabilities_they_claim(world):
    pool, made = world.plan.pool, world.plan.settings
    key = pool.rows.astype(np.int64) * 300 + pool.labels
    counts, expected, sizes = np.zeros(key.size), 0.0, []
    for seed in range(60):
        drawn = plan_questions(pool, made, random_state=seed).questions
        mine = ~drawn.recorded
        place = np.searchsorted(key, drawn.rows[mine].astype(np.int64) * 300 + drawn.labels[mine])
        counts[place] += 1
        expected = (1 / drawn.probability[mine]).sum()
        sizes.append(drawn.rows.size)
        assert (counts[place][drawn.probability[mine] >= 1] == seed + 1).all()
    assert np.mean(sizes) == pytest.approx(made.n_questions, rel=0.03)
    assert expected == pytest.approx(key.size, rel=0.35)
    assert abs(world.plan.questions.double.mean() - made.doubles) < 0.01
    assert abs(world.plan.questions.recorded.mean() - made.recorded) < 0.07


def test_what_stands_for_more_is_asked_more_often(world):
    """Of pairs with the same chance that stand behind the first places, those of labels that the pool hardly holds."""
    pool, made = world.plan.pool, world.plan.settings
    asked, number = [], np.zeros(pool.rows.size)
    for seed in range(40):
        drawn = plan_questions(pool, made, random_state=seed).questions
        asked.append(pool.find(drawn.rows, drawn.labels)[~drawn.recorded])
        number[asked[-1]] += 1
        assert (pool.find(drawn.rows, drawn.labels)[drawn.recorded] == -1).all()
        np.testing.assert_array_equal(pool.labels[asked[-1]], drawn.labels[~drawn.recorded])
    beyond = pool.beyond(pool.labels, pool.seen)
    tail = (pool.strata[pool.labels] == 2) & (pool.place >= 5) & (pool.missing < 0.3)
    rare, others = (number[tail & mask].mean() for mask in (beyond > 3, beyond < 1.5))
    assert rare > 1.5 * others
    # So a question's weight, with what it stands for beyond the pool, varies less than that weight alone would.
    found = plan_questions(pool, made, random_state=1).questions
    own = ~found.recorded & (found.stratum == 2) & (found.probability < 1)
    factor = pool.beyond(found.labels, found.seen)[own]
    assert np.corrcoef(factor, 1 / found.probability[own])[0, 1] < 0.2


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=60), st.integers(1, 80), st.integers(0, 30))
def test_inclusion_probabilities_add_up(sizes, n, certain):
    found = _inclusion(np.array(sizes), n, min(certain, n))
    assert ((found > 0) | (n <= certain)).all() and (found <= 1).all()
    assert found.sum() == pytest.approx(min(n, len(sizes)))


def test_shares_are_equal_as_far_as_there_are_pairs():
    np.testing.assert_allclose(_shares(90, np.array([100, 10, 100])), [40, 10, 40])
    np.testing.assert_allclose(_shares(90, np.array([0, 10, 20])), [0, 10, 20])


def test_the_same_seed_gives_the_same_plan_for_any_threads(world):
    again = plan_audit(tw.Centroid(n_jobs=2), world.X, world.Y, n_questions=300)
    for one, other in zip(again.questions, world.plan.questions, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_plan_tells_its_limits(world):
    text = str(world.plan)
    assert "upper bound" in text and "% of the labels that are recorded" in text and "cannot be asked about" in text
    assert all(name in text for name in STRATA)
    assert len(world.plan.records()) == world.plan.questions.rows.size
    assert isinstance(world.plan, Plan)


def test_new_rows_need_no_training(world):
    half = world.X.shape[0] // 2
    model = tw.Centroid(n_jobs=1).fit(world.X[:half], world.Y[:half])
    guess = tw.JainPropensity().fit(world.Y[:half]).propensity_
    pool = make_pool_of_new_rows(model, world.X[half:], world.Y[half:], guess, half)
    assert pool.n_rows == half and not pool.counts_own
    np.testing.assert_array_equal(pool.label_counts, model.label_counts_)
    assert set(np.unique(pool.seen_share)) <= {0.0, 1.0}


def test_the_chance_to_be_missing():
    q, p = np.array([0.2, 0.9, 1.0]), np.array([0.5, 0.5, 0.5])
    np.testing.assert_allclose(missing_chance(q, p), [(0.4 - 0.2) / 0.8, 1.0, 0.0])
    assert missing_chance(np.array([0.3]), np.array([1.0])) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_questions": 5}, "n_questions"),
        ({"certain": 1.0}, "certain"),
        ({"recorded": -0.1}, "recorded"),
        ({"doubles": 2}, "doubles"),
        ({"floor": 0}, "floor"),
        ({"width": 0}, "width"),
        ({"n_folds": 10**6}, "n_folds"),
    ],
)
def test_wrong_settings_are_refused(world, changes, message):
    with pytest.raises(InvalidInput, match=message):
        plan_audit(tw.Popularity(), world.X, world.Y, **changes)


def test_a_pool_without_pairs_is_told():
    Y = np.ones((30, 2))
    with pytest.raises(InvalidInput, match="no unrecorded pair"):
        plan_audit(tw.Popularity(), np.eye(30), Y)
