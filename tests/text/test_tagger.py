"""Text in, label names out."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score

import tailwise
from tailwise import Centroid, DiSMEC, NearestRows, Popularity, Sublinear, Tagger, TextFeatures, metric_scorer
from tailwise.errors import InvalidInput, NotFitted
from tailwise.label_lists import indicator
from tailwise.persistence.manifest import manifest_digest

TEXTS = ["tax law", "sea fish", "fish law", "tax income", "sea cod", "nothing here"]
LABELS = [["law", "tax"], ["fish"], ["law", "fish"], ["tax"], ["fish"], []]
WORDS = TextFeatures(min_df=1)


@pytest.fixture(scope="module")
def tagger():
    return Tagger(Centroid(), features=WORDS).fit(TEXTS, LABELS, names={"fish": "Fishes"})


def test_suggest_gives_names_ids_scores_and_rarity(tagger):
    (found,) = tagger.suggest(["cod in the sea"], k=2)
    assert found[0].name == "Fishes"
    assert found[0].id == "fish"
    assert found[0].rarity == "tail"
    assert found[0].score > found[1].score
    assert tagger.suggest([]) == []


def test_suggest_agrees_with_the_parts(tagger):
    X = TextFeatures(min_df=1).fit(TEXTS).transform(["cod law"])
    Y, ids = indicator(LABELS)
    plain = Centroid().fit(TextFeatures(min_df=1).fit_transform(TEXTS), Y).predict_topk(X, 3)
    assert tagger.label_ids_ == ids
    np.testing.assert_array_equal(tagger.predict_topk(["cod law"], 3).labels, plain.labels)
    np.testing.assert_array_equal(tagger.predict_topk(["cod law"], 3).scores, plain.scores)


def test_saved_and_loaded_it_suggests_the_same(tagger, tmp_path):
    tagger.save(tmp_path / "tagger")
    again = tailwise.load(tmp_path / "tagger")
    assert again.suggest(TEXTS, 3) == tagger.suggest(TEXTS, 3)
    assert again.explain("sea cod", "fish") == tagger.explain("sea cod", "fish")
    assert not list((tmp_path / "tagger").glob("*.pkl"))


def test_explanation_adds_up_to_the_score(tagger):
    found = tagger.explain("cod in the sea", "Fishes")
    assert sum(part.value for part in found.parts) == pytest.approx(found.score, rel=1e-5)
    suggested = {s.id: s.score for s in tagger.suggest(["cod in the sea"], 3)[0]}
    assert found.score == pytest.approx(suggested["fish"], rel=1e-5)
    assert {part.name for part in found.features() if part.value > 0} == {"cod", "sea"}


def test_a_label_is_found_by_name_id_case_and_number(tagger):
    assert {tagger.find_label(label) for label in ("fish", "Fishes", "fishes", 0)} == {0}
    with pytest.raises(InvalidInput, match="'Fischs' was never seen in training; did you mean 'Fishes'"):
        tagger.find_label("Fischs")
    with pytest.raises(InvalidInput, match="there are 3 labels"):
        tagger.find_label(3)


def test_a_model_without_weights_explains_in_its_own_way():
    (share,) = Tagger(Popularity(), features=WORDS).fit(TEXTS, LABELS).explain("sea", "fish").parts
    assert share.name == "share of training rows, 3" and share.value == pytest.approx(0.5)


def test_damped_rows_are_explained_as_the_model_sees_them():
    tagger = Tagger(Sublinear(DiSMEC(random_state=0)), features=WORDS).fit(TEXTS, LABELS)
    text = "sea sea sea cod law"
    for found in tagger.suggest([text], 3)[0]:
        why = tagger.explain(text, found.id)
        assert why.score == pytest.approx(found.score, rel=1e-4)
        assert sum(part.value for part in why.parts) == pytest.approx(found.score, rel=1e-4)
        assert {part.name for part in why.features()} <= {"sea", "cod", "law"}


def test_the_model_passed_stays_unfitted():
    model = Centroid()
    Tagger(model, features=WORDS).fit(TEXTS, LABELS)
    assert not hasattr(model, "weights_")


def test_sparse_labels_with_ids():
    Y, ids = indicator(LABELS)
    one = Tagger(Centroid(), features=WORDS).fit(TEXTS, Y, label_ids=ids)
    assert one.suggest(["cod"], 1)[0][0].id == "fish"


def test_rows_of_numbers_need_no_text_features():
    tagger = Tagger(Centroid()).fit(np.eye(3, dtype=np.float32), sparse.csr_array(np.eye(3, dtype=np.float32)))
    assert tagger.suggest(np.eye(3, dtype=np.float32)[:1], 1)[0][0].name == "0"
    with pytest.raises(InvalidInput, match="trained on numeric rows"):
        tagger.suggest(["text"])


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("one text", [["a"]], "single string"),
        (["a", 7], [["a"], ["b"]], "7 at row 1"),
        (["a", "b"], ["x", ["y"]], "the string 'x' at row 0"),
        (["a"], [["x"], ["y"]], "2 rows but there are 1 texts"),
        (["a", "b"], [[], []], "no row has a label"),
    ],
)
def test_bad_input_is_refused(texts, labels, message):
    with pytest.raises(InvalidInput, match=message):
        Tagger(Centroid(), features=WORDS).fit(texts, labels)


def test_an_unfitted_tagger_says_so(tmp_path):
    for call in (lambda t: t.suggest(["a"]), lambda t: t.save(tmp_path / "t"), lambda t: t.find_label("a")):
        with pytest.raises(NotFitted, match=r"Tagger.fit"):
            call(Tagger(Centroid()))


def test_parameters_can_be_cloned():
    from sklearn.base import clone

    assert clone(Tagger(Centroid(n_jobs=2))).model.n_jobs == 2


def test_a_tagger_is_an_estimator():
    texts, labels = ["tax law", "sea fish", "fish law", "sea"] * 5, [["law"], ["fish"], ["law", "fish"], ["fish"]] * 5
    tagger = Tagger(DiSMEC(random_state=0), features=TextFeatures(min_df=1)).fit(texts, labels)
    predicted = tagger.predict(["sea fish", "tax"])
    assert [tagger.label_names_in_[row.indices].tolist() for row in (predicted[[0]], predicted[[1]])] == [
        ["fish"],
        ["law"],
    ]
    assert tagger.score(texts, labels) > 0.9 > tagger.score(texts, [["law", "unheard of"]] * 20)
    assert tagger.decision_function(texts).shape == (20, 2)
    assert not hasattr(tagger, "predict_proba")
    voting = Tagger(NearestRows(k=3), features=TextFeatures(min_df=1)).fit(texts, labels)
    assert voting.predict_proba(["sea fish"], dense=True).max() <= 1
    with pytest.raises(NotFitted):
        Tagger().predict(["sea"])
    assert metric_scorer("p@1")(tagger, texts, labels) > 90
    assert (cross_val_score(tagger, texts, labels, cv=2) > 0.5).all()


def test_a_table_of_several_text_columns():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(
        {"title": ["tax law", "sea", None] * 3, "abstract": ["income", "fish", "fish of the sea"] * 3}
    )
    labels = [["law"], ["fish"], ["fish"]] * 3
    by_table = Tagger(Centroid(), features=TextFeatures(min_df=1, fields="joined")).fit(table, labels)
    joined = ["tax law\nincome", "sea\nfish", "fish of the sea"] * 3
    by_texts = Tagger(Centroid(), features=TextFeatures(min_df=1)).fit(joined, labels)
    np.testing.assert_array_equal(by_table.predict_topk(table).scores, by_texts.predict_topk(joined).scores)
    assert by_table.suggest(table["title"].fillna("").tolist()[:1], 1)[0][0].name == "law"
    with pytest.raises(InvalidInput, match=r"texts has 3 in column 'year'; choose the columns that are texts"):
        by_table.predict(table.assign(year=3))


def test_suggestions_print_as_a_table():
    tagger = Tagger(Centroid(), features=TextFeatures(min_df=1)).fit(["tax law", "sea fish"], [["law"], ["fish"]])
    found = tagger.suggest(["sea", "tax"], k=1)
    assert isinstance(found, list) and "text  label  id" in str(found) and "<table" in found._repr_html_()
    assert str(found[0][0]).startswith("fish 0.7")
    why = tagger.explain("sea", "fish")
    assert str(why).startswith("label 0: the score 0.7071 is the sum of\n+0.7071  sea")
    assert why._repr_html_().startswith("<pre>label 0")


def test_folders_that_name_classes_by_their_old_places_open(tagger, tmp_path):
    tagger.save(tmp_path / "t")
    path = tmp_path / "t" / "manifest.json"
    text = path.read_text(encoding="utf-8")
    for new, old in (("text.tagger", "tagger"), ("text.features", "data.text_features")):
        assert f"tailwise.{new}:" in text
        text = text.replace(f"tailwise.{new}:", f"tailwise.{old}:")
    manifest = json.loads(text)
    path.write_text(json.dumps(manifest | {"sha256": manifest_digest(manifest)}), encoding="utf-8")
    assert tailwise.load(tmp_path / "t").suggest(TEXTS) == tagger.suggest(TEXTS)
