"""Texts as sequences, word vectors from files, and networks behind a Tagger."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import tailwise
from tailwise import (
    XMLCNN,
    AttentionXML,
    Calibrated,
    Centroid,
    Sequences,
    Tagger,
    TextFeatures,
    learn_word_vectors,
    read_word_vectors,
)
from tailwise.errors import DataFormatError, InvalidInput, ModelFileError, NotFitted, TailwiseError
from tailwise.label_lists import indicator
from tailwise.sequence.tokens import Tokens
from tailwise.sequence.vectors import token_counts, token_vectors
from tailwise.text import KnownLabels

TEXTS = ["tax law of the sea", "sea fish and ships", "fish law", "ships at sea", "tax on ships", "law of tax"] * 6
LABELS = [["law", "tax"], ["fish"], ["law", "fish"], ["sea"], ["tax"], ["law"]] * 6


def test_words_come_in_their_order_as_text_features_cut_them():
    sequences = Sequences(5, min_df=1, lowercase=True).fit(TEXTS)
    assert sequences.words == list(TextFeatures(min_df=1).fit(TEXTS).get_feature_names_out())
    rows = sequences.transform(["SEA of nothing, sea", "", "law " * 9])
    assert rows.shape == (3, 5) and rows.dtype == np.float32
    read = [[sequences.words[int(n) - 1] for n in row if n] for row in rows.toarray()]
    assert read == [["sea", "of", "sea"], [], ["law"] * 5]
    with pytest.raises(NotFitted, match=r"this Sequences is not fitted yet; call Sequences.fit\(texts\) first"):
        Sequences().transform(["a"])
    with pytest.raises(InvalidInput, match=r"max_length=0 is outside \[1, 65536\]"):
        Sequences(0).fit(TEXTS)


def test_many_blocks_of_texts_are_read_as_one(monkeypatch):
    sequences = Sequences(6, min_df=1).fit(TEXTS)
    whole = sequences.transform(TEXTS).toarray()
    monkeypatch.setattr("tailwise.text.cutting.CHARACTERS_A_BLOCK", 30)
    np.testing.assert_array_equal(sequences.transform(TEXTS).toarray(), whole)


def test_a_sequence_comes_back_from_its_folder(tmp_path):
    sequences = Sequences(6, min_df=1).fit(TEXTS)
    sequences.save(tmp_path / "s")
    again = tailwise.load(tmp_path / "s")
    np.testing.assert_array_equal(again.transform(TEXTS).toarray(), sequences.transform(TEXTS).toarray())


def test_word_vectors_from_both_kinds_of_files(tmp_path):
    (tmp_path / "some.vec").write_text("2 3\nlaw 1 2 3\nothers 9 9 9\nsea 4 5 6\n", encoding="utf-8")
    expected = [[4, 5, 6], [0, 0, 0], [1, 2, 3]]
    np.testing.assert_array_equal(read_word_vectors(tmp_path / "some.vec", ["sea", "tax", "law"]), expected)
    np.save(tmp_path / "some.npy", np.array([[1, 2, 3], [4, 5, 6]]))
    (tmp_path / "some.txt").write_text("law\nsea\n", encoding="utf-8")
    np.testing.assert_array_equal(read_word_vectors(tmp_path / "some.npy", ["sea", "tax", "law"]), expected)
    (tmp_path / "some.txt").write_text("law\n", encoding="utf-8")
    with pytest.raises(DataFormatError, match=r"of shape \(2, 3\) beside 1 words; expected numbers, a row"):
        read_word_vectors(tmp_path / "some.npy", ["sea"])
    (tmp_path / "some.npy").write_bytes(b"\x93NUMPY\x01\x00\x04\x00{'a(")
    with pytest.raises(DataFormatError, match="damaged or foreign data, no array"):
        read_word_vectors(tmp_path / "some.npy", ["sea"])
    for text, message in (
        (b"law 1 x\n", "line 1: found 'law 1 x'; expected a word and numbers"),
        (b"law 1_0 2\n", "line 1: found .*expected a word and numbers"),
        (b"law\n", "line 1: found 'law'; expected a word and numbers"),
        (b"a 1\nlaw 1 2\nsea 1\n", "line 3: found 1 numbers; expected 2, as in lines before"),
        (b"law 1e39 2\n", "line 1: found NaN, infinity or a number beyond float32 for 'law'"),
        (b"law 1\nw\xff 1\n", "line 2: .*text in UTF-8"),
        (b"other 1 2\n", "has none of the 2 words"),
    ):
        (tmp_path / "bad.vec").write_bytes(text)
        with pytest.raises(TailwiseError, match=message):
            read_word_vectors(tmp_path / "bad.vec", ["law", "sea"])
    with pytest.raises(InvalidInput, match="does not exist"):
        read_word_vectors(tmp_path / "none.vec", ["law"])


def test_tokens_are_padded_by_their_own_length_alone():
    X = sparse.csr_array(np.array([[5, 0, 7] + [0] * 60, [5] * 63, [0] * 63], np.float32))
    tokens = Tokens.of(X, np.array([5.0], np.float32))
    assert np.diff(tokens.indptr).tolist() == [1, 63, 0] and tokens.lengths().tolist() == [32, 64, 32]
    assert [part.tolist() for part in tokens.buckets(np.array([1, 2, 0]), 2)] == [[2, 0], [1]]
    assert tokens.padded(np.array([0, 2])).tolist() == [[1] + [0] * 31, [0] * 32]


@pytest.fixture(scope="module")
def network():
    pytest.importorskip("torch")
    small = {"widths": (1, 2), "n_filters": 8, "word_dim": 8, "bottleneck": 16, "dropout": 0}
    return XMLCNN(**small, epochs=15, batch_size=8, learning_rate=0.02, early_stopping=False, random_state=0)


def test_a_tagger_makes_sequences_for_models_that_read_them(network, tmp_path):
    tagger = Tagger(network, features=Sequences(8, min_df=1)).fit(TEXTS, LABELS)
    assert [s.name for s in tagger.suggest(["ships at sea"], k=1)[0]] == ["sea"]
    tagger.save(tmp_path / "t")
    assert tailwise.load(tmp_path / "t").suggest(["fish"]) == tagger.suggest(["fish"])
    with pytest.raises(tailwise.errors.Unsupported, match="XMLCNN cannot say what its scores are made of"):
        tagger.explain("ships at sea", "sea")


def test_what_a_model_reads_decides_how_texts_become_rows(network):
    labels = KnownLabels(["1", "2"], ["1", "2"], sparse.csr_array((1, 2)))
    for model in (network, "xmlcnn", Calibrated(network)):
        assert isinstance(Tagger(model)._maker(["sea"], labels), Sequences)
    for model in (Centroid(), None):
        assert isinstance(Tagger(model)._maker(["sea"], labels), TextFeatures)
    with pytest.raises(InvalidInput, match=r"features=TextFeatures\(\) makes no rows that XMLCNN.* pass Sequences\(\)"):
        Tagger(network, features=TextFeatures()).fit(TEXTS, LABELS)
    with pytest.raises(InvalidInput, match=r"makes no rows that Centroid.* reads; pass TextFeatures\(\)"):
        Tagger(Centroid(), features=Sequences()).fit(TEXTS, LABELS)


def rows_and_labels():
    X = Sequences(8, min_df=1).fit_transform(TEXTS)
    return X, indicator(LABELS)[0]


def test_given_word_vectors_are_where_training_starts(network):
    X, Y = rows_and_labels()
    vectors = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    vectors[3] = 0
    still = {"word_vectors": vectors, "learning_rate": 1e-9, "epochs": 1}
    learnt = clone(network).set_params(**still).fit(X, Y)
    words = learnt.network_["words"].numpy()[1:]
    given = np.delete(np.arange(len(words)), 3)
    np.testing.assert_allclose(words[given], vectors[given], atol=1e-5)
    assert np.abs(words[3]).max() > 0, "a word without a vector starts at random"
    with pytest.raises(InvalidInput, match="word_vectors has 20 columns but word_dim=8; make them the same"):
        XMLCNN(word_dim=8, word_vectors=vectors.T @ vectors[:, :1] * np.ones((1, 20), np.float32)).fit(X, Y)
    with pytest.raises(InvalidInput, match=r"word_vectors='cc.vec'; pass 'rows', or finite numbers, a row a word"):
        XMLCNN(word_vectors="cc.vec").fit(X, Y)


@pytest.mark.parametrize("groups", [500, 2], ids=["flat", "grouped"])
def test_a_run_continues_from_its_checkpoint_to_the_same_bits(groups, tmp_path):
    pytest.importorskip("torch")
    X, Y = rows_and_labels()

    def model(epochs, checkpoint=None):
        return AttentionXML(
            4, word_dim=4, flat_labels=groups, epochs=epochs, patience=9, checkpoint=checkpoint, random_state=0
        )

    whole = model(4).fit(X, Y)
    path = str(tmp_path / "c")
    model(4, path).fit(X, Y)
    again = model(4, path).fit(X, Y)
    np.testing.assert_array_equal(again.predict_topk(X).scores, whole.predict_topk(X).scores)
    assert len(whole.history_) == 4 and {"epoch", "loss", "p@5"} <= set(whole.history_[0])
    with pytest.raises(InvalidInput, match="is of a run with other parameters or other data"):
        model(5, path).fit(X, Y)


def test_groups_that_lie_are_refused(tmp_path):
    pytest.importorskip("torch")
    X, Y = rows_and_labels()
    model = AttentionXML(4, word_dim=4, flat_labels=2, epochs=1, random_state=0).fit(X, Y)
    assert model.groups_.size == 4
    for groups, message in (
        (np.array([0, 1, 9, 0], np.int32), "groups_ holds 9"),
        (np.array([0, 3, 1, 0], np.int32), "groups_ has an empty group"),
        (np.array([0, 1], np.int32), "groups_ has 2 labels, not 4"),
    ):
        model.groups_ = groups
        model.save(tmp_path / "m")
        with pytest.raises(ModelFileError, match=message):
            tailwise.load(tmp_path / "m")


def test_padding_changes_no_answer(network):
    X, Y = rows_and_labels()
    longer = sparse.csr_array(sparse.hstack([X, sparse.csr_array((X.shape[0], 90), dtype=np.float32)]))
    for model in (network, AttentionXML(4, word_dim=4, epochs=2, random_state=0)):
        short, long = (clone(model).fit(rows, Y).predict_topk(rows) for rows in (X, longer))
        np.testing.assert_array_equal(short.scores, long.scores)


@pytest.mark.parametrize("kind", [XMLCNN, AttentionXML])
def test_rows_are_seen_alike_whatever_padding_their_batch_needs(kind):
    torch = pytest.importorskip("torch")
    X, Y = rows_and_labels()
    fitted = kind(word_dim=4, epochs=1, batch_size=18, early_stopping=False, random_state=0).fit(X, Y)
    network = fitted.build_network(Y.shape[1])
    tokens = torch.from_numpy(Tokens.of(X, fitted.tokens_).padded(np.arange(6)))
    longer = torch.nn.functional.pad(tokens, (0, 96))
    with torch.no_grad():
        alone, padded = (network.probabilities(fitted.network_, batch) for batch in (tokens, longer))
    np.testing.assert_allclose(padded, alone, rtol=1e-5)


def test_words_are_pooled_by_parts_of_their_own_row():
    torch = pytest.importorskip("torch")
    from tailwise.sequence.convolutions import _parts

    tokens = torch.tensor([[5, 5, 5, 5, 5, 5, 0, 0], [5, 0, 0, 0, 0, 0, 0, 0], [0] * 8])
    places = [[part[row, 0].nonzero().flatten().tolist() for part in _parts(tokens, 4)] for row in range(3)]
    assert places == [[[0, 1], [2], [3, 4], [5]], [[0], [], [], []], [[], [], [], []]]


@pytest.mark.parametrize("kind", [XMLCNN, AttentionXML])
def test_training_rows_are_learnt_by_heart(kind):
    """A network that does not learn what is certain is wired wrongly."""
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.integers(1, 99, (32, 40)) * (np.arange(40) < rng.integers(3, 40, (32, 1))))
    Y = sparse.csr_array(np.eye(6, dtype=int)[rng.integers(6, size=32)])
    width = {"hidden": 32} if kind is AttentionXML else {"n_filters": 16, "bottleneck": 64}
    params = {**width, "word_dim": 16, "dropout": 0, "batch_size": 8, "epochs": 30, "learning_rate": 0.01}
    model = kind(**params, average_from=None, early_stopping=False, random_state=0).fit(X, Y)
    assert tailwise.evaluate(Y, model.predict_topk(X, 1), ["p@1"], confidence=None)["p@1"].value > 95


def test_weights_are_averaged_over_epochs():
    pytest.importorskip("torch")
    X, Y = rows_and_labels()

    def weights(epochs, average_from=None):
        params = {"word_dim": 4, "epochs": epochs, "early_stopping": False, "random_state": 0}
        return AttentionXML(4, average_from=average_from, **params).fit(X, Y).network_

    epochs = [weights(2), weights(3), weights(4)]
    averaged = weights(4, average_from=2)
    for name, mean in averaged.items():
        np.testing.assert_allclose(mean, sum(part[name] for part in epochs) / 3, rtol=1e-4, atol=1e-6)
    assert all((weights(1, average_from=2)[name] == weights(1)[name]).all() for name in averaged)


def test_an_average_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    from tailwise.early_stopping import EarlyStopping

    X, Y = rows_and_labels()

    def model(checkpoint=None):
        params = {"word_dim": 4, "epochs": 4, "early_stopping": False, "checkpoint": checkpoint, "random_state": 0}
        return AttentionXML(4, average_from=2, **params)

    whole, judge = model().fit(X, Y), EarlyStopping.judge

    def stop_after_three(self, epoch, parameters):
        if epoch == 4:
            raise KeyboardInterrupt
        return judge(self, epoch, parameters)

    with monkeypatch.context() as patch:
        patch.setattr(EarlyStopping, "judge", stop_after_three)
        with pytest.raises(KeyboardInterrupt):
            model(str(tmp_path / "c")).fit(X, Y)
    resumed = model(str(tmp_path / "c")).fit(X, Y)
    assert all((resumed.network_[name] == value).all() for name, value in whole.network_.items())


@pytest.mark.parametrize("kind", [XMLCNN, AttentionXML])
def test_new_rows_are_told_apart_by_words_among_others(kind):
    """Rows of which a few words speak for the label; the rest are any, so that what is pooled is alike for all rows."""

    def rows(n, seed):
        rng = np.random.default_rng(seed)
        labels = rng.integers(8, size=n)
        words = rng.integers(41, 400, size=(n, 32))
        for row, label in enumerate(labels):
            words[row, rng.choice(32, 4, replace=False)] = 1 + 5 * label + rng.integers(5, size=4)
        return words.astype(np.float32), labels

    small = {"hidden": 16} if kind is AttentionXML else {"n_filters": 24, "bottleneck": 64, "widths": (1, 2)}
    model = kind(
        **small, word_dim=16, epochs=12, batch_size=16, learning_rate=0.02, early_stopping=False, random_state=0
    )
    X, labels = rows(400, 0)
    new, truth = rows(100, 1)
    assert (model.fit(X, np.eye(8)[labels]).predict_topk(new, 1).labels.ravel() == truth).mean() > 0.8


def test_a_wide_bottleneck_stays_alive():
    """Maxima over long rows are alike; where they led the first steps, all rows came to the same labels."""
    rng = np.random.default_rng(0)
    labels, words = rng.integers(40, size=320), rng.integers(201, 2000, size=(320, 64))
    for row, label in enumerate(labels):
        words[row, rng.choice(64, 4, replace=False)] = 1 + 5 * label + rng.integers(5, size=4)
    X = words.astype(np.float32)
    model = XMLCNN(epochs=8, batch_size=16, early_stopping=False, random_state=0).fit(X, np.eye(40)[labels])
    assert (model.predict_topk(X, 1).labels.ravel() == labels).mean() > 0.9


def test_a_network_of_before_is_refused(tmp_path):
    model = XMLCNN((1,), n_filters=2, word_dim=4, bottleneck=4, epochs=1, early_stopping=False, random_state=0)
    model.fit(sparse.csr_array([[1.0, 2.0], [3.0, 1.0]]), sparse.csr_array([[1, 0], [0, 1]]))
    del model.pooling_
    with pytest.raises(ModelFileError, match="older network; train the model again"):
        model.save(tmp_path / "m")
        tailwise.load(tmp_path / "m")


def test_token_vectors_are_those_of_a_dense_decomposition():
    rng = np.random.default_rng(3)
    X = sparse.csr_array(rng.integers(0, 30, (60, 12)).astype(np.float32))
    known = np.unique(X.data)
    counts = np.array([[(row == token).sum() for token in known] for row in X.toarray()], float)
    assert (token_counts(X, known).toarray() == counts).all()
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * (1 + np.log(60 / (counts > 0).sum(0)))
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    _, strength, directions = np.linalg.svd(weights, full_matrices=False)
    expected = directions[:5].T * np.sqrt(strength[:5])
    expected *= np.sqrt(5) / np.linalg.norm(expected, axis=1, keepdims=True)
    found = token_vectors(X, known, 5)
    # Singular vectors have no sign of their own: what counts is how alike tokens are.
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=2e-3)


def test_word_vectors_from_more_texts_number_words_as_sequences_do():
    texts = ["ships at sea"] * 3 + ["stars at night"] * 3
    sequences = Sequences(4, min_df=1).fit(["the sea at night"])
    vectors = learn_word_vectors(sequences, texts, 2)
    assert sequences.words == ["at", "night", "sea", "the"]
    assert not vectors[sequences.words.index("the")].any()
    night, sea = vectors[1], vectors[2]
    assert night @ sea < 0.99 * 2
