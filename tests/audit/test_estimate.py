"""What answers say, against the truth: shares, precision, the curve, and reviewers who err."""

import numpy as np
import pytest

import tailwise as tw
from tailwise.audit import STRATA, Answers, cohens_kappa, estimate_audit, plan_questions, simulate_answers
from tailwise.audit.reviewers import error_rates
from tailwise.errors import InvalidInput
from tailwise.tail.candidates import is_hit


@pytest.fixture(scope="module")
def truth(world):
    """Share of missing labels by stratum, and P@5, in percent."""
    pool = world.plan.pool
    counts, complete = (np.bincount(Y.indices, minlength=300) for Y in (world.Y, world.complete))
    own = [(pool.strata == s) & (counts > 0) for s in range(3)]
    shares = [100 * (1 - counts[mask].sum() / complete[mask].sum()) for mask in own]
    right = is_hit(pool.labels, world.complete, pool.rows)
    hits = ((pool.recorded_place >= 0) & (pool.recorded_place < 5)).sum() + right[pool.place < 5].sum()
    return np.array(shares), 100 * hits / 5 / pool.n_rows


@pytest.fixture(scope="module")
def draws(world):
    """Twenty audits by reviewers who err in 3 and 6 % of the cases: plans with estimates."""
    found = []
    for seed in range(20):
        plan = plan_questions(world.plan.pool, world.plan.settings, random_state=seed)
        answers = simulate_answers(plan.questions, world.complete, wrong_yes=0.03, wrong_no=0.06, random_state=seed)
        found.append(estimate_audit(plan, answers, n_bootstrap=30))
    return found


def test_estimates_are_near_the_truth_and_cover_it(draws, truth):
    shares = np.array([[one.strata[name].missing.value for name in STRATA] for one in draws])
    np.testing.assert_allclose(shares.mean(axis=0), truth[0], atol=9)
    within = [
        [one.strata[name].missing.low <= value <= one.strata[name].missing.high for one in draws]
        for name, value in zip(STRATA, truth[0], strict=True)
    ]
    assert np.mean(within) >= 0.88
    precision = [one.precision[5][1] for one in draws]
    assert np.mean([one.value for one in precision]) == pytest.approx(truth[1], abs=2.5)
    assert np.mean([one.low <= truth[1] <= one.high for one in precision]) >= 0.84


def test_the_curve_is_found_again(draws, world):
    found = np.median([one.propensity.fit(world.Y).propensity_ for one in draws], axis=0)
    seen = world.plan.pool.label_counts > 0
    planted = tw.JainPropensity().fit(world.Y).propensity_
    np.testing.assert_allclose(found[seen], planted[seen], atol=0.08)


def test_a_number_that_depends_on_propensities_has_an_interval(draws, world):
    found = draws[0]
    mean = found.judge(lambda known: 100 * float(known.propensity_.mean()), n_replicates=20)
    assert 0 < mean.low < mean.value < mean.high < 100
    assert mean.value == pytest.approx(100 * found.propensity.propensity_.mean())
    few = simulate_answers(world.plan.questions, world.complete)
    some = estimate_audit(world.plan, Answers(*(part[:20] for part in few)), n_bootstrap=20)
    assert some.propensity is None and np.isnan(some.judge(lambda known: 1.0).value)


def test_a_queue_of_the_best_does_not_tell(world, truth):
    plan = world.plan
    best = np.argsort(-plan.pool.missing)[:240]
    right = is_hit(plan.pool.labels[best], world.complete, plan.pool.rows[best])
    assert right.mean() > 0.85
    assert (truth[0][2] - 100 * right[plan.pool.strata[plan.pool.labels[best]] == 2].sum() / 800) > 20


def test_intervals_are_those_of_log_odds(draws, world):
    part = draws[0].strata["tail"].missing
    low, value, high = (end / (100 - end) for end in (part.low, part.value, part.high))
    assert value / low == pytest.approx(high / value) and high / value > 1.1
    _, true = draws[0].precision[5]
    assert true.high - true.value > true.value - true.low, "few large weights may be missed, hardly counted twice"
    # How much lies outside the pool is itself an estimate, by the recorded pairs of each bin.
    reach = world.plan.pool.varied_reach(300, 0)
    np.testing.assert_array_equal(reach[0], world.plan.pool.reach)
    seen = world.plan.pool.recorded_seen
    assert reach[1:, 0].mean() == pytest.approx(reach[0, 0], rel=0.1)
    error = np.sqrt(reach[0, 0] * (1 - reach[0, 0]) / ((seen == 1).sum() + 20))
    assert reach[1:, 0].std() == pytest.approx(error, rel=0.2)


def test_part_of_the_answers_is_enough(world, truth):
    answers = simulate_answers(world.plan.questions, world.complete, unsure=0.1, random_state=0)
    half = Answers(*(part[: answers.question.size // 2] for part in answers))
    for given in (answers, half):
        found = estimate_audit(world.plan, given, n_bootstrap=60)
        for name, value in zip(STRATA, truth[0], strict=True):
            assert found.strata[name].missing.value == pytest.approx(value, abs=25)
    assert found.n_unsure > 0 and "unsure" in str(found)


def test_wrong_labels_are_found(world):
    rng = np.random.default_rng(0)
    asked = world.plan.questions
    answers = simulate_answers(asked, world.complete, random_state=0)
    # One recorded label in four is called wrong by everybody who is asked.
    wrong = asked.recorded & (rng.random(asked.rows.size) < 0.25)
    answers = answers._replace(verdict=np.where(wrong[answers.question], 0, answers.verdict))
    found = estimate_audit(world.plan, answers, n_bootstrap=100)
    values = [found.strata[name].wrong.value for name in STRATA]
    assert np.nanmean(values) == pytest.approx(25, abs=9)
    none = estimate_audit(world.plan, simulate_answers(asked, world.complete), n_bootstrap=100)
    assert none.strata["head"].wrong.value == 0 and 2 < none.strata["head"].wrong.high < 30


def test_more_answers_and_less_certainty(world):
    answers = simulate_answers(world.plan.questions, world.complete, random_state=0)
    part = estimate_audit(world.plan, answers, n_bootstrap=60).strata["torso"]
    assert part.missing.low < part.with_more.low < part.with_more.high < part.missing.high
    assert part.missing_in_pool.value <= part.missing.value
    assert part.propensity == pytest.approx(1 - part.missing.value / 100)


def test_groups_of_the_users_own(world):
    answers = simulate_answers(world.plan.questions, world.complete)
    even = np.arange(300) % 2 == 0
    found = estimate_audit(world.plan, answers, groups={"even": even, "none": np.zeros(300, bool)}, n_bootstrap=40)
    assert set(found.groups) == {"even", "none"} and np.isnan(found.groups["none"].missing.value)
    assert "–" in str(found)
    assert len(found.records()) == 5


def test_no_answers_are_told(world):
    for verdicts in ([], [-1]):
        with pytest.raises(InvalidInput, match="no question was answered"):
            estimate_audit(world.plan, Answers.of(np.arange(len(verdicts)), verdicts))
    few = estimate_audit(world.plan, Answers.of([0, 1, 2], [1, 0, 1]), n_bootstrap=20)
    assert few.propensity is None and "too few answers" in str(few)


def test_error_rates_are_told_apart():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 400)
    right = rng.random(800) < np.where(group == 0, 0.95, 0.1)
    given = np.array([right ^ (rng.random(800) < np.where(right, 0.12, 0.03)) for _ in range(2)])
    found = error_rates(given.sum(axis=0), np.full(800, 2), group)
    np.testing.assert_allclose(found.mean, [0.03, 0.12], atol=0.03)
    (low, high), _ = found.interval(0.95)
    assert low < 0.03 < high
    alone = error_rates(given[0].astype(int), np.ones(800, int), group)
    assert alone.interval(0.95)[1, 1] > found.interval(0.95)[1, 1] * 0.9


def test_kappa():
    verdict = np.array([1, 0, 1, 0, 1, 0])
    assert cohens_kappa(verdict, verdict) == 1
    assert abs(cohens_kappa(np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0]))) < 1e-9
    assert np.isnan(cohens_kappa(verdict[:0], verdict[:0]))
