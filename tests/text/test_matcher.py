"""Names of labels in texts: what is found, and what is told of each find."""

import logging

import numpy as np
import pytest
from scipy import sparse

import tailwise
from tailwise import LabelMatcher, Texts, Vocabulary
from tailwise.errors import InvalidInput, MissingExtra, NotFitted
from tailwise.persistence.checks import Violation
from tailwise.text import cutting
from tailwise.text import language as languages
from tailwise.text.matcher import FACTS
from tailwise.text.rows import KnownLabels
from tailwise.vocabulary.building import Builder
from tailwise.vocabulary.vocabulary import HIDDEN, SYNONYM

SHORT = ("words", "characters", "rarity", "times", "alone", "title", "heads", "modifiers", "first", "last")
SHORT += ("labels", "kind", "qualified", "length", "near")


def labels_of(names, vocabulary=None):
    """Labels with these names, or with the ids of a vocabulary."""
    ids = vocabulary.ids if vocabulary is not None else [f"u:{i}" for i in range(len(names))]
    return KnownLabels(ids, names or list(ids), sparse.csr_array((1, len(ids))), vocabulary)


def found(matcher, text):
    """``{label: {fact: value}}`` of one text."""
    facts = matcher.transform(text if isinstance(text, Texts) else [text]).toarray().reshape(-1, len(FACTS))
    return {i: dict(zip(SHORT, row.tolist(), strict=True)) for i, row in enumerate(facts) if row.any()}


def fitted(names, texts=("nothing",), language="en", **how):
    return LabelMatcher(language, **how).fit(list(texts), labels=labels_of(list(names)))


@pytest.fixture
def vocabulary():
    builder = Builder()
    for label, *names in [
        ("u:sea", ("Meer", "de", 0), ("Sea", "en", 0), ("Ozean", "de", SYNONYM)),
        ("u:law", ("Recht", "de", 0), ("Law", "en", 0)),
        ("u:sealaw", ("Seerecht", "de", 0), ("Law of the sea", "en", 0), ("Maritime laws", "en", HIDDEN)),
    ]:
        for text, language, kind in names:
            builder.add_name(builder.concept(label), text, language, kind)
    builder.add_broader("u:sealaw", "u:law")
    return builder.build()


def test_all_that_is_told_of_a_find():
    matcher = fitted(["Sea law", "Fish (food)"], ["laws of fishes", "fish", "law"])
    facts = found(matcher, "Fishes! The SEA laws, and one fish")
    idf = lambda having: np.log(4 / (1 + having)) + 1  # noqa: E731
    assert facts[0] == pytest.approx(
        {"words": 2, "characters": 6, "rarity": idf(0) + idf(2), "times": 1, "alone": 1, "title": 1, "heads": 0}
        | {"modifiers": 0, "first": 3, "last": 3 / 7, "labels": 1, "kind": 1, "qualified": 0, "length": 7, "near": 0}
    )
    assert facts[1] == pytest.approx(
        {"words": 1, "characters": 4, "rarity": idf(2), "times": 2, "alone": 2, "title": 2, "heads": 0}
        | {"modifiers": 0, "first": 1, "last": 1, "labels": 1, "kind": 1, "qualified": 1, "length": 7, "near": 0}
    )
    assert matcher.groups_ == {"names": (0, 30)} and matcher.n_columns_ == 30
    assert matcher.get_feature_names_out()[15] == "name of label 1: words of the name"


def test_only_whole_runs_in_their_order_are_names():
    matcher = fitted(["Sea law", "Vitamin C", "C"])
    assert found(matcher, "law sea, vitamin b") == {}
    assert found(matcher, "sea and law") == {}
    assert {i: facts["alone"] for i, facts in found(matcher, "of vitamin C").items()} == {1: 1, 2: 0}
    assert found(matcher, "in c, d")[2]["alone"] == 1


def test_names_within_longer_names_are_told_apart():
    facts = found(fitted(["Law", "Sea law", "Sea"]), "Sea law. Law")
    assert {i: (own["times"], own["alone"]) for i, own in facts.items()} == {0: (2, 1), 1: (1, 1), 2: (1, 0)}


def test_no_name_goes_over_the_end_of_a_text_or_field():
    matcher = LabelMatcher("en").fit(Texts({"title": ["x"], "abstract": ["y"]}), labels=labels_of(["Sea law", "Law"]))
    assert set(found(matcher, Texts({"title": ["The sea"], "abstract": ["law"]}))) == {1}
    assert not matcher.transform(["sea", "fish"])[[1]].nnz


def test_the_title_counts_apart():
    matcher = LabelMatcher("en").fit(Texts({"title": ["x"], "abstract": ["y"]}), labels=labels_of(["Fish", "Law"]))
    facts = found(matcher, Texts({"title": ["Of fish"], "abstract": ["fish, law"]}))
    assert {i: (own["times"], own["title"], own["first"], own["length"]) for i, own in facts.items()} == {
        0: (2, 1, 2, 4),
        1: (1, 0, 4, 4),
    }


def test_a_name_of_several_labels_is_ambiguous():
    facts = found(fitted(["Bank (money)", "Bank (seat)", "Seat"]), "banks and seats")
    assert {i: (own["labels"], own["qualified"]) for i, own in facts.items()} == {0: (2, 1), 1: (2, 1), 2: (1, 0)}


def test_synonyms_languages_and_the_hierarchy(vocabulary):
    matcher = LabelMatcher().fit(["nichts"], labels=labels_of(None, vocabulary))
    assert matcher.languages_ == ["de", "en"]
    kinds = lambda text: {vocabulary.ids[i]: own["kind"] for i, own in found(matcher, text).items()}  # noqa: E731
    assert kinds("Die Ozeane") == {"u:sea": 2}
    assert kinds("the maritime law") == {"u:sealaw": 3, "u:law": 1}
    assert kinds("Rechte, the laws of the seas") == {"u:law": 1, "u:sea": 1, "u:sealaw": 1}
    near = {vocabulary.ids[i]: own["near"] for i, own in found(matcher, "Seerecht, Recht, Meer").items()}
    assert near == {"u:sealaw": 1, "u:law": 1, "u:sea": 0}
    assert "u:law" not in {vocabulary.ids[i] for i in found(matcher, "le droit")}


def test_names_of_one_language_are_stemmed_by_it_alone():
    """English would cut the endings of a German word otherwise."""
    builder = Builder()
    builder.add_name(builder.concept("u:1"), "Leben", "de")
    builder.add_name(builder.concept("u:2"), "Leb", "en")
    matcher = LabelMatcher(compounds=False).fit(["x"], labels=labels_of(None, builder.build()))
    assert set(found(matcher, "leben")) == {0}
    assert set(found(matcher, "leb")) == {0, 1}


def test_parts_of_german_compounds():
    names = ["Recht", "Geschichte", "Museum", "Schiff"]
    matcher = fitted(names, ["Die Schulen", "Schule", "eine Schule"], "de")
    places = lambda text: {names[i]: (own["heads"], own["modifiers"]) for i, own in found(matcher, text).items()}  # noqa: E731
    assert places("Rechtsgeschichte") == {"Recht": (0, 1), "Geschichte": (1, 0)}
    assert places("Schulmuseum, Schulenrecht") == {"Museum": (1, 0), "Recht": (1, 0)}, "schul is a known stem"
    assert found(fitted(names, ["Die Schulen", "Schule"], "de"), "Schulmuseum") == {}, "too few texts have it"
    assert places("Rechtsxyz und Xyzrecht") == {}
    facts = found(matcher, "Rechtsgeschichte des Rechts")[0]
    assert (facts["times"], facts["modifiers"], facts["words"]) == (1, 1, 1)
    assert found(fitted(names, language="de", compounds=False), "Rechtsgeschichte") == {}
    assert found(fitted(names, language="en"), "Rechtsgeschichte") == {}


def test_texts_without_words_and_no_texts():
    matcher = fitted(["Law"])
    rows = matcher.transform(["", "?!", "law"])
    assert rows.shape == (3, 15) and rows.dtype == np.float32 and np.diff(rows.indptr)[:2].tolist() == [0, 0]
    assert matcher.transform([]).shape == (0, 15)
    assert set(found(fitted(["Law", "—", ""]), "law — ")) == {0}, "names without words are never found"


def test_names_of_many_words_are_left_out():
    assert found(fitted(["Law of the sea", "Law"], longest=3), "law of the sea").keys() == {1}
    assert found(fitted(["Law of the sea", "Law"], longest=4), "law of the sea").keys() == {0, 1}


def test_same_bits_for_any_number_of_jobs_and_blocks(monkeypatch, vocabulary):
    rng = np.random.default_rng(0)
    words = np.array(["Meer", "sea", "law", "of", "the", "Seerecht", "Rechtsmeer", "Ozean"])
    texts = [" ".join(rng.choice(words, rng.integers(0, 9))) for _ in range(60)]
    whole = LabelMatcher(n_jobs=1).fit(texts, labels=labels_of(None, vocabulary))
    monkeypatch.setattr(cutting, "CHARACTERS_A_BLOCK", 50)
    cut = LabelMatcher(n_jobs=2).fit(texts, labels=labels_of(None, vocabulary))
    a, b = whole.transform(texts), cut.transform(texts)
    assert a.nnz > 100
    for one, other in ((a.data, b.data), (a.indices, b.indices), (a.indptr, b.indptr)):
        np.testing.assert_array_equal(one, other)


def test_wrong_use_is_refused():
    with pytest.raises(InvalidInput, match=r"labels=None leaves nothing to look for; pass KnownLabels"):
        LabelMatcher().fit(["x"])
    unnamed = Builder()
    unnamed.concept("u:1")
    with pytest.raises(InvalidInput, match=r"no label has a name .*; pass names=, or a vocabulary"):
        LabelMatcher().fit(["x"], labels=labels_of(None, unnamed.build()))
    with pytest.raises(InvalidInput, match=r"no name of a label, such as '—', has 1 to 6 words; check the names"):
        fitted(["—"])
    with pytest.raises(InvalidInput, match="longest=0"):
        fitted(["law"], longest=0)
    with pytest.raises(InvalidInput, match="compounds='no'"):
        fitted(["law"], compounds="no")
    with pytest.raises(NotFitted, match="this LabelMatcher is not fitted yet"):
        LabelMatcher().transform(["x"])


def test_without_the_detector_names_keep_their_endings(monkeypatch, caplog):
    def missing(*arguments):
        raise MissingExtra("py3langid is not installed")

    monkeypatch.setattr(languages, "detect_language", missing)
    with caplog.at_level(logging.WARNING, "tailwise.text"):
        matcher = fitted(["Laws"], language=None)
    assert "pass LabelMatcher(language=), or install tailwise[language]" in caplog.text
    assert found(matcher, "laws") and not found(matcher, "law")


def test_it_comes_back_from_its_folder(tmp_path, vocabulary):
    matcher = LabelMatcher().fit(["Meer und Recht"], labels=labels_of(None, vocabulary))
    matcher.save(tmp_path / "m")
    texts = ["Meer, law", "Seerechte"]
    assert (tailwise.load(tmp_path / "m").transform(texts) != matcher.transform(texts)).nnz == 0


@pytest.mark.parametrize(
    ("attribute", "change"),
    [
        ("fields_", lambda value: []),
        ("languages_", lambda value: []),
        ("languages_", lambda value: [3]),
        ("runs_", lambda value: value[:0]),
        ("runs_", lambda value: value * np.uint64(0)),
        ("run_names_", lambda value: value + np.int32(9)),
        ("run_names_", lambda value: value[1:]),
        ("name_facts_", lambda value: value * np.float32(np.nan)),
        ("name_facts_", lambda value: value[:, :2]),
        ("name_indptr_", lambda value: value + 1),
        ("name_labels_", lambda value: value + np.int32(9)),
        ("name_kinds_", lambda value: value[1:]),
        ("qualified_", lambda value: value.astype(np.int8)),
        ("near_indptr_", lambda value: value[:1]),
        ("near_labels_", lambda value: value - np.int32(9)),
        ("known_stems_", lambda value: np.array([3, 3], np.uint64)),
    ],
)
def test_a_state_that_kernels_could_not_trust_is_refused(vocabulary, attribute, change):
    matcher = LabelMatcher().fit(["Meer und Recht"], labels=labels_of(None, vocabulary))
    matcher._check_state()
    setattr(matcher, attribute, change(getattr(matcher, attribute)))
    with pytest.raises(Violation, match=attribute):
        matcher._check_state()


def test_names_given_beside_a_vocabulary():
    """A label that the vocabulary does not know is found by the name that it was given; one without any is not."""
    vocab = Vocabulary.from_names({"u:1": "Fisch"}, "de")
    known = KnownLabels(["u:1", "u:2", "u:3"], ["Fisch", "Wal", "u:3"], sparse.csr_array((1, 3)), vocab)
    matcher = LabelMatcher("de").fit(["x"], labels=known)
    assert set(found(matcher, "Fische und Wale u:3")) == {0, 1}
