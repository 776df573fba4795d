"""TextFeatures equals scikit-learn's vectoriser and survives saving."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

import tailwise
from tailwise import TextFeatures
from tailwise.errors import InvalidInput, NotFitted
from tailwise.text import cutting

_WORDS = st.sampled_from(
    [
        "law",
        "Law",
        "sea",
        "SEA",
        "of",
        "a",
        "é",
        "naïve",
        "Straße",
        "日本語",
        "x1",
        "foo_bar",
        "İstanbul",
        "ΣΊΣΥΦΟΣ",
        "ÀÇǄ",
        "\ud800",
        "—",
        ".",
        "𝔘nicode",
        "\n",
    ]
)
_TEXTS = st.lists(st.lists(_WORDS, max_size=12).map(" ".join), min_size=1, max_size=8)


def _same_rows(ours, theirs):
    assert ours.shape == theirs.shape and ours.dtype == np.float32 and ours.has_canonical_format
    assert np.allclose(ours.toarray(), theirs.toarray(), atol=1e-6)


@pytest.mark.parametrize("cut", [cutting.into_words, cutting.into_pieces])
@given(texts=_TEXTS, longest=st.integers(1, 3))
def test_folding_while_cutting_is_folding_before(cut, texts, longest):
    arguments = (longest, ["sea"]) if cut is cutting.into_words else (1, longest)
    ours, plain = cut(*arguments, cutting.Folding()), cut(*arguments, cutting.Folding(lowercase=False))
    (joined, found), (folded, expected) = ours(texts), plain([text.lower() for text in texts])
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(own, other)
    spans = list(zip(found.first.tolist(), found.length.tolist(), strict=True))
    spelled = ours.spell([joined[at : at + length] for at, length in spans])
    assert spelled == plain.spell([folded[at : at + length] for at, length in spans])


def test_every_letter_but_two_has_one_lower_case():
    table = cutting._letters(True)
    letters = [chr(code) for code in range(0x110000) if chr(code) not in "İΣ"]
    expected = [ord(low) if re.match(r"\w", low) else 0 for low in map(str.lower, letters)]
    np.testing.assert_array_equal(table[[ord(letter) for letter in letters]], expected)
    assert "Σ".lower() == "σ" and len("İ".lower()) == 2


@settings(max_examples=25, deadline=None)
@given(
    _TEXTS, st.integers(1, 3), st.sampled_from([(1, 1.0), (2, 1.0), (1, 0.5), (0.2, 0.9)]), st.booleans(), st.booleans()
)
def test_words_equal_scikit_learn(texts, runs, limits, lowercase, sublinear):
    options = {"min_df": limits[0], "max_df": limits[1], "lowercase": lowercase, "sublinear_tf": sublinear}
    theirs = TfidfVectorizer(ngram_range=(1, runs), **options)
    ours = TextFeatures(runs, **options)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:
        with pytest.raises(InvalidInput, match="no term is left"):
            ours.fit(texts)
        return
    _same_rows(ours.fit_transform(texts), expected)
    assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    _same_rows(ours.transform([*texts[::-1], "unknown", ""]), theirs.transform([*texts[::-1], "unknown", ""]))


@settings(max_examples=25, deadline=None)
@given(_TEXTS, st.sampled_from([(1, 2), (3, 3), (2, 5)]))
def test_pieces_equal_scikit_learn(texts, sizes):
    plain = [re.sub(r"\W", " ", text.lower()) for text in texts]
    if not any(re.search(r"\w\w", text) for text in plain):
        return
    theirs = TfidfVectorizer(analyzer="char_wb", ngram_range=sizes, sublinear_tf=True)
    words = TfidfVectorizer(sublinear_tf=True)
    parts = np.hstack([words.fit_transform(plain).toarray(), theirs.fit_transform(plain).toarray()])
    lengths = np.sqrt((parts**2).sum(axis=1, keepdims=True))
    ours = TextFeatures(char_ngrams=sizes, min_df=1)
    found = ours.fit_transform(texts).toarray()
    assert np.allclose(found, parts / np.where(lengths == 0, 1, lengths), atol=1e-6)
    expected = [*words.get_feature_names_out(), *(f"|{piece}|" for piece in theirs.get_feature_names_out())]
    assert list(ours.get_feature_names_out()) == expected


def test_stop_words_accents_and_most_frequent():
    texts = ["The law of the sea", "the café of law", "sea, law"]
    stop = ["the", "of"]
    for runs in (1, 2):
        theirs = TfidfVectorizer(stop_words=stop, ngram_range=(1, runs))
        ours = TextFeatures(runs, stop_words=stop, min_df=1, sublinear_tf=False)
        _same_rows(ours.fit_transform(texts), theirs.fit_transform(texts))
        assert list(ours.get_feature_names_out()) == list(theirs.get_feature_names_out())
    ours = TextFeatures(min_df=1, strip_accents=True).fit(texts)
    assert "cafe" in ours.vocabulary_ and "café" not in ours.vocabulary_
    assert TextFeatures(min_df=1, max_features=2).fit(texts).vocabulary_ == ["law", "the"]


def test_blocks_and_threads_do_not_change_the_result(monkeypatch):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in rng.zipf(1.5, 20) % 500) for _ in range(200)]
    whole = TextFeatures(2, char_ngrams=(3, 4), n_jobs=1).fit(texts)
    rows = whole.transform(texts)
    monkeypatch.setattr(cutting, "CHARACTERS_A_BLOCK", 500)
    for n_jobs in (1, 2):
        other = TextFeatures(2, char_ngrams=(3, 4), n_jobs=n_jobs).fit(texts)
        assert other.vocabulary_ == whole.vocabulary_ and (other.idf_ == whole.idf_).all()
        found = other.transform(texts)
        assert (found.indices == rows.indices).all() and (found.data == rows.data).all()


def test_saved_and_loaded(tmp_path):
    features = TextFeatures(2, char_ngrams=(2, 3), min_df=1, stop_words=["the"]).fit(["The law of the sea", "日本 law"])
    features.save(tmp_path / "features")
    back = tailwise.load(tmp_path / "features")
    texts = ["sea law of 日本", "", "the"]
    a, b = features.transform(texts), back.transform(texts)
    assert (a.indices == b.indices).all() and (a.data == b.data).all()
    assert back.vocabulary_ == features.vocabulary_ and back.get_params() == features.get_params()
    assert not any(path.suffix in (".pkl", ".pickle") for path in (tmp_path / "features").iterdir())


def test_contract_and_refusals():
    features = TextFeatures(min_df=1)
    assert clone(features).get_params() == features.get_params()
    with pytest.raises(NotFitted, match="not fitted yet"):
        features.transform(["a"])
    with pytest.raises(NotFitted, match="not fitted yet"):
        features.save("nowhere")
    with pytest.raises(InvalidInput, match="texts is a single string; pass a list"):
        features.fit("one text")
    with pytest.raises(InvalidInput, match=r"texts has None at row 1; every text must be a string"):
        features.fit(["a", None])
    with pytest.raises(InvalidInput, match="no term is left"):
        TextFeatures(min_df=5).fit(["law", "sea"])
    for parameters in (
        {"word_ngrams": 0},
        {"char_ngrams": 3},
        {"char_ngrams": (3, 2)},
        {"min_df": 1.5},
        {"stop_words": "en"},
    ):
        with pytest.raises(InvalidInput, match=next(iter(parameters))):
            TextFeatures(**parameters).fit(["law of the sea"])
    empty = features.fit(["law sea"]).transform([])
    assert empty.shape == (0, 2)
