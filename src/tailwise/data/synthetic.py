"""Synthetic data with a long tail, whose complete labels and propensities are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from tailwise.data.dataset import Dataset
from tailwise.data.mapped import write_rows
from tailwise.data.missing import drop_labels, planted_propensity
from tailwise.errors import InvalidInput
from tailwise.parallel import count_jobs, map_blocks, progress, row_blocks
from tailwise.rows import smooth_idf, unit_rows
from tailwise.validation import as_rng, check_number

_ROWS_A_BLOCK = 1 << 15
_HEAD_OFFSET = 10.0
_LABELS_A_TOPIC = 20
_WORDS_A_TOPIC = 12


class _World(NamedTuple):
    """What rows are drawn from. Labels of a topic lie side by side in ``order``, so one array serves every draw."""

    order: np.ndarray  # (n_labels,) int32: the label at each place
    place_topic: np.ndarray  # (n_labels,) int32: the topic of each place
    topic_start: np.ndarray  # (n_topics + 1,) int64: a topic's places
    label_cdf: np.ndarray  # (n_labels + 1,) float64: cumulative chances, from 0 to 1, by place
    label_words: np.ndarray  # (n_labels, features_per_label) int32
    word_order: np.ndarray  # (n_features,) int32: the feature of each background rank
    word_cdf: np.ndarray  # (n_features + 1,) float64


def make_longtail(
    n_samples: int = 10_000,
    n_features: int = 5_000,
    n_labels: int = 1_000,
    *,
    labels_per_row: float = 5.0,
    exponent: float = 1.0,
    correlation: float = 0.5,
    features_per_label: int = 6,
    words_per_label: int = 3,
    background_words: float = 50.0,
    propensity: Any = None,
    test_fraction: float = 0.2,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Dataset:
    """Text-like rows with many rare labels, of which only some were observed, at a known rate.

    A label's frequency falls as a power of its rank. A row draws a first label, then others that often come from the
    first one's topic. Each label has a few characteristic features, half of them shared with its topic; a row's words
    are drawn from its labels' features and from a background that follows Zipf's law. Rows are TF-IDF of unit length.
    The complete labels Y* made the words; the observed labels Y are Y* with each label kept at its propensity.

    Returns a :class:`Dataset` with ``X_train, Y_train, Y_train_complete, X_test, Y_test, Y_test_complete`` and
    ``propensity`` (n_labels,). The same seed gives the same bits for every ``n_jobs``. Memory is about 8 bytes a
    non-zero, twice; a million rows with a million labels take under 3 GB.

    Parameters
    ----------
    n_samples, n_features, n_labels : int
        The size, training and test rows together.
    labels_per_row : float
        Mean number of labels drawn for a row (at least 1), before the same label drawn twice counts once.
    exponent : float
        Chances of labels by rank r are proportional to ``(r + 10) ** -exponent``; 0 makes all labels alike.
    correlation : float in [0, 1]
        The chance that a further label comes from the topic of the row's first.
    features_per_label, words_per_label : int
        How many features characterise a label, and how many words each label of a row contributes.
    background_words : float
        Mean number of words of a row that say nothing about its labels.
    propensity : None, float, (n_labels,) array or Propensity
        How labels go missing. ``JainPropensity(a, b)`` plants that curve: it holds for the counts observed in
        training. None plants ``JainPropensity()``; 1.0 keeps every label.
    test_fraction : float in [0, 1)
        The share of rows for testing; 0 makes no test set.
    random_state : int, numpy Generator or None
        Where the draws start.
    n_jobs : int or None
        Threads; None is every core.

    Examples
    --------
    >>> data = make_longtail(200, 100, 30, random_state=0)
    >>> data.X_train.shape, data.Y_test.shape, data.Y_train.nnz < data.Y_train_complete.nnz
    ((160, 100), (40, 30), True)
    """
    drawing = _prepare(
        n_samples,
        n_features,
        n_labels,
        labels_per_row=labels_per_row,
        exponent=exponent,
        correlation=correlation,
        features_per_label=features_per_label,
        words_per_label=words_per_label,
        background_words=background_words,
        test_fraction=test_fraction,
        random_state=random_state,
    )
    parts = drawing.blocks(n_jobs)
    half = drawing.train_blocks
    idf = _inverse_document_frequency([counts for counts, _ in parts[:half]], drawing.n_train)
    rows = [_tf_idf(counts, idf) for counts, _ in parts]
    Y_train, Y_test = (_stack([labels for _, labels in some]) for some in (parts[:half], parts[half:]))
    del parts

    kept = planted_propensity(propensity, Y_train)
    train_rng, test_rng = drawing.rng.spawn(2)
    return Dataset(
        X_train=_stack(rows[:half]),
        Y_train=drop_labels(Y_train, kept, train_rng),
        X_test=_stack(rows[half:]),
        Y_test=None if Y_test is None else drop_labels(Y_test, kept, test_rng),
        name=f"longtail-{n_labels}",
        source=f"make_longtail({n_samples}, {n_features}, {n_labels}, …, random_state={random_state!r})",
        Y_train_complete=Y_train,
        Y_test_complete=Y_test,
        propensity=kept,
    )


def write_longtail(
    path: str | Path,
    n_samples: int,
    n_features: int,
    n_labels: int,
    *,
    propensity: Any = None,
    n_jobs: int | None = None,
    **shape: Any,
) -> np.ndarray:
    """Write the rows of :func:`make_longtail`, whose parameters these are, to mapped rows on disk as they are drawn.

    The folder gets ``train.rows`` and ``test.rows``, which :func:`load_dataset` opens; the observed labels alone are
    kept. Each row is drawn twice, because the weight of a word needs all of them: memory is that of the labels, and of
    a few blocks of rows. Returns the propensities (n_labels,).
    """
    own = ("propensity", "n_jobs")
    usual = {name: value for name, value in (make_longtail.__kwdefaults__ or {}).items() if name not in own}
    drawing = _prepare(n_samples, n_features, n_labels, **usual | shape)
    frequency, labels = np.zeros(n_features, np.int64), []
    for number, (counts, own) in enumerate(drawing.stream(n_jobs)):
        labels.append(own)
        if number < drawing.train_blocks:
            frequency += np.bincount(counts.indices, minlength=n_features)
    idf = smooth_idf(frequency, drawing.n_train)
    half = drawing.train_blocks
    complete = _stack(labels[:half])
    kept = planted_propensity(propensity, complete)
    del complete
    generators = drawing.rng.spawn(2)
    again = drawing.stream(n_jobs)

    def observed(some: list[sparse.csr_array], rng: np.random.Generator) -> Iterator[Any]:
        for own, (counts, _) in zip(some, again, strict=False):
            yield _tf_idf(counts, idf), drop_labels(own, kept, rng)

    halves = {"train": labels[:half], "test": labels[half:]}
    for (name, some), rng in zip(halves.items(), generators, strict=True):
        if some:
            write_rows(Path(path) / f"{name}.rows", observed(some, rng), n_features=n_features, n_labels=n_labels)
    return kept


class _Drawing(NamedTuple):
    """Rows still to be drawn, block by block."""

    rng: np.random.Generator
    draw: Callable[[tuple[np.random.Generator, int]], tuple[sparse.csr_array, sparse.csr_array]]
    jobs: list[tuple[np.random.Generator, int]]
    train_blocks: int
    n_train: int

    def blocks(self, n_jobs: int | None) -> list[tuple[sparse.csr_array, sparse.csr_array]]:
        """Counts of words and complete labels of every block."""
        return map_blocks(self._one, self.jobs, n_jobs=n_jobs, description="Drawing rows" if len(self.jobs) > 4 else "")

    def stream(self, n_jobs: int | None) -> Iterator[tuple[sparse.csr_array, sparse.csr_array]]:
        """The same, a few blocks at a time."""
        size = count_jobs(n_jobs)
        with progress("Drawing rows", len(self.jobs)) as advance:
            for first in range(0, len(self.jobs), size):
                for block in map_blocks(self._one, self.jobs[first : first + size], n_jobs=n_jobs):
                    yield block
                    advance()

    def _one(self, job: tuple[np.random.Generator, int]) -> tuple[sparse.csr_array, sparse.csr_array]:
        # From a copy, so that it can be drawn again.
        return self.draw((deepcopy(job[0]), job[1]))


def _prepare(
    n_samples: int,
    n_features: int,
    n_labels: int,
    *,
    labels_per_row: float,
    exponent: float,
    correlation: float,
    features_per_label: int,
    words_per_label: int,
    background_words: float,
    test_fraction: float,
    random_state: Any,
) -> _Drawing:
    for name, value in (("n_samples", n_samples), ("n_features", n_features), ("n_labels", n_labels)):
        check_number(name, value, integer=True, low=1, high=2**31 - 2)
    check_number("labels_per_row", labels_per_row, low=1, high=n_labels)
    check_number("exponent", exponent, low=0)
    check_number("correlation", correlation, low=0, high=1)
    check_number("features_per_label", features_per_label, integer=True, low=1)
    check_number("words_per_label", words_per_label, integer=True, low=1)
    check_number("background_words", background_words, low=0)
    check_number("test_fraction", test_fraction, low=0, high=1, open_high=True)
    n_train = n_samples - round(test_fraction * n_samples)
    if n_train < 1:
        raise InvalidInput(f"n_samples={n_samples} with test_fraction={test_fraction} leaves no training row")
    rng = as_rng(random_state)
    world = _make_world(rng, n_features, n_labels, exponent, features_per_label)
    blocks = [*row_blocks(n_train, _ROWS_A_BLOCK)]
    train_blocks = len(blocks)
    blocks += [(n_train + first, n_train + last) for first, last in row_blocks(n_samples - n_train, _ROWS_A_BLOCK)]
    draw = partial(
        _draw_block,
        world=world,
        labels_per_row=labels_per_row,
        correlation=correlation,
        words_per_label=words_per_label,
        background_words=background_words,
    )
    jobs = list(zip(rng.spawn(len(blocks)), (last - first for first, last in blocks), strict=True))
    return _Drawing(rng, draw, jobs, train_blocks, n_train)


def _make_world(
    rng: np.random.Generator, n_features: int, n_labels: int, exponent: float, features_per_label: int
) -> _World:
    n_topics = max(1, round(n_labels / _LABELS_A_TOPIC))
    topic_of_place = np.sort(rng.integers(n_topics, size=n_labels, dtype=np.int32))
    # Which label is frequent and which topic holds it are independent: every topic has head and tail labels.
    chances = _power_law(n_labels, exponent, _HEAD_OFFSET)[rng.permutation(n_labels)]
    order = rng.permutation(n_labels).astype(np.int32)
    topic_words = rng.integers(n_features, size=(n_topics, _WORDS_A_TOPIC), dtype=np.int32)
    label_words = rng.integers(n_features, size=(n_labels, features_per_label), dtype=np.int32)
    n_shared = features_per_label // 2
    picks = rng.integers(_WORDS_A_TOPIC, size=(n_labels, n_shared))
    label_words[order, features_per_label - n_shared :] = topic_words[topic_of_place[:, None], picks]
    return _World(
        order=order,
        place_topic=topic_of_place,
        topic_start=np.searchsorted(topic_of_place, np.arange(n_topics + 1)),
        label_cdf=_cumulative(chances),
        label_words=label_words,
        word_order=rng.permutation(n_features).astype(np.int32),
        word_cdf=_cumulative(_power_law(n_features, 1.0, 2.7)),
    )


def _power_law(size: int, exponent: float, offset: float) -> np.ndarray:
    return (np.arange(1, size + 1) + offset) ** -exponent


def _cumulative(chances: np.ndarray) -> np.ndarray:
    cdf = np.concatenate([[0.0], np.cumsum(chances)])
    return cdf / cdf[-1]


def _pick(cdf: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    return np.minimum(np.searchsorted(cdf, uniform, side="right") - 1, cdf.size - 2)


def _draw_block(
    job: tuple[np.random.Generator, int],
    *,
    world: _World,
    labels_per_row: float,
    correlation: float,
    words_per_label: int,
    background_words: float,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    rng, n_rows = job
    first = _pick(world.label_cdf, rng.random(n_rows))
    further = rng.poisson(labels_per_row - 1.0, n_rows)
    rows = np.repeat(np.arange(n_rows, dtype=np.int32), further)
    uniform = rng.random(rows.size)
    topic = world.place_topic[first[rows]]
    low, high = (world.label_cdf[world.topic_start[topic + side]] for side in (0, 1))
    related = rng.random(rows.size) < correlation
    uniform = np.where(related, low + uniform * (high - low), uniform)
    places = np.concatenate([first, _pick(world.label_cdf, uniform)])
    rows = np.concatenate([np.arange(n_rows, dtype=np.int32), rows])
    Y = _count(rows, world.order[places], (n_rows, world.order.size))
    Y.data[:] = 1

    owner = np.repeat(np.arange(n_rows, dtype=np.int32), np.diff(Y.indptr) * words_per_label)
    n_words = world.label_words.shape[1]
    # Squaring favours a label's first features: some characterise it more than others.
    which = (n_words * rng.random((Y.nnz, words_per_label)) ** 2).astype(np.int64)
    words = np.take_along_axis(world.label_words[Y.indices], which, axis=1).ravel()
    filler = rng.poisson(background_words, n_rows)
    background = world.word_order[_pick(world.word_cdf, rng.random(int(filler.sum())))]
    owner = np.concatenate([owner, np.repeat(np.arange(n_rows, dtype=np.int32), filler)])
    return _count(owner, np.concatenate([words, background]), (n_rows, world.word_order.size)), Y


def _count(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]) -> sparse.csr_array:
    matrix = sparse.csr_array(sparse.coo_array((np.ones(rows.size, np.float32), (rows, columns)), shape=shape))
    matrix.sum_duplicates()
    return matrix


def _inverse_document_frequency(counts: list[sparse.csr_array], n_rows: int) -> np.ndarray:
    frequency = np.zeros(counts[0].shape[1], np.int64)
    for block in counts:
        frequency += np.bincount(block.indices, minlength=block.shape[1])
    return smooth_idf(frequency, n_rows)


def _tf_idf(counts: sparse.csr_array, idf: np.ndarray) -> sparse.csr_array:
    counts.data = (1.0 + np.log(counts.data)) * idf[counts.indices]
    return unit_rows(counts)


def _stack(parts: list[sparse.csr_array]) -> Any:
    return sparse.csr_array(sparse.vstack(parts, format="csr")) if parts else None
