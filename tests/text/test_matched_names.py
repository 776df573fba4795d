"""Which finds are right: learnt from some labels, true of others."""

import numpy as np
import pytest
from contracts import ModelContract
from scipy import sparse

import tailwise
from tailwise import Columns, DiSMEC, LabelMatcher, MatchedNames, Stacked, Tagger, TextFeatures, TextParts, Vocabulary
from tailwise.errors import InvalidInput
from tailwise.kernels.text.names import ALONE, COUNT, FIRST, LENGTH, N_FACTS, WORDS
from tailwise.metrics import evaluate
from tailwise.persistence.checks import Violation
from tailwise.text.matched_names import INPUTS


def make_finds(n_samples=120, n_labels=15, seed=0):
    """Right finds early and alone, wrong ones late and within other names; label 0 has no row, label 1 has all."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n_samples, n_labels, N_FACTS), np.float32)
    Y = np.zeros((n_samples, n_labels), np.float32)
    for i in range(n_samples):
        right, wrong = np.split(rng.permutation(np.arange(2, n_labels))[:5], [2])
        Y[i, right] = 1
        for label in [1, *right, *wrong]:
            alone = label not in wrong
            X[i, label, [WORDS, COUNT, ALONE, FIRST, LENGTH]] = 1, 1, alone, rng.integers(1, 5) + 9 * (not alone), 20
    Y[:, 1] = 1
    return sparse.csr_array(X.reshape(n_samples, -1)), sparse.csr_array(Y)


class TestMatchedNames(ModelContract):
    data = staticmethod(make_finds)

    def make(self, **params):
        return MatchedNames(**{"max_iter": 20, **params})

    def test_scikit_learn_checks(self):
        """They draw rows of any width; these have 15 columns a label."""
        with pytest.raises(InvalidInput, match=r"X has 4 columns, but MatchedNames reads 15 for each of 2 labels"):
            MatchedNames().fit(np.ones((6, 4)), np.eye(2)[[0, 1] * 3])

    def test_update_or_a_sentence(self, rows, fitted, tmp_path):
        """Finds are counted again; labels that are new have no columns, and are never found."""
        X, Y = rows
        wide = sparse.csr_array(sparse.hstack([Y, Y[:, [1]]], format="csr"))
        model = self.make(random_state=0).fit(X[:100], Y[:100])
        model.update(X[100:], wide[100:], known=(X[:100], Y[:100]))
        assert model.n_labels_ == Y.shape[1] + 1 and model.n_learnt_again == 0
        whole = self.make(random_state=0).fit(X, Y)
        np.testing.assert_array_equal(model.found_[:, : Y.shape[1]], whole.found_)
        np.testing.assert_array_equal(model.right_[:, : Y.shape[1]], whole.right_)
        assert not (model.predict_topk(X, 3).labels == Y.shape[1]).any()
        model.save(tmp_path / "m")
        np.testing.assert_array_equal(
            tailwise.load(tmp_path / "m").predict_topk(X, 3).scores, model.predict_topk(X, 3).scores
        )

    def test_update_confirms_and_rejects_labels(self, rows):
        X, Y = rows
        model = self.make(random_state=0).fit(X, Y)
        label = int(Y[[0]].indices[-1])
        changed = sparse.lil_array(Y[:1])
        changed[0, label] = 0
        before = model.right_[:, label].sum()
        model.update(X[:1], changed.tocsr(), known=(X, Y), rows=[0])
        assert model.right_[:, label].sum() == before - 1


def test_a_find_is_described_by_what_is_known_of_it():
    X, Y = make_finds()
    model = MatchedNames(max_iter=5, random_state=0).fit(X, Y)
    assert model.pair_inputs() == INPUTS and len(INPUTS) == 18
    rows = np.array([0, 0, 3])
    labels = np.array([1, 0, 1])
    described = model.describe_pairs(X, rows, labels)
    assert np.isnan(described[1]).all(), "label 0 is found nowhere"
    np.testing.assert_array_equal(described[0, :N_FACTS], X[[0]].toarray().reshape(15, -1)[1])
    share, finds, frequency = described[2, N_FACTS:]
    assert share == pytest.approx((120 + 0.02 * 5) / (120 + 5)) and finds == 120
    assert frequency == pytest.approx(np.log(121))
    assert np.isnan(model.describe_pairs(sparse.csr_array((1, X.shape[1])), np.zeros(1, int), np.ones(1, int))).all()


def test_drawing_wrong_finds_keeps_the_probabilities():
    X, Y = make_finds(600)
    whole, drawn = (
        MatchedNames(n, max_iter=20, random_state=0).fit(X[:400], Y[:400]).predict_topk(X[400:], 15)
        for n in (10**6, 1500)
    )
    mean = lambda top: top.scores[top.labels >= 0].mean()  # noqa: E731
    assert mean(drawn) == pytest.approx(mean(whole), abs=0.03)


def test_labels_that_say_nothing_teach_nothing():
    """Were the share of right finds told with the row's own, scores of new rows would spread far around the truth."""
    rng = np.random.default_rng(0)
    n, n_labels = 500, 60
    found = rng.random((n, n_labels)) < 0.1
    X = np.zeros((n, n_labels, N_FACTS), np.float32)
    X[found, WORDS], X[found, COUNT], X[found, LENGTH] = 1, 1, 20
    X, Y = sparse.csr_array(X.reshape(n, -1)), sparse.csr_array((rng.random((n, n_labels)) < 0.3).astype(np.float32))
    model = MatchedNames(random_state=0).fit(X[:250], Y[:250])
    top = model.predict_topk(X[250:], n_labels)
    there = top.labels >= 0
    scores = top.scores[there]
    hits = Y.toarray()[250:][np.nonzero(there)[0], top.labels[there]]
    assert scores.mean() == pytest.approx(0.3, abs=0.06)
    assert np.mean((scores - hits) ** 2) < 1.2 * 0.3 * 0.7
    seen = model.predict_topk(X[:250], n_labels)
    assert seen.scores[seen.labels >= 0].std() < 0.2


def make_texts(n, n_labels, seed):
    """Half of the labels of a text are named in it, the others are told by a word of their own that is no name."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    share = 1 / np.arange(1, n_labels + 1)
    for _ in range(n):
        own = rng.choice(n_labels, 2, replace=False, p=share / share.sum())
        told = [f"name{label} thing{label}" if rng.random() < 0.5 else f"told{label}" for label in own]
        words = [*told, *(f"noise{i}" for i in rng.integers(0, 40, 5)), f"name{rng.integers(n_labels)}"]
        texts.append(" ".join(rng.permutation(words).tolist()))
        labels.append([f"u:{label}" for label in own])
    return texts, labels


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary.from_names({f"u:{i}": f"Name{i} Thing{i}" for i in range(60)}, "en")


def test_labels_without_a_training_row_are_found(vocabulary, tmp_path):
    texts, labels = make_texts(300, 50, seed=0)
    tagger = Tagger(MatchedNames(max_iter=30, random_state=0), features=LabelMatcher()).fit(
        texts, labels, vocab=vocabulary
    )
    assert tagger.n_labels_ == 60 and not tagger.label_counts_[-10:].any()
    best = tagger.suggest(["noise3 name55 thing55 of noise1", "nothing"], k=3)
    assert [s.id for s in best[0]] == ["u:55"] and best[0][0].score > 0.5 and best[1] == []
    why = tagger.explain("noise3 name55 thing55", "u:55")
    assert 0 < why.score <= 1
    tagger.save(tmp_path / "m")
    assert tailwise.load(tmp_path / "m").suggest(texts[:9]) == tagger.suggest(texts[:9])


def test_a_stack_of_words_and_names_is_better_than_either(vocabulary):
    texts, labels = make_texts(650, 60, seed=1)
    parts = TextParts([TextFeatures(), LabelMatcher()])
    words = Columns(DiSMEC(random_state=0), group="words")
    names = Columns(MatchedNames(max_iter=30, random_state=0), group="names")
    reached = {}
    for kind, model in [("words", words), ("names", names), ("both", Stacked([words, names], random_state=0))]:
        tagger = Tagger(model, features=parts, calibrate=False).fit(texts[:250], labels[:250], vocab=vocabulary)
        column = {label: i for i, label in enumerate(tagger.label_ids_)}
        Y = np.zeros((400, 60), np.float32)
        for row, own in enumerate(labels[250:]):
            Y[row, [column[label] for label in own]] = 1
        topk = tagger.predict_topk(texts[250:], 2)
        reached[kind] = evaluate(sparse.csr_array(Y), topk, "p@2", confidence=None)["p@2"].value
    assert reached["both"] > max(reached["words"], reached["names"]) + 3, reached


@pytest.mark.parametrize(
    ("attribute", "change"),
    [
        ("found_", lambda value: value[:1]),
        ("found_", lambda value: value - 10**6),
        ("right_", lambda value: value.astype(np.float64)),
        ("trees_", lambda value: None),
    ],
)
def test_a_state_that_could_not_be_trusted_is_refused(attribute, change):
    model = MatchedNames(max_iter=2, random_state=0).fit(*make_finds(30))
    model._check_state()
    setattr(model, attribute, change(getattr(model, attribute)))
    with pytest.raises(Violation, match=attribute):
        model._check_state()
