"""The estimators find planted (A, B) again; the tolerances are stated with each test."""

import numpy as np
import pytest
from naive.propensity import descendants_of, hierarchy_rates, substitute_rates
from scipy import sparse

import tailwise
from tailwise.data import drop_labels, make_longtail
from tailwise.data.missing import planted_propensity
from tailwise.errors import InvalidInput
from tailwise.propensity import (
    AuditedPropensity,
    EstimatedPropensity,
    JainPropensity,
    propensity_from_audit,
    propensity_from_hierarchy,
    propensity_from_substitutes,
    resolve_propensity,
)
from tailwise.propensity import evidence as evidence_module

CURVES = [(0.55, 1.5), (0.5, 0.4), (0.6, 2.6)]


def complete_labels(n_samples=20_000, n_labels=1_500, seed=1):
    data = make_longtail(
        n_samples,
        50,
        n_labels,
        propensity=1.0,
        background_words=0,
        words_per_label=1,
        test_fraction=0,
        random_state=seed,
    )
    return data.Y_train_complete


def captured(monkeypatch):
    """What reaches the fit."""
    seen = []

    def keep(evidence, **options):
        seen.append(evidence)
        return JainPropensity()

    monkeypatch.setattr(evidence_module, "fit_propensity", keep)
    return seen


@pytest.mark.parametrize(("a", "b"), CURVES)
def test_audit_of_every_row_recovers_the_curve(a, b):
    """Within 0.04 of A, a third of B (or 0.2), and 0.02 of every propensity."""
    complete = complete_labels()
    observed = drop_labels(complete, planted_propensity(JainPropensity(a, b=b), complete), random_state=2)
    estimate = propensity_from_audit(observed, complete, n_bootstrap=40)
    assert estimate.a == pytest.approx(a, abs=0.04)
    assert estimate.b == pytest.approx(b, rel=0.34, abs=0.2)
    truth = JainPropensity(a, b=b).fit(observed)
    np.testing.assert_allclose(estimate.propensity_, truth.propensity_, atol=0.02)
    fit = estimate.fit_
    assert fit.a_interval[0] < estimate.a < fit.a_interval[1] and fit.b_interval[0] < estimate.b < fit.b_interval[1]
    assert fit.error < 0.06 and fit.n_labels == (np.bincount(complete.indices, minlength=1_500) > 0).sum()


def test_bins_may_be_made_as_the_paper_makes_them():
    """By observed counts: labels with luck sit among more frequent ones, so B falls to its bound and errs more."""
    complete = complete_labels()
    planted = JainPropensity(0.55, b=1.5)
    observed = drop_labels(complete, planted_propensity(planted, complete), random_state=2)
    truth = planted.fit(observed).propensity_
    ours = propensity_from_audit(observed, complete, n_bootstrap=2)
    theirs = propensity_from_audit(observed, complete, bins_by="observed", n_bootstrap=2)
    assert (np.diff(theirs.fit_.frequency) >= 0).all()
    found, relevant = (np.bincount(Y.indices, minlength=Y.shape[1]) for Y in (observed, complete))
    used = np.flatnonzero(relevant)
    first = used[np.argsort(found[used], kind="stable")][40:60]
    assert theirs.fit_.frequency[2] == pytest.approx(found[first].mean())
    assert theirs.fit_.rate[2] == pytest.approx((found[first] / relevant[first]).mean()), "labels weigh alike"
    assert theirs.b < 0.5 < ours.b
    assert np.abs(theirs.propensity_ - truth).mean() > 2 * np.abs(ours.propensity_ - truth).mean()
    with pytest.raises(InvalidInput, match="bins_by='count'"):
        propensity_from_audit(observed, complete, bins_by="count")


def test_audit_of_a_sample_recovers_the_curve():
    """One row in ten audited: within 0.08 of A and 0.08 of every propensity."""
    complete = complete_labels()
    observed = drop_labels(complete, planted_propensity(JainPropensity(), complete), random_state=3)
    audited = np.arange(complete.shape[0]) % 10 == 0
    estimate = propensity_from_audit(observed[audited], complete[audited], observed[~audited], n_bootstrap=40)
    assert estimate.a == pytest.approx(0.55, abs=0.08)
    truth = JainPropensity().fit(observed)
    np.testing.assert_allclose(estimate.propensity_, truth.propensity_, atol=0.08)
    assert (estimate.fit_.propensity_low <= estimate.fit_.propensity_high).all()


@pytest.mark.parametrize(("a", "b"), CURVES[:2])
def test_hierarchy_recovers_the_curve(a, b):
    """Leaves are always observed, their parents at the planted rate: within 0.06 of A, 0.03 of every propensity."""
    leaves = complete_labels(20_000, 3_000, seed=4)
    n_leaves, n_parents = leaves.shape[1], 500
    parent_of = n_leaves + np.arange(n_leaves) % n_parents
    up = sparse.csr_array((np.ones(n_leaves), (np.arange(n_leaves), parent_of - n_leaves)), (n_leaves, n_parents))
    above = sparse.csr_array((leaves @ up != 0).astype(np.float32))
    observed = drop_labels(above, planted_propensity(JainPropensity(a, b=b), above), random_state=5)
    Y = sparse.hstack([leaves, observed]).tocsr()
    pairs = np.stack([np.arange(n_leaves), parent_of], axis=1)
    estimate = propensity_from_hierarchy(Y, pairs, n_bootstrap=40)
    assert estimate.fit_.n_labels == n_parents
    assert estimate.a == pytest.approx(a, abs=0.06)
    counts = np.arange(1, 3000)
    mine, truth = (
        JainPropensity(x, b=y).fit_counts(counts, 20_000).propensity_ for x, y in ((estimate.a, estimate.b), (a, b))
    )
    np.testing.assert_allclose(mine, truth, atol=0.03)


def test_substitutes_recover_the_curve():
    """Items come in groups that are viewed together; within 0.1 of A and 0.08 of the propensity of any label."""
    rng = np.random.default_rng(6)
    n_items, size = 20_000, 40
    group = np.arange(n_items) // size
    n_labels = 1_200
    n_groups = np.maximum(1, (150 / np.arange(1, n_labels + 1) ** 0.7).astype(int))
    columns = np.repeat(np.arange(n_labels), n_groups * size)
    rows = np.concatenate(
        [(rng.choice(n_items // size, n, replace=False)[:, None] * size + np.arange(size)).ravel() for n in n_groups]
    )
    complete = sparse.csr_array((np.ones(rows.size, np.float32), (rows, columns)), (n_items, n_labels))
    observed = drop_labels(complete, planted_propensity(JainPropensity(0.6, b=2.6), complete), random_state=7)
    member = sparse.csr_array((np.ones(n_items, np.float32), (np.arange(n_items), group)))
    estimate = propensity_from_substitutes(observed, member @ member.T, n_bootstrap=20)
    counts = np.unique(np.bincount(observed.indices))
    mine, truth = (
        JainPropensity(x, b=y).fit_counts(counts, n_items).propensity_
        for x, y in ((estimate.a, estimate.b), (0.6, 2.6))
    )
    assert estimate.a == pytest.approx(0.6, abs=0.1)
    np.testing.assert_allclose(mine, truth, atol=0.08)


def test_rates_equal_the_plain_twins(monkeypatch):
    seen = captured(monkeypatch)
    rng = np.random.default_rng(8)
    Y = sparse.csr_array((rng.random((60, 14)) < 0.15).astype(np.float32))
    # Several parents, a chain, and a cycle 3 → 4 → 5 → 3.
    pairs = np.array([[0, 1], [1, 2], [0, 6], [3, 4], [4, 5], [5, 3], [7, 2], [8, 2], [9, 8], [10, 2], [10, 6]])
    matrix = sparse.csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (14, 14))
    rows = [row.nonzero()[0].tolist() for row in Y.toarray()]
    expected = hierarchy_rates(rows, pairs.tolist(), 14, min_descendants=2)
    for parents in (pairs, matrix, sparse.coo_matrix(matrix)):
        propensity_from_hierarchy(Y, parents, min_descendants=2)
        found = list(zip(seen[-1].found.tolist(), seen[-1].relevant.tolist(), strict=True))
        assert found == [rate for _, rate in sorted(expected.items())]
    assert descendants_of(2, pairs.tolist()) == {0, 1, 7, 8, 9, 10}

    viewed = sparse.csr_array((rng.random((60, 60)) < 0.02).astype(np.float32))
    expected = substitute_rates(rows, viewed.toarray(), 14)
    propensity_from_substitutes(Y, viewed)
    found = list(zip(seen[-1].found.tolist(), seen[-1].relevant.tolist(), strict=True))
    assert found == [rate for _, rate in sorted(expected.items())]


def test_what_a_check_took_away_is_ignored(monkeypatch):
    seen = captured(monkeypatch)
    propensity_from_audit([[1, 1, 0]], [[1, 0, 1]])
    assert seen[-1].found.tolist() == [1, 0] and seen[-1].relevant.tolist() == [1, 1]


def test_result_prints_saves_and_serves_as_a_propensity(tmp_path):
    complete = complete_labels(3_000, 300)
    observed = drop_labels(complete, 0.5, random_state=0)
    estimate = propensity_from_audit(observed, complete, n_bootstrap=10)
    text = str(estimate)
    assert (
        text.startswith("Propensity from an audit: ") and "a = " in text and "bootstrap intervals over labels" in text
    )
    assert "<table>" in estimate._repr_mimebundle_()["text/html"]
    estimate.save(tmp_path / "estimate")
    loaded = tailwise.load(tmp_path / "estimate")
    assert isinstance(loaded, EstimatedPropensity) and str(loaded) == text
    np.testing.assert_array_equal(loaded.propensity_, estimate.propensity_)
    np.testing.assert_array_equal(resolve_propensity(estimate, observed), estimate.propensity_)
    again = propensity_from_audit(observed, complete, n_bootstrap=10)
    assert (again.a, again.b, again.fit_.a_interval) == (estimate.a, estimate.b, estimate.fit_.a_interval)
    assert "not fitted" in str(EstimatedPropensity(0.5, b=1.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda Y: propensity_from_audit(Y, Y[:5]), "pass the same rows"),
        (lambda Y: propensity_from_audit(Y, Y, Y[:0]), "Y_train has 0 rows"),
        (
            lambda Y: propensity_from_audit(Y, Y, bin_size=10),
            "an audit tells about 12 labels only; two parameters need",
        ),
        (lambda Y: propensity_from_hierarchy(Y, [[0, 12]]), "names labels from 0 to 12, but Y has 12 columns"),
        (lambda Y: propensity_from_hierarchy(Y, [[0.5, 1]]), "pass .child, parent. pairs"),
        (lambda Y: propensity_from_hierarchy(Y, sparse.eye_array(3)), r"parents has shape \(3, 3\)"),
        (lambda Y: propensity_from_hierarchy(Y, [[0, 1]], min_descendants=0), "min_descendants=0"),
        (lambda Y: propensity_from_hierarchy(Y, [[0, 1]]), "a hierarchy tells about 0 labels only"),
        (lambda Y: propensity_from_substitutes(Y, sparse.eye_array(3)), "one row and one column for each row of Y"),
        (lambda Y: propensity_from_audit(Y, Y, bin_size=2, n_bootstrap=0), "n_bootstrap=0"),
    ],
)
def test_errors(call, message):
    Y = sparse.csr_array((np.random.default_rng(0).random((40, 12)) < 0.5).astype(np.float32))
    with pytest.raises(InvalidInput, match=message):
        call(Y)


def checked_pairs(seed=5, way=None):
    """Pairs of a complete matrix drawn with known probability: a tenth of the missing ones, some of the others."""
    rng = np.random.default_rng(seed)
    complete = complete_labels(n_samples=8_000, n_labels=600)
    observed = drop_labels(complete, planted_propensity(way, complete), random_state=seed)
    missing = sparse.csr_array(complete - observed)
    missing.eliminate_zeros()
    rows = np.repeat(np.arange(8_000), np.diff(missing.indptr))
    taken = rng.random(rows.size) < 0.1
    other_rows, other_labels = rng.integers(8_000, size=300), rng.integers(600, size=300)
    new = np.asarray(complete[other_rows, other_labels]).ravel() == 0
    pairs = [
        np.concatenate(parts) for parts in ((rows[taken], other_rows[new]), (missing.indices[taken], other_labels[new]))
    ]
    right = np.repeat([1.0, 0.0], [taken.sum(), new.sum()])
    return complete, observed, pairs, right, np.repeat([10.0, 50.0], [taken.sum(), new.sum()])


def test_pairs_recover_the_curve():
    """A tenth of the missing pairs, each standing for ten: within 0.06 of A, and 0.03 of labels of one count."""
    complete, observed, (rows, labels), right, weight = checked_pairs()
    estimate = tailwise.propensity_from_pairs(observed, rows, labels, right, weight, n_bootstrap=40)
    assert estimate.a == pytest.approx(0.55, abs=0.06)
    counts, right_pairs = (np.bincount(Y.indices, minlength=600) for Y in (observed, complete))
    truth = planted_propensity(JainPropensity(), complete)
    for count in range(15):
        own = counts == count
        there = float(truth[own] @ right_pairs[own] / right_pairs[own].sum())
        assert estimate.propensity_[own][0] == pytest.approx(there, abs=0.03)
    blurred = JainPropensity().fit(observed).propensity_[counts == 0][0]
    assert blurred < estimate.propensity_[counts == 0][0] - 0.03, "labels that luck made rare are not so rare"
    assert estimate.of_unseen(8_000) == pytest.approx(estimate.propensity_[counts == 0][0])
    assert estimate.fit_.a_interval[0] < 0.55 < estimate.fit_.a_interval[1]
    assert "checked pairs" in str(estimate)


@pytest.mark.parametrize("way", [0.5, 0.9, AuditedPropensity(-0.3, odds=0.3)], ids=["half", "tenth", "frequent"])
def test_pairs_tell_where_the_guess_is_wrong_in_kind(way):
    """Labels that go missing all at one rate, or the frequent ones most: no curve of Jain's is like that."""
    complete, observed, (rows, labels), right, weight = checked_pairs(way=way)
    estimate = tailwise.propensity_from_pairs(observed, rows, labels, right, weight, n_bootstrap=40)
    seen = np.bincount(observed.indices, minlength=600) > 0
    np.testing.assert_allclose(estimate.propensity_[seen], planted_propensity(way, complete)[seen], atol=0.06)
    assert np.abs(JainPropensity().fit(observed).propensity_ - planted_propensity(way, complete))[seen].max() > 0.25
    assert "checked pairs" in str(estimate)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [0]}, "one entry a pair"),
        ({"rows": np.full(9, 8_000)}, "integers from 0 to 7,999"),
        ({"labels": np.full(9, 0.5)}, "labels must hold integers"),
        ({"weight": np.zeros(9)}, "above 0"),
        ({"relevant": np.full(9, np.nan)}, "relevant finite"),
        ({}, "tells about 0 unrecorded pairs|tells about 9 unrecorded pairs"),
    ],
)
def test_pairs_that_cannot_be_are_refused(change, message):
    Y = sparse.csr_array((8_000, 5), dtype=np.float32)
    given = {"rows": np.arange(9), "labels": np.zeros(9, int), "relevant": np.ones(9), "weight": np.ones(9)} | change
    with pytest.raises(InvalidInput, match=message):
        tailwise.propensity_from_pairs(Y, **given)
