"""Groups of columns: several makers of rows side by side, and models that read some of them."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import tailwise
from tailwise import (
    Centroid,
    Columns,
    DiSMEC,
    Ensemble,
    NearestRows,
    Sequences,
    Tagger,
    TextFeatures,
    TextParts,
)
from tailwise.data import Texts
from tailwise.errors import InvalidInput, ModelFileError, NotFitted
from tailwise.text import KnownLabels, TextRows
from tailwise.text.rows import check_groups

TEXTS = Texts(
    {
        "title": ["Law of the sea", "Fish", "Tax law", "Ships", "Income tax", "Cod"] * 3,
        "abstract": ["on ships and ports", "at sea", "income and the law", "at sea", "of the sea", "fish law"] * 3,
    }
)
LABELS = [["law", "sea"], ["fish"], ["law", "tax"], ["sea"], ["tax"], ["fish"]] * 3
WORDS = TextFeatures(min_df=1)
PARTS = TextParts([WORDS, TextFeatures(min_df=1, fields={"title": 1}), TextFeatures(2, min_df=1)], weights=[1, 2, 0.5])


def test_parts_stand_side_by_side_with_their_weights():
    made = TextParts(PARTS.parts, weights=PARTS.weights).fit(TEXTS)
    assert not hasattr(PARTS.parts[0], "vocabulary_"), "the parts passed stay unfitted"
    rows = [clone(part).fit_transform(TEXTS) for part in PARTS.parts]
    expected = sparse.hstack([rows[0], 2 * rows[1], 0.5 * rows[2]]).toarray()
    np.testing.assert_array_equal(made.transform(TEXTS).toarray(), expected)
    assert list(made.groups_) == ["words", "title words", "words 2"]
    first, last = made.groups_["title words"]
    assert made.get_feature_names_out()[first:last].tolist() == names_of_titles()
    assert made.n_columns_ == expected.shape[1] == made.get_feature_names_out().size
    check_groups(made.groups_, made.n_columns_)


def names_of_titles():
    return [f"title: {word}" for word in sorted({w for t in TEXTS.fields["title"] for w in t.lower().split()})]


def test_parts_come_back_from_their_folder(tmp_path):
    made = TextParts(PARTS.parts, weights=PARTS.weights).fit(TEXTS)
    made.save(tmp_path / "p")
    again = tailwise.load(tmp_path / "p")
    np.testing.assert_array_equal(again.transform(TEXTS).toarray(), made.transform(TEXTS).toarray())
    made.parts_ = made.parts_[:1]
    made.save(tmp_path / "p")
    with pytest.raises(ModelFileError, match="parts_ has 1 entries, not 3"):
        tailwise.load(tmp_path / "p")


def test_wrong_parts_are_refused():
    for made, message in (
        (TextParts([]), r"parts=\[\] is empty"),
        (TextParts([Centroid()]), r"parts\[0\]=Centroid\(\) is not a tailwise TextFeatures"),
        (TextParts([WORDS], weights=[1, 2]), "weights has 2 entries, but there are 1 parts"),
        (TextParts([WORDS], weights=[0]), r"weights\[0\]=0 is outside"),
        (TextParts([TextFeatures(0)]), "word_ngrams=0"),
    ):
        with pytest.raises(InvalidInput, match=message):
            made.fit(TEXTS)
    with pytest.raises(NotFitted, match="this TextParts is not fitted yet"):
        TextParts([WORDS]).transform(TEXTS)


class Seen(TextRows):
    """Counts what it was told of the labels."""

    def fit(self, texts, y=None, *, labels=None):
        self.labels_ = labels
        self.groups_ = {"names": (0, len(labels.ids))}
        return self

    def fit_transform(self, texts, y=None, *, labels=None):
        return sparse.csr_array(self.fit(texts, labels=labels).labels_.Y, dtype=np.float32)

    def transform(self, texts):
        return sparse.csr_array(
            [[float(name in text) for name in self.labels_.names] for text in texts], dtype=np.float32
        )

    def get_feature_names_out(self, input_features=None):
        return np.array([f"name: {name}" for name in self.labels_.names], dtype=object)


def test_a_maker_is_told_of_the_labels_and_may_see_training_texts_otherwise():
    model = Ensemble([Columns(Centroid(), group="words"), Columns(Centroid(), group="names")])
    tagger = Tagger(model, features=TextParts([WORDS, Seen()]))
    tagger.fit(TEXTS, LABELS, names={"law": "Law"}, vocab="kept as it is")
    told = tagger.features_.parts_[1].labels_
    assert isinstance(told, KnownLabels) and told.ids == ["fish", "law", "sea", "tax"] and told.names[1] == "Law"
    assert told.Y.shape == (18, 4) and told.vocabulary == "kept as it is"
    first, last = tagger.features_.groups_["names"]
    assert tagger.model_.members_[1].columns == [(first, last)]
    # Its training rows were the labels themselves: in the first member's words there is nothing of them.
    assert (tagger.model_.members_[1].label_weights()[:, :first].nnz, last - first) == (0, 4)


@pytest.mark.parametrize("model", [Centroid(), DiSMEC(random_state=0)])
def test_a_model_reads_its_group_and_nothing_else(model, tmp_path):
    tagger = Tagger(Columns(model, group="title words"), features=PARTS).fit(TEXTS, LABELS)
    alone = Tagger(model, features=TextParts([PARTS.parts[1]], weights=[2])).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(tagger.predict_topk(TEXTS).labels, alone.predict_topk(TEXTS).labels)
    np.testing.assert_array_equal(tagger.predict_topk(TEXTS).scores, alone.predict_topk(TEXTS).scores)
    mine, other = (t.explain("Law of fish", "law") for t in (tagger, alone))
    assert {(part.name, part.value) for part in mine.features()} == {
        (part.name, part.value) for part in other.features()
    }
    assert {part.name for part in mine.features()} <= {"title: law", "title: of", "title: fish"}
    first, last = tagger.features_.groups_["title words"]
    weights = tagger.model_.label_weights()
    assert weights.shape[1] == tagger.features_.n_columns_ and weights.indices.min() >= first
    assert weights.indices.max() < last
    tagger.save(tmp_path / "t")
    assert tailwise.load(tmp_path / "t").suggest(TEXTS) == tagger.suggest(TEXTS)


def test_members_read_different_groups():
    parts = TextParts([WORDS, TextFeatures(char_ngrams=(3, 3), min_df=1), Sequences(4, min_df=1)])
    both = Ensemble([Columns(Centroid(), group=["words", "pieces"]), Columns(NearestRows(k=3), group="words 2")])
    tagger = Tagger(both, features=parts).fit(TEXTS, LABELS)
    groups = tagger.features_.groups_
    assert list(groups) == ["words", "words 2", "pieces", "positions"]
    assert tagger.model_.members_[0].columns == [groups["words"], groups["pieces"]]
    assert tagger.suggest(["Tax law"], 1)[0][0].name in ("law", "tax")
    assert both.members[0].columns is None, "the model passed stays as it was"


def test_groups_within_groups_are_found_among_the_columns_that_are_seen():
    inner = Columns(Centroid(), group="title words")
    tagger = Tagger(Columns(inner, group=["title words", "words 2"]), features=PARTS).fit(TEXTS, LABELS)
    plain = Tagger(inner, features=PARTS).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(tagger.predict_topk(TEXTS).scores, plain.predict_topk(TEXTS).scores)
    assert tagger.explain("Law", "law").features()[0].name == "title: law"
    with pytest.raises(InvalidInput, match="there is no group 'words' of columns; there are title words"):
        Tagger(Columns(Columns(Centroid(), group="words"), group="title words"), features=PARTS).fit(TEXTS, LABELS)


def test_wrong_groups_are_refused_with_those_there_are():
    with pytest.raises(InvalidInput, match="no group 'vectors' of columns; there are words, title words, words 2"):
        Tagger(Columns(Centroid(), group="vectors"), features=PARTS).fit(TEXTS, LABELS)
    X, Y = np.eye(3), np.eye(3)
    with pytest.raises(InvalidInput, match="group='words' says nothing about these rows"):
        Columns(Centroid(), group="words").fit(X, Y)
    for columns, message in (
        ([(0, 4)], r"columns=\[\(0, 4\)\] end at 4, but X has 3 features"),
        ([(1, 1)], r"columns\[0\]\[1\]=1 is outside \[2, inf\)"),
        ([3], r"columns\[0\]=3 must be a pair"),
        ([], r"columns=\[\] must be a list of ranges"),
    ):
        with pytest.raises(InvalidInput, match=message):
            Columns(Centroid(), columns=columns).fit(X, Y)
    with pytest.raises(InvalidInput, match="group=3 must be the name"):
        Columns(Centroid(), group=3).fit(X, Y)
