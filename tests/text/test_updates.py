"""Taggers and features that learn from more texts."""

import numpy as np
import pytest

import tailwise
from tailwise import Centroid, Columns, DiSMEC, FastXML, Tagger, TextFeatures, TextParts, Texts
from tailwise.errors import InvalidInput, Unsupported

TEXTS = ["tax law of land", "sea fish and fish", "fish law of the sea", "tax on fish"]
LABELS = [["law"], ["fish"], ["law", "fish"], ["tax", "fish"]]
MORE = ["wind power", "tax on fish", "wind and sea"]
MORE_LABELS = [["energy"], ["tax"], ["energy", "fish"]]


def make(model=None, **params):
    return Tagger(model or DiSMEC(random_state=0), features=TextFeatures(min_df=1), **params)


def test_new_words_labels_and_corrected_records(tmp_path):
    tagger = make(keep_training_data=True).fit(TEXTS, LABELS)
    before = tagger.features_.get_feature_names_out().tolist()
    tagger.save(tmp_path / "old")
    tagger.update(MORE, MORE_LABELS, names={"energy": "Energy"})
    assert tagger.label_ids_ == ["fish", "law", "tax", "energy"] and tagger.label_names_[3] == "Energy"
    assert tagger.features_.get_feature_names_out().tolist()[: len(before)] == before
    assert {"wind", "power"} <= set(tagger.features_.get_feature_names_out().tolist())
    assert tagger.n_samples_ == 6 and tagger.row_digests_.size == 6, "one text was known"
    assert tagger.label_counts_.tolist() == [3, 2, 1, 2], "fish was taken from the text that was known"
    assert tagger.suggest(["wind power"], k=1)[0][0].id == "energy"

    again = tailwise.load(tmp_path / "old").update(MORE, MORE_LABELS, names={"energy": "Energy"})
    assert again.suggest(MORE) == tagger.suggest(MORE)
    tagger.save(tmp_path / "new")
    assert tailwise.load(tmp_path / "new").suggest(MORE) == tagger.suggest(MORE)


def test_what_was_not_kept_can_be_told_again():
    kept = make(keep_training_data=True).fit(TEXTS, LABELS).update(MORE, MORE_LABELS)
    told = make().fit(TEXTS, LABELS)
    with pytest.raises(Unsupported, match=r"keeps no training rows.*keep_training_data=True, or pass known="):
        told.update(MORE, MORE_LABELS)
    told.update(MORE, MORE_LABELS, known=(TEXTS, LABELS))
    assert told.suggest(MORE) == kept.suggest(MORE) and told.training_ is None
    with pytest.raises(InvalidInput, match="known has the label 'whale', which was never learnt"):
        make().fit(TEXTS, LABELS).update(MORE, MORE_LABELS, known=(TEXTS, [["whale"]] * 4))


def test_a_model_that_cannot_says_so_and_stays():
    tagger = make(FastXML(n_trees=1, random_state=0), keep_training_data=True).fit(TEXTS, LABELS)
    with pytest.raises(Unsupported, match="FastXML cannot learn from new rows alone; fit it again"):
        tagger.update(MORE, MORE_LABELS)
    assert tagger.n_labels_ == 3


def test_wrong_input_leaves_the_tagger_as_it_was():
    tagger = make(Centroid(), keep_training_data=True).fit(TEXTS, LABELS)
    before = tagger.suggest(MORE)
    with pytest.raises(InvalidInput, match="labels has 2 rows but there are 3 texts"):
        tagger.update(MORE, MORE_LABELS[:2])
    assert tagger.suggest(MORE) == before and tagger.features_.n_columns_ == tagger.model_.n_features_in_


def test_forged_training_data_are_refused(tmp_path):
    tagger = make(Centroid(), keep_training_data=True).fit(TEXTS, LABELS)
    tagger.training_ = tagger.training_._replace(Y=tagger.training_.Y[:2])
    tagger.save(tmp_path / "t")
    with pytest.raises(tailwise.errors.ModelFileError, match="Y of training_"):
        tailwise.load(tmp_path / "t")


def test_rows_of_x():
    X, Y = np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32)
    from scipy import sparse

    tagger = Tagger(Centroid(), keep_training_data=True).fit(sparse.csr_array(X), sparse.csr_array(Y))
    tagger.update(sparse.csr_array(X[:1]), sparse.csr_array(Y[1:2]))
    assert tagger.label_counts_.tolist() == [0, 2, 1, 1]


def test_features_keep_old_columns_and_their_idf():
    features = TextFeatures(min_df=2).fit(["sea fish", "sea law", "fish law"])
    old = features.transform(["sea fish law"])
    idf = features.idf_.copy()
    features.update(["wind sea", "wind law", "rain"], n_known=3)
    assert features.vocabulary_ == ["fish", "law", "sea", "wind"], "rain came once, and min_df is 2"
    np.testing.assert_array_equal(features.idf_[:3], idf)
    assert features.idf_[3] == pytest.approx(np.log(7 / 3) + 1)
    np.testing.assert_array_equal(features.transform(["sea fish law"])[:, :3].toarray(), old.toarray())
    pieces = TextFeatures(min_df=1, char_ngrams=(3, 3)).fit(["sea fish"])
    n = pieces.n_columns_
    assert pieces.update(["wind sea"], 1).n_columns_ == n + 1 and pieces.get_feature_names_out()[n] == "wind"
    assert pieces.groups_ == {"words": (0, 2), "pieces": (2, n), "words +1": (n, n + 1)}
    full = TextFeatures(min_df=1, max_features=2).fit(["sea fish"])
    assert full.update(["wind"], 1).vocabulary_ == ["fish", "sea"]


BOTH = Texts({"title": ["Sea law", "Fish"], "abstract": ["Of ships", "Law and fish"]})
LATER = [
    Texts({"title": ["Wind power", "Fish wind"], "abstract": ["Of turbines", "Law and wind at sea"]}),
    Texts({"title": ["Solar"], "abstract": ["cells of law"]}),
]


@pytest.mark.parametrize(
    "features",
    [
        TextFeatures(min_df=1, char_ngrams=(3, 3), fields="separate"),
        TextParts([TextFeatures(min_df=1), TextFeatures(min_df=1, fields={"title": 1})], weights=[1, 2]),
        TextParts([TextParts([TextFeatures(min_df=1)]), TextFeatures(min_df=1, char_ngrams=(3, 3))]),
    ],
)
def test_new_words_of_several_groups_come_behind_all_columns(features, tmp_path):
    features.fit(BOTH)
    for n_known, texts in enumerate(LATER, start=2):
        n, names, rows = features.n_columns_, list(features.get_feature_names_out()), features.transform(BOTH).toarray()
        groups = features.groups_
        features.update(texts, n_known)
        assert list(features.get_feature_names_out())[:n] == names and features.n_columns_ > n
        np.testing.assert_array_equal(features.transform(BOTH).toarray()[:, :n], rows)
        assert dict(list(features.groups_.items())[: len(groups)]) == groups, "what was there keeps its name and place"
        row = features.transform(texts).toarray()
        new = list(features.get_feature_names_out())[n:]
        assert all(name.split(": ")[-1].isalpha() for name in new) and (row[:, n:].sum(axis=0) > 0).all()
    features.save(tmp_path / "f")
    again = tailwise.load(tmp_path / "f")
    assert again.groups_ == features.groups_
    np.testing.assert_array_equal(again.transform(LATER[0]).toarray(), features.transform(LATER[0]).toarray())


def test_a_model_that_reads_a_group_reads_its_new_words(tmp_path):
    parts = TextParts([TextFeatures(min_df=1), TextFeatures(min_df=1, fields={"title": 1})])
    tagger = Tagger(Columns(DiSMEC(random_state=0), group="title words"), features=parts, keep_training_data=True)
    tagger.fit(BOTH, [["law"], ["fish"]])
    old = tagger.model_
    tagger.update(LATER[0], [["energy"], ["energy", "fish"]])
    names = tagger.features_.get_feature_names_out()[tagger.model_.rows_.columns]
    assert names.tolist() == [f"title: {word}" for word in ("fish", "law", "sea", "power", "wind")]
    assert tagger.suggest(Texts({"title": ["wind"], "abstract": ["law"]}), k=1)[0][0].id == "energy"
    assert old.rows_.columns.size == 3, "the model that was there stays as it is"
    tagger.save(tmp_path / "t")
    assert tailwise.load(tmp_path / "t").suggest(LATER[0]) == tagger.suggest(LATER[0])


def test_the_usual_tagger_of_named_labels_learns():
    """Words and names found are combined: both take in new records, and the stack stays."""
    rng = np.random.default_rng(0)
    names = ["maritime law", "fish", "harbour", "tax", "wind"]
    labels = [sorted({names[i] for i in rng.integers(4, size=2)}) for _ in range(240)]
    texts = [f"about {' and '.join(row)} of number {n}" for n, row in enumerate(labels)]
    tagger = Tagger(random_state=0, keep_training_data=True).fit(texts[:200], labels[:200])
    tagger.update([*texts[200:], *(f"wind turbines {n}" for n in range(3))], [*labels[200:], *[["wind"]] * 3])
    assert tagger.label_counts_.sum() == sum(map(len, labels)) + 3
    assert tagger.suggest(["turbines of wind"], k=1)[0][0].id == "wind"
