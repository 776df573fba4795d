"""What a vocabulary says of its concepts, and one version after another."""

import numpy as np
import pytest
from scipy import sparse

from tailwise import Vocabulary, propensity_from_hierarchy
from tailwise.errors import InvalidInput
from tailwise.vocabulary import column_map
from tailwise.vocabulary.building import Builder
from tailwise.vocabulary.vocabulary import SYNONYM


def made(concepts, broader=(), deprecated=()):
    """``{id: {language: [preferred, synonym, …]}}`` as a vocabulary."""
    builder = Builder()
    for label in concepts:
        builder.concept(label)
    for label, names in concepts.items():
        for language, texts in names.items():
            for place, text in enumerate(texts):
                builder.add_name(builder.concept(label), text, language, SYNONYM if place else 0)
    for pair in broader:
        builder.add_broader(*pair)
    for label in deprecated:
        builder.deprecate(builder.concept(label))
    return builder.build()


ANIMALS = {
    "u:fish": {"en": ["Fish", "Pisces"], "de": ["Fisch"]},
    "u:cod": {"en": ["Cod", "Fish"]},
    "u:old": {"en": ["Pisces"]},
    "u:none": {},
}


def test_names_fall_back_to_other_languages_and_the_id():
    vocab = made(ANIMALS)
    assert vocab.languages == ["en", "de"]
    assert vocab.preferred_names() == ["Fish", "Cod", "Pisces", "u:none"]
    assert vocab.preferred_names("de") == ["Fisch", "Cod", "Pisces", "u:none"]
    assert vocab.name("u:fish", "DE") == "Fisch"
    with pytest.raises(InvalidInput, match="language='fr' is none of the vocabulary's languages: en, de"):
        vocab.name("u:fish", "fr")
    with pytest.raises(InvalidInput, match=r"no 'u:fisch' among its 4 concepts; did you mean u:fish\?"):
        vocab.name("u:fisch")
    assert "u:fish" in vocab and "u:fisch" not in vocab
    assert vocab.places(["u:cod", "u:x", "u:fish"]).tolist() == [1, -1, 0]


def test_a_form_of_a_language_is_that_language():
    vocab = made({"u:1": {"de-at": ["Paradeiser"], "en": ["tomato"]}, "u:2": {"de": ["Topfen"], "de-at": ["Quark"]}})
    assert vocab.preferred_names("de") == ["Paradeiser", "Topfen"]
    assert vocab.preferred_names("de-AT") == ["Paradeiser", "Quark"]
    assert vocab.preferred_names("de-CH") == ["Paradeiser", "Quark"]


def test_finding_by_name_prefers_the_preferred_and_what_is_given():
    vocab = made(ANIMALS, deprecated=["u:old"])
    assert vocab.find("Fish") == "u:fish" and vocab.find(" fish ") == "u:fish"
    assert vocab.find("Pisces") == "u:fish", "a synonym of what is given before the name of what no longer is"
    assert vocab.find("Fisch", "de") == "u:fish" and vocab.find("Cod", "de") is None
    assert vocab.find("Whale") is None


def test_a_million_names_are_columns():
    vocab = Vocabulary.from_names({f"u:{i}": f"name {i}" for i in range(20_000)})
    assert vocab.terms.concept.dtype == np.int32 and len(vocab.terms.text) == 20_000
    assert vocab.name("u:19999") == "name 19999" and vocab.find("name 7") == "u:7"


def test_columns_are_mapped_by_id():
    old, new = ["a", "b", "c"], ["x", "c", "a"]
    place = column_map(old, new)
    assert place.tolist() == [2, -1, 1]
    assert all(place[i] < 0 or new[place[i]] == label for i, label in enumerate(old))


def test_a_new_version_keeps_the_columns_of_what_stays():
    old = made(ANIMALS, [("u:cod", "u:fish"), ("u:old", "u:fish")])
    new = made(
        {"u:eel": {"en": ["Eel"]}, "u:fish": {"en": ["Fishes"], "fr": ["poisson"]}, "u:cod": {"en": ["Cod"]}},
        [("u:eel", "u:fish")],
    )
    both = old.updated(new)
    both._check_state()
    assert both.ids[: len(old)] == old.ids and both.ids[len(old) :] == ["u:eel"]
    assert both.name("u:fish") == "Fishes" and both.name("u:fish", "fr") == "poisson"
    assert both.names("u:cod") == [("Cod", "en", True)]
    assert both.names("u:old") == old.names("u:old")
    assert both.deprecated.tolist() == [False, False, True, True, False]
    assert both.broader.tolist() == [[2, 0], [4, 0]]
    assert both.updated(new).ids == both.ids
    assert repr(old.updated(old)._state()) == repr(old._state())


def test_changes_are_told():
    old = made(ANIMALS, [("u:cod", "u:fish")])
    new = made(
        {"u:eel": {"en": ["Eel"]}, "u:fish": {"en": ["Fishes", "Pisces"]}, "u:cod": {"en": ["Cod"]}, "u:none": {}},
        deprecated=["u:none"],
    )
    found = old.changes_to(new)
    assert found.added == ["u:eel"] and found.removed == ["u:old"] and found.kept == 3
    assert [tuple(one) for one in found.renamed] == [
        ("u:fish", "de", "Fisch", ""),
        ("u:fish", "en", "Fish", "Fishes"),
    ]
    assert found.deprecated == ["u:none"] and found.moved == ["u:cod"] and found.synonyms == ["u:cod"]
    assert found.counts() == {
        "added": 1, "removed": 1, "renamed": 2, "deprecated": 1, "moved": 1, "synonyms": 1, "kept": 3
    }  # fmt: skip
    assert not any(old.changes_to(old)[:-1])


def test_propensities_come_from_the_hierarchy_in_one_call():
    rng = np.random.default_rng(0)
    n_top, n_leaves = 40, 400
    parents = {f"leaf:{i}": f"top:{i % n_top}" for i in range(n_leaves)}
    tops = [f"top:{i}" for i in range(n_top)]
    vocab = made({label: {"en": [label]} for label in [*tops, *parents]}, parents.items())
    leaf = rng.random((3000, n_leaves)) < 0.004
    top = np.zeros((3000, n_top), bool)
    for i in range(n_leaves):
        top[:, i % n_top] |= leaf[:, i] & (rng.random(3000) < 0.3)
    columns = list(parents) + tops
    Y = sparse.csr_array(np.hstack([leaf, top]).astype(np.float32))
    found = vocab.propensity(Y, columns, bin_size=5, n_bootstrap=20)
    pairs = np.array([[i, n_leaves + i % n_top] for i in range(n_leaves)])
    same = propensity_from_hierarchy(Y, pairs, bin_size=5, n_bootstrap=20)
    assert found.a == pytest.approx(same.a) and found.b == pytest.approx(same.b)
    assert np.allclose(found.propensity_, same.propensity_)
    more = vocab.propensity(
        sparse.hstack([Y, Y[:, :1]], format="csr"), [*columns, "u:unknown"], bin_size=5, n_bootstrap=20
    )
    assert more.propensity_.shape == (len(columns) + 1,)
    with pytest.raises(InvalidInput, match="ids has 2 entries but Y has 440 columns"):
        vocab.propensity(Y, ["a", "b"])
    with pytest.raises(InvalidInput, match="the vocabulary has none of the 440 labels"):
        vocab.propensity(Y, [f"x:{i}" for i in range(440)])
    with pytest.raises(InvalidInput, match="has no hierarchy"):
        Vocabulary.from_names(dict.fromkeys(columns, "a")).propensity(Y, columns)
