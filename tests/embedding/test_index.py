"""Label search: exact equals the plain twin, alone and in company; approximate says what it misses."""

import numpy as np
import pytest
from contracts import assert_same_bits
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from naive import embedding as naive

import tailwise
from tailwise.base import TopK
from tailwise.embedding import ExactIndex, FaissIndex, recall_report, structures
from tailwise.errors import InvalidInput, MissingExtra, NotFitted, import_extra


def unit(rng, n, d):
    vectors = rng.standard_normal((n, d)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@st.composite
def searches(draw):
    """Label vectors, their labels with gaps, and queries: small integers, so that sums are exact and ties are many."""
    labels = sorted(draw(st.sets(st.integers(0, 99), min_size=1, max_size=40)))
    d = draw(st.integers(1, 9))
    values = st.integers(-2, 2).map(float)
    vectors = draw(hnp.arrays(np.float32, (len(labels), d), elements=values))
    queries = draw(hnp.arrays(np.float32, (draw(st.integers(1, 12)), d), elements=values))
    return vectors, np.array(labels), queries


@settings(max_examples=50, deadline=None)
@given(searches(), st.integers(1, 45))
def test_exact_search_equals_its_twin(case, k):
    vectors, labels, queries = case
    found = ExactIndex(n_jobs=1).build(vectors, labels).search(queries, k)
    for i, query in enumerate(queries):
        expected = naive.top_k(vectors, labels, query, k)
        assert found.labels[i].tolist() == expected + [-1] * (k - len(expected))
        assert np.isneginf(found.scores[i][len(expected) :]).all()


def test_exact_search_gives_the_same_bits_alone_and_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    vectors = unit(rng, 9000, 33)
    vectors[100:130] = vectors[100]
    queries = vectors[rng.integers(9000, size=600)] + np.float32(0.1) * unit(rng, 600, 33)
    queries[0], queries[1] = 0, vectors[100]
    index = ExactIndex(n_jobs=1).build(vectors)
    whole = index.search(queries, 7)
    assert_same_bits(ExactIndex(n_jobs=2).build(vectors).search(queries, 7), whole)
    for i in (0, 1, 5, 599):
        assert_same_bits(index.search(queries[i : i + 1], 7), TopK(whole.labels[i : i + 1], whole.scores[i : i + 1]))
    assert whole.labels[0].tolist() == list(range(7)) and whole.labels[1].tolist() == list(range(100, 107))


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_faiss_finds_most_and_scores_exactly(kind, tmp_path):
    rng = np.random.default_rng(1)
    centres = unit(rng, 40, 16)
    vectors = centres[rng.integers(40, size=3000)] + np.float32(0.3) * unit(rng, 3000, 16)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = vectors[:300] + np.float32(0.05) * unit(rng, 300, 16)
    counts = rng.integers(1, 100, 3000)
    index = FaissIndex(kind, n_jobs=1).build(vectors)
    exact, found = ExactIndex().build(vectors).search(queries, 5), index.search(queries, 5)
    report = index.recall_report(queries, counts)
    assert report.overall == np.mean([np.isin(a, b).mean() for a, b in zip(exact.labels, found.labels, strict=True)])
    assert report.overall > 0.9 and report.found_in_decile.sum() == 1500
    np.testing.assert_allclose(
        np.nansum(report.by_decile * report.found_in_decile) / 1500, report.overall
    )  # deciles add up
    assert str(report).startswith("recall@5 0.9") or str(report).startswith("recall@5 1.0")
    same = exact.labels == found.labels
    np.testing.assert_array_equal(exact.scores[same].view(np.uint32), found.scores[same].view(np.uint32))
    assert_same_bits(FaissIndex(kind, n_jobs=2).build(vectors).search(queries, 5), found)
    tailwise.persistence.save(index, tmp_path / "index")
    assert_same_bits(tailwise.load(tmp_path / "index").search(queries, 5), found)


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_effort_is_the_least_that_keeps_the_recall(kind, tmp_path):
    rng = np.random.default_rng(2)
    vectors, queries = unit(rng, 3000, 24), unit(rng, 400, 24)  # no clusters: hard to search
    asked, fresh = queries[:200], queries[200:]
    index = FaissIndex(kind, links=8, build_effort=16, min_recall=0.9, n_jobs=1).build(vectors, queries=asked)
    assert index.recall_report(asked, np.ones(3000)).overall >= 0.9
    assert index.recall_report(fresh, np.ones(3000)).overall >= 0.88
    less = FaissIndex(kind, effort=index.effort_ // 2, links=8, build_effort=16, n_jobs=1).build(vectors, queries=asked)
    assert less.effort_ == index.effort_ // 2 and less.recall_report(asked, np.ones(3000)).overall < 0.9
    assert FaissIndex(kind, links=8, build_effort=16, min_recall=0.9, n_jobs=2).build(
        vectors, queries=asked
    ).effort_ == (index.effort_)
    tailwise.persistence.save(index, tmp_path / "index")
    assert_same_bits(tailwise.load(tmp_path / "index").search(fresh, 5), index.search(fresh, 5))
    everything = index.set_params(min_recall=1.0).build(vectors, queries=asked)
    assert everything.recall_report(asked, np.ones(3000)).overall > 0.99


def test_deciles_go_from_rare_to_frequent():
    class Forgetful(ExactIndex):
        def _search(self, queries, positions, scores):
            super()._search(queries, positions, scores)
            positions[positions < 10] = -1

    vectors = np.eye(100, dtype=np.float32)
    report = recall_report(Forgetful().build(vectors), vectors, np.arange(100), k=1)
    assert report.by_decile.tolist() == [0] + [1] * 9 and report.overall == 0.9


def test_few_labels_and_unseen_ones():
    index = FaissIndex("ivf").build(np.eye(3, dtype=np.float32), [4, 7, 9])
    assert index.search(np.eye(3, dtype=np.float32)[:1], 5).labels.tolist()[0][0] == 4
    empty = ExactIndex().build(np.zeros((0, 3), np.float32)).search(np.ones((2, 3)), 2)
    assert (empty.labels == -1).all() and np.isneginf(empty.scores).all()


def test_error_texts(monkeypatch):
    index = ExactIndex().build(np.eye(3))
    with pytest.raises(NotFitted, match="holds no vectors yet; call build"):
        ExactIndex().search(np.eye(3), 1)
    with pytest.raises(InvalidInput, match=r"queries has shape \(1, 2\); pass rows of 3 values"):
        index.search(np.ones((1, 2)), 1)
    with pytest.raises(InvalidInput, match=r"k=0 is outside"):
        index.search(np.eye(3), 0)
    with pytest.raises(InvalidInput, match="ascending order"):
        ExactIndex().build(np.eye(2), [3, 1])
    with pytest.raises(InvalidInput, match="one row a label"):
        ExactIndex().build([1.0, 2.0])
    with pytest.raises(InvalidInput, match="label_counts_"):
        recall_report(index, np.eye(3), [1, 2])
    with pytest.raises(InvalidInput, match=r"min_recall=2 is outside \[0, 1\]"):
        FaissIndex(min_recall=2).build(np.eye(3))
    with pytest.raises(InvalidInput, match=r"queries has shape \(1, 2\); pass rows of 3 values"):
        FaissIndex().build(np.eye(3), queries=np.ones((1, 2)))
    with pytest.raises(InvalidInput, match="kind='tree' is not one of 'ivf', 'hnsw'"):
        FaissIndex("tree").build(np.eye(3))

    def without_faiss(module):
        raise ModuleNotFoundError(module)

    monkeypatch.setattr(structures, "import_extra", lambda *a: import_extra(*a, importer=without_faiss))
    with pytest.raises(MissingExtra, match=r"FaissIndex needs faiss; install it with: pip install 'tailwise\[ann\]'"):
        FaissIndex().build(np.eye(3))
