"""Evidence for propensities: a hierarchy of labels, substitutable items, rows checked by a person."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from tailwise.errors import InvalidInput
from tailwise.matrices import canonical_csr
from tailwise.parallel import row_blocks
from tailwise.propensity.fitting import EstimatedPropensity, LabelEvidence, fit_propensity
from tailwise.propensity.pairs import AuditedPropensity, PairEvidence, fit_pairs, varied
from tailwise.validation import as_rng, check_labels, check_number, label_counts

_LABELS_A_BLOCK = 4096


def propensity_from_hierarchy(Y: Any, parents: Any, *, min_descendants: int = 5, **options: Any) -> EstimatedPropensity:
    """Fit (A, B) to how often a label is missing where one of its descendants was observed.

    Every ancestor of an observed label is assumed relevant, so ``p_l = n_l / n*_l`` with n*_l the rows that carry l or
    a descendant of it (Jain et al., section 5). The paper bins labels by n_l and fits the mean p of a bin at its n_l
    (``bins_by="observed"``). Labels with good luck then sit in higher bins than their like, which on data with known
    (A, B) drives B to 0. So bins are made by n*_l here, and the curve is solved for the rate that a label with n*_l
    relevant rows must have.

    Parameters
    ----------
    Y : (n_samples, n_labels) binary matrix
        The observed training labels.
    parents : sparse (n_labels, n_labels) matrix, or array of (child, parent) pairs
        The hierarchy; entry [child, parent]. A label may have several parents. Cycles do no harm.
    min_descendants : int
        Only labels with at least so many descendants are evidence.
    **options
        ``bin_size=20, bins_by="relevant", confidence=0.95, n_bootstrap=200, random_state=0``.

    Notes
    -----
    Returns the propensity, fitted on Y; ``print`` shows the fit. Memory is that of the hierarchy's transitive closure
    and of Y with all ancestors added.
    """
    Y = check_labels(Y)
    n_labels = Y.shape[1]
    check_number("min_descendants", min_descendants, integer=True, low=1)
    ancestors = _closure(_check_hierarchy(parents, n_labels))
    complete = sparse.csr_array(Y + Y @ ancestors)
    relevant, counts = label_counts(complete), label_counts(Y)
    descendants = np.bincount(ancestors.indices, minlength=n_labels)
    used = np.flatnonzero((descendants >= min_descendants) & (relevant > 0))
    evidence = _exact_evidence("a hierarchy", counts[used], relevant[used], Y.shape[0])
    return fit_propensity(evidence, **options).fit(Y)


def propensity_from_substitutes(Y: Any, viewed: Any, **options: Any) -> EstimatedPropensity:
    """Fit (A, B) to how many of the items that a label could have been bought with, it was bought with.

    For recommendation of items: row i of Y is an item, and ``Y[i, l] = 1`` says that l was bought with it. Items
    viewed together are substitutes. ``p_l = n_l / n*_l``, where n*_l counts the distinct items that were viewed
    together with an item that l was bought with, and these items themselves (Jain et al., section 5; a label could be
    bought with them for sure, and p stays below 1). Only labels count whose items all have been viewed with others.

    Parameters
    ----------
    Y : (n_samples, n_labels) binary matrix
        Item i was bought together with label l.
    viewed : sparse (n_samples, n_samples) matrix
        Items i and j were viewed together; made symmetric.
    **options
        ``bin_size=20, bins_by="relevant", confidence=0.95, n_bootstrap=200, random_state=0``.
    """
    Y = check_labels(Y)
    n_items = Y.shape[0]
    viewed = sparse.csr_array(viewed)
    if viewed.shape != (n_items, n_items):
        raise InvalidInput(
            f"viewed has shape {viewed.shape}; pass one row and one column for each row of Y: {n_items:,}"
        )
    viewed.eliminate_zeros()
    viewed = sparse.csr_array(((viewed + viewed.T) != 0).astype(np.float32))
    alone = np.diff(_without_diagonal(viewed).indptr) == 0
    reach = sparse.csr_array(viewed + sparse.eye_array(n_items, dtype=np.float32, format="csr"))
    by_label = sparse.csr_array(Y.T.tocsr())
    counts = label_counts(Y)
    relevant = np.concatenate(
        [
            np.diff(sparse.csr_array(by_label[start:stop] @ reach).indptr)
            for start, stop in row_blocks(Y.shape[1], _LABELS_A_BLOCK)
        ]
    )
    used = np.flatnonzero((counts > 0) & (by_label @ alone.astype(np.float32) == 0))
    evidence = _exact_evidence("substitutes", counts[used], relevant[used], n_items)
    return fit_propensity(evidence, **options).fit(Y)


def propensity_from_audit(Y_observed: Any, Y_complete: Any, Y_train: Any = None, **options: Any) -> EstimatedPropensity:
    """Fit (A, B) to a sample of rows on which every label was checked by a person.

    ``p_l`` = share of the rows that truly have l on which l had been observed.

    Parameters
    ----------
    Y_observed, Y_complete : (n_audited, n_labels) binary matrices
        The labels of the audited rows before and after the check. A label that the check took away counts as wrong
        from the start and is ignored.
    Y_train : (n_samples, n_labels) binary matrix, or None
        The other training rows, not audited, which tell how frequent labels are: audited rows must not be among them,
        because the luck of a row would then count on both sides. None: the audited rows are the training set.
    **options
        ``bin_size=20, confidence=0.95, n_bootstrap=200, random_state=0``.

    Notes
    -----
    Returns the propensity, fitted on the observed labels of all rows.
    """
    complete = check_labels(Y_complete)
    observed = check_labels(Y_observed, n_labels=complete.shape[1])
    if observed.shape != complete.shape:
        raise InvalidInput(f"Y_observed has shape {observed.shape} but Y_complete {complete.shape}; pass the same rows")
    found, relevant = label_counts(sparse.csr_array(observed.multiply(complete))), label_counts(complete)
    used = np.flatnonzero(relevant > 0)
    if Y_train is None:
        evidence = _exact_evidence("an audit", found[used], relevant[used], complete.shape[0])
        return fit_propensity(evidence, **options).fit(observed)
    train = check_labels(Y_train, n_labels=complete.shape[1])
    if train.shape[0] == 0:
        raise InvalidInput("Y_train has 0 rows; pass the training rows that were not audited, or None")
    n_samples = train.shape[0] + observed.shape[0]
    frequency = label_counts(train)[used] * (n_samples / train.shape[0])
    pairs = found[used].astype(np.float64), relevant[used].astype(np.float64)
    evidence = LabelEvidence("an audit", frequency, pairs[0], pairs[1], n_samples, False)
    return fit_propensity(evidence, **options).fit(sparse.vstack([train, observed], format="csr"))


def propensity_from_pairs(
    Y: Any,
    rows: Any,
    labels: Any,
    relevant: Any,
    weight: Any,
    *,
    confidence: float = 0.95,
    n_bootstrap: int = 200,
    random_state: Any = 0,
) -> AuditedPropensity:
    """Fit (A, B) to pairs (row, label) that a person checked and that were drawn with known probability.

    ``p = recorded / (recorded + missing)`` in bins of label frequency: recorded pairs are those of ``Y``, as far as
    checked ones are right; missing pairs are counted by ``Σ weight`` over unrecorded pairs found relevant. Intervals
    come from the Bayesian bootstrap over rows: each row with all its pairs gets an exponential weight. A pair's
    frequency is that of its label on *other* rows, because a row's luck would else count on both sides; pairs of labels
    that no other row has are left out.

    Parameters
    ----------
    Y : (n_samples, n_labels) binary matrix
        The observed training labels.
    rows, labels : (n_pairs,) int
        The pairs that were checked; whether one is recorded, ``Y`` tells.
    relevant : (n_pairs,) numbers
        1 where the label belongs to the row, 0 where not; or an estimate of that, which may leave [0, 1].
    weight : (n_pairs,) numbers
        How many pairs each stands for: 1 over the probability with which it was drawn.
    confidence, n_bootstrap, random_state
        Of the intervals.

    Notes
    -----
    Returns the propensity, fitted on ``Y``; ``print`` shows the fit.
    """
    Y = check_labels(Y)
    check_number("confidence", confidence, low=0, high=1, open_low=True, open_high=True)
    check_number("n_bootstrap", n_bootstrap, integer=True, low=1)
    row, label, right, weights = (np.asarray(part) for part in (rows, labels, relevant, weight))
    _check_pairs(Y.shape, row, label, right, weights)
    counts = label_counts(Y)
    own = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    keys = own.astype(np.int64) * Y.shape[1] + Y.indices
    recorded = np.isin(row.astype(np.int64) * Y.shape[1] + label, keys)
    rng = as_rng(random_state)
    luck = np.vstack([np.ones(Y.shape[0]), rng.exponential(size=(n_bootstrap, Y.shape[0]))])[:, row]
    wrong = _share_of_wrong((luck * weights)[:, recorded], right[recorded])
    frequency, times = np.unique(counts[Y.indices] - 1, return_counts=True)
    others = frequency > 0
    kept = (~recorded) & (counts[label] > 0)
    evidence = PairEvidence(
        frequency[others],
        (1 - wrong)[:, None] * varied(times[others], n_bootstrap, rng),
        counts[label][kept],
        (luck * weights * right)[:, kept],
        counts,
    )
    return fit_pairs(evidence, Y.shape[0], "checked pairs", confidence)[0].fit(Y)


def _check_pairs(shape: tuple[int, int], rows: Any, labels: Any, relevant: Any, weight: Any) -> None:
    sizes = {part.shape for part in (rows, labels, relevant, weight)}
    if len(sizes) != 1 or rows.ndim != 1:
        shapes = ", ".join(str(part.shape) for part in (rows, labels, relevant, weight))
        raise InvalidInput(f"rows, labels, relevant and weight have shapes {shapes}; pass one entry a pair in each")
    for name, values, n in (("rows", rows, shape[0]), ("labels", labels, shape[1])):
        if not np.issubdtype(values.dtype, np.integer) or (values.size and not 0 <= values.min() <= values.max() < n):
            raise InvalidInput(f"{name} must hold integers from 0 to {n - 1:,}, as Y has shape {shape}")
    if not (np.isfinite(weight) & (weight > 0)).all() or not np.isfinite(relevant).all():
        raise InvalidInput("weight must be finite and above 0, and relevant finite, for every pair")


def _share_of_wrong(weight: np.ndarray, right: np.ndarray) -> np.ndarray:
    if not right.size:
        return np.zeros(weight.shape[0])
    return np.clip(1 - (weight @ right) / weight.sum(axis=1), 0.0, 0.99)


def _exact_evidence(source: str, found: np.ndarray, relevant: np.ndarray, n_samples: int) -> LabelEvidence:
    counts = found.astype(np.float64)
    return LabelEvidence(source, counts, counts, relevant.astype(np.float64), n_samples, True)


def _check_hierarchy(parents: Any, n_labels: int) -> sparse.csr_array:
    if not sparse.issparse(parents):
        pairs = np.asarray(parents)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
            raise InvalidInput(
                f"parents has shape {pairs.shape} and dtype {pairs.dtype}; pass (child, parent) pairs of label indices "
                "or a sparse (n_labels, n_labels) matrix"
            )
        if pairs.size and (pairs.min() < 0 or pairs.max() >= n_labels):
            raise InvalidInput(
                f"parents names labels from {pairs.min()} to {pairs.max()}, but Y has {n_labels:,} columns"
            )
        parents = sparse.coo_array((np.ones(len(pairs), np.float32), (pairs[:, 0], pairs[:, 1])), (n_labels, n_labels))
    if parents.shape != (n_labels, n_labels):
        raise InvalidInput(f"parents has shape {parents.shape}; Y has {n_labels:,} columns, so pass {(n_labels,) * 2}")
    return sparse.csr_array((canonical_csr("parents", parents, np.float32) != 0).astype(np.float32))


def _closure(parents: sparse.csr_array) -> sparse.csr_array:
    """[label, ancestor] for every ancestor, by doubling the length of paths until nothing new is found."""
    ancestors = parents
    while True:
        longer = sparse.csr_array(((ancestors + ancestors @ ancestors) != 0).astype(np.float32))
        if longer.nnz == ancestors.nnz:
            break
        ancestors = longer
    return _without_diagonal(ancestors)


def _without_diagonal(matrix: sparse.csr_array) -> sparse.csr_array:
    entries = matrix.tocoo()
    rows, columns = entries.coords
    keep = rows != columns
    return sparse.csr_array((entries.data[keep], (rows[keep], columns[keep])), shape=matrix.shape)
