"""A tagger with a vocabulary and rules: lists stay as long, and what is ranked stays in its order."""

import numpy as np
import pytest

import tailwise
from tailwise import Bonsai, Centroid, DiSMEC, LabelRules, Popularity, Tagger, TextFeatures, Vocabulary, make_longtail
from tailwise.errors import InvalidInput, ModelFileError
from tailwise.topk import TopK
from tailwise.vocabulary.ranking import allowed_topk

TEXTS = ["tax law", "sea fish", "fish law", "wine law"]
LABELS = [["u:law"], ["u:fish"], ["u:fish", "u:law"], ["u:wine", "u:law"]]
NAMES = {"u:law": "Recht", "u:fish": "Fisch", "u:wine": "Wein", "u:whale": "Wal"}


def fitted(**how):
    vocab = Vocabulary.from_names(NAMES, "de")
    return Tagger(Centroid(), features=TextFeatures(min_df=1), **how).fit(TEXTS, LABELS, vocab=vocab)


@pytest.fixture(scope="module")
def data():
    return make_longtail(300, 120, 60, random_state=0)


@pytest.mark.parametrize("model", [Popularity(), DiSMEC(), Bonsai(n_trees=1, random_state=0)], ids=repr)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_what_is_left_is_the_ranking_without_what_is_excluded(data, model, share):
    model.fit(data.X_train, data.Y_train)
    allowed = np.random.default_rng(0).random(model.n_labels_) >= share
    whole = model.predict_topk(data.X_test, model.n_labels_)
    before = TopK(np.empty((data.n_test, 0)), np.empty((data.n_test, 0)))
    for k in (1, 2, 5, 30):
        found = allowed_topk(model.predict_topk, data.X_test, k, allowed)
        for row in range(data.n_test):
            left = [label for label in whole.labels[row].tolist() if label >= 0 and allowed[label]][:k]
            assert found.labels[row].tolist() == left + [-1] * (k - len(left))
            assert np.isfinite(found.scores[row, : len(left)]).all()
            assert (found.scores[row, len(left) :] == -np.inf).all()
        assert (found.labels[:, : before.labels.shape[1]] == before.labels).all()
        assert (found.scores[:, : before.scores.shape[1]] == before.scores).all()
        before = found


def test_rules_are_kept_and_come_back(tmp_path):
    tagger = fitted(rules=LabelRules(exclude=["name:recht"]))
    assert tagger.allowed_.tolist() == [True, False, True]
    assert [s.name for s in tagger.suggest(["fish law"], k=2)[0]] == ["Fisch", "Wein"]
    assert not tagger.predict(TEXTS, k=2).toarray()[:, 1].any()
    tagger.save(tmp_path / "m")
    back = tailwise.load(tmp_path / "m")
    assert back.suggest(TEXTS) == tagger.suggest(TEXTS)
    assert back.vocabulary_.ids == list(NAMES) and back.rules.exclude == ["name:recht"]


def test_rules_of_a_call_add_to_those_of_the_tagger():
    tagger = fitted(rules=LabelRules(exclude=["u:law"]))
    found = tagger.suggest(["fish law"], rules=LabelRules(exclude=["rows<2"]))[0]
    assert [s.id for s in found] == ["u:fish"]
    assert [s.id for s in fitted().suggest(["fish law"], k=1, rules=LabelRules(include=["u:wine"]))[0]] == ["u:wine"]


def test_wrong_rules_are_refused_before_anything_is_learnt():
    for rules, message in (
        (LabelRules(exclude=["rows>=0"]), "leaves none of the 3 labels"),
        (LabelRules(exclude=["u:lwa"]), "names no label"),
        (LabelRules(exclude="u:law"), "pass a list of rules"),
    ):
        tagger = Tagger(Centroid(), rules=rules)
        with pytest.raises(InvalidInput, match=message):
            tagger.fit(TEXTS, LABELS)
        assert not hasattr(tagger, "features_")
    with pytest.raises(InvalidInput, match="rules='u:law' is not a tailwise LabelRules"):
        Tagger(rules="u:law").fit(TEXTS, LABELS)


def test_a_new_version_renames_and_keeps_the_columns():
    tagger = fitted(rules=LabelRules(exclude=["deprecated"]))
    ids, before = tagger.label_ids_, tagger.suggest(TEXTS, k=3)
    changes = tagger.update_vocabulary(
        Vocabulary.from_names({"u:law": "Jura", "u:fish": "Fisch", "u:new": "Neu"}, "de")
    )
    assert changes.added == ["u:new"] and changes.removed == ["u:wine", "u:whale"]
    assert tagger.label_ids_ == ids and tagger.label_names_ == ["Fisch", "Jura", "Wein"]
    assert tagger.vocabulary_.ids == [*NAMES, "u:new"]
    after = tagger.suggest(TEXTS, k=3)
    assert [[s.id for s in row if s.id != "u:wine"] for row in before] == [[s.id for s in row] for row in after]
    assert fitted().update_vocabulary(Vocabulary.from_names({"u:law": "Jura"})).kept == 1
    plain = Tagger(Centroid(), features=TextFeatures(min_df=1)).fit(TEXTS, LABELS)
    assert plain.update_vocabulary(Vocabulary.from_names({"u:law": "Jura"})) is None
    assert plain.label_names_ == ["u:fish", "Jura", "u:wine"]


def test_names_and_synonyms_are_found():
    tagger = fitted()
    assert tagger.label_names_ == ["Fisch", "Recht", "Wein"]
    assert tagger.find_label("recht") == 1 and tagger.names_in("de") == tagger.label_names_
    with pytest.raises(InvalidInput, match="has no vocabulary"):
        Tagger(Centroid(), features=TextFeatures(min_df=1)).fit(TEXTS, LABELS).names_in("de")


@pytest.mark.parametrize(
    "change",
    [
        lambda t: setattr(t, "allowed_", np.zeros(3, bool)),
        lambda t: setattr(t, "allowed_", np.ones(2, bool)),
        lambda t: setattr(t, "vocabulary_", ["u:law"]),
        lambda t: setattr(t, "rules", LabelRules(exclude=["rows<few"])),
    ],
)
def test_a_folder_that_no_tagger_could_have_left_is_refused(tmp_path, change):
    tagger = fitted(rules=LabelRules(exclude=["u:law"]))
    change(tagger)
    tagger.save(tmp_path / "m")
    with pytest.raises(ModelFileError):
        tailwise.load(tmp_path / "m")
