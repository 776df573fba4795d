"""Fields: texts know them, readers keep them, and rows weigh them."""

import json

import numpy as np
import pytest
from scipy import sparse

import tailwise
from tailwise import Centroid, Tagger, TextFeatures, Texts, load_dataset
from tailwise.data import read_records, read_texts
from tailwise.data.texts import check_texts, in_fields, take_texts
from tailwise.errors import InvalidInput
from tailwise.rows import unit_rows

TITLES = ["Law of the sea", "Fish", "Tax law", "Ships", ""]
ABSTRACTS = ["On ships and ports.\nAnd fish.", "", "Income tax and the law", "Ships at sea", "law of fish"]
TEXTS = Texts({"title": TITLES, "abstract": ABSTRACTS})
JOINED = ["Law of the sea\nOn ships and ports.\nAnd fish.", "Fish", "Tax law\nIncome tax and the law"]


def test_texts_stand_for_a_list_of_joined_texts():
    assert list(TEXTS)[:3] == [TEXTS[i] for i in range(3)] == JOINED
    assert len(TEXTS) == 5 and TEXTS[-1] == "law of fish" and list(TEXTS) == TEXTS
    assert TEXTS[1:3].fields == {"title": TITLES[1:3], "abstract": ABSTRACTS[1:3]}
    assert TEXTS.take(np.array([4, 0])) == take_texts(TEXTS, np.array([4, 0]))
    assert take_texts(TEXTS, np.array([4, 0])).fields["title"] == ["", "Law of the sea"]
    assert check_texts(TEXTS) is TEXTS and take_texts(JOINED, np.array([1])) == ["Fish"]
    assert repr(TEXTS) == "Texts(5 texts with title, abstract)"
    with pytest.raises(InvalidInput, match=r"fields have different lengths: {'a': 1, 'b': 2}"):
        Texts({"a": ["x"], "b": ["y", "z"]})
    with pytest.raises(InvalidInput, match=r"fields\['a'\]: texts has 3 at row 0"):
        Texts({"a": [3]})
    with pytest.raises(InvalidInput, match="has no field"):
        Texts({})


@pytest.mark.parametrize("columns", [None, ["title", "abstract"]])
def test_readers_keep_fields_and_joined_texts_stay_what_they_were(columns, tmp_path):
    path = tmp_path / "records.jsonl"
    rows = [{"title": t or None, "abstract": a, "labels": ["x"]} for t, a in zip(TITLES, ABSTRACTS, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = read_records(path, "jsonl", text_columns=columns).texts
    assert found == TEXTS and list(found)[:3] == JOINED
    assert list(read_texts(path, "jsonl", text_columns=["abstract"]).fields) == ["abstract"]
    data = load_dataset(path).validation_split(0.4)
    assert set(data.texts_test.fields) == {"title", "abstract"} and data.n_test == 2
    rows = tailwise.data.Rows.of(data).take(np.array([0]))
    assert rows.texts.fields["title"] == data.texts_train.fields["title"][:1]
    with pytest.raises(InvalidInput, match=r"text_columns=\['title', 'title'\] names a column twice"):
        read_texts(path, "jsonl", text_columns=["title", "title"])


def test_plain_strings_fall_apart_by_their_first_line():
    names = ["title", "abstract", "notes"]
    found = in_fields(["Law\nOf ships\nand ports", "Fish"], names)
    assert found == {"title": ["Law", "Fish"], "abstract": ["Of ships\nand ports", ""], "notes": ["", ""]}
    assert in_fields(TEXTS, ["title", "abstract"])["abstract"] == ABSTRACTS
    assert in_fields(Texts({"abstract": ["x"]}), ["title", "abstract"]) == {"title": [""], "abstract": ["x"]}
    # One unknown column is no field of another name but texts as they are.
    assert in_fields(Texts({"text": ["a\nb"]}), ["title", "abstract"]) == {"title": ["a"], "abstract": ["b"]}
    with pytest.raises(InvalidInput, match=r"fields heading, body, but these are wanted: title, abstract; read"):
        in_fields(Texts({"heading": ["a"], "body": ["b"]}), ["title", "abstract"])


def _words(texts, like):
    """Rows of a field alone, with the terms and idf of a maker that was fitted on joined texts."""
    plain = TextFeatures(min_df=1).fit(list(TEXTS))
    assert plain.vocabulary_ == like.vocabulary_
    return plain.transform(texts)


def test_weighted_fields_add_up_rows_of_unit_length():
    made = TextFeatures(min_df=1, fields={"title": 1, "abstract": 3}).fit(TEXTS)
    expected = unit_rows(sparse.csr_array(_words(TITLES, made) + 3 * _words(ABSTRACTS, made)))
    np.testing.assert_allclose(made.transform(TEXTS).toarray(), expected.toarray(), atol=1e-6)
    assert made.groups_ == {"words": (0, len(made.vocabulary_))} and made.fields_ == {"title": 1, "abstract": 3}
    alone = TextFeatures(min_df=1, fields={"title": 2}).fit(TEXTS)
    np.testing.assert_array_equal(
        alone.transform(TEXTS).toarray(), TextFeatures(min_df=1).fit_transform(TITLES).toarray()
    )
    assert list(alone.groups_) == ["title words"] and "title: law" in alone.get_feature_names_out()


def test_balanced_fields_weigh_by_their_lengths():
    made = TextFeatures(min_df=1, fields="balanced").fit(TEXTS)
    lengths = [np.mean([len(text) for text in texts if text]) for texts in (TITLES, ABSTRACTS)]
    assert made.fields_ == pytest.approx({"title": 1, "abstract": (lengths[1] / lengths[0]) ** 0.25})
    given = TextFeatures(min_df=1, fields=made.fields_).fit(TEXTS)
    np.testing.assert_array_equal(made.transform(TEXTS).toarray(), given.transform(TEXTS).toarray())
    for single in (list(TEXTS), Texts({"text": list(TEXTS)})):
        plain = TextFeatures(min_df=1, fields="balanced").fit_transform(single)
        np.testing.assert_array_equal(plain.toarray(), TextFeatures(min_df=1).fit_transform(list(TEXTS)).toarray())


def test_separate_fields_have_columns_of_their_own():
    made = TextFeatures(min_df=1, char_ngrams=(3, 3), fields="separate").fit(TEXTS)
    assert list(made.groups_) == ["title words", "abstract words", "title pieces", "abstract pieces"]
    X = made.transform(TEXTS)
    parts = [
        TextFeatures(min_df=1).fit_transform(TITLES),
        TextFeatures(min_df=1).fit_transform(ABSTRACTS),
    ]
    words = X[:, : made.groups_["abstract words"][1]]
    np.testing.assert_allclose(
        unit_rows(sparse.csr_array(words)).toarray(),
        unit_rows(sparse.csr_array(sparse.hstack(parts))).toarray(),
        atol=1e-6,
    )
    names = made.get_feature_names_out()
    first, last = made.groups_["abstract words"]
    assert names.size == X.shape[1] == made.n_columns_ == len(set(names))
    assert all(name.startswith("abstract: ") for name in names[first:last]) and "title: |law|" in names


@pytest.mark.parametrize("fields", ["balanced", "joined", "separate", {"title": 1, "abstract": 2}, {"abstract": 1}])
def test_saved_and_loaded_a_tagger_reads_fields_alike(fields, tmp_path):
    labels = [["law", "sea"], ["fish"], ["law", "tax"], ["sea"], ["law", "fish"]]
    tagger = Tagger(Centroid(), features=TextFeatures(min_df=1, fields=fields)).fit(TEXTS, labels)
    tagger.save(tmp_path / "t")
    again = tailwise.load(tmp_path / "t")
    assert again.suggest(TEXTS, 3) == tagger.suggest(TEXTS, 3)
    if fields != {"abstract": 1}:
        # Joined by the reader and handed over as strings, texts with a title are the same rows.
        np.testing.assert_array_equal(again.rows(TEXTS[:4]).toarray(), again.rows(list(TEXTS[:4])).toarray())
    assert tagger.explain(TEXTS[:1], "law").features()


def test_a_table_has_fields_by_its_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"title": [*TITLES[:4], None], "abstract": ABSTRACTS})
    assert check_texts(table) == TEXTS
    made = TextFeatures(min_df=1, fields="separate").fit(table)
    assert list(made.groups_) == ["title words", "abstract words"]


def test_wrong_fields_are_refused():
    with pytest.raises(
        InvalidInput, match=r"fields={'titel': 1} has 'titel', but the texts have the fields title, abs"
    ):
        TextFeatures(fields={"titel": 1}).fit(TEXTS)
    for fields, message in (
        ("seperate", "fields='seperate' is not one of .* did you mean 'separate'"),
        ({}, "fields={} names no field"),
        ({3: 1}, "fields has the field 3"),
        ({"title": 0}, r"fields\['title'\]=0 is outside \(0, inf\)"),
    ):
        with pytest.raises(InvalidInput, match=message):
            TextFeatures(fields=fields).fit(TEXTS)
