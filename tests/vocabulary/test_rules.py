"""Rules over labels: each kind, put together, and refused where they say nothing."""

import numpy as np
import pytest
from sklearn.base import clone

from tailwise import LabelRules, persistence
from tailwise.errors import InvalidInput
from tailwise.vocabulary.building import Builder
from tailwise.vocabulary.rules import Labels
from tailwise.vocabulary.vocabulary import SYNONYM

IDS = ["u:fish", "u:law", "u:both", "u:own"]


@pytest.fixture
def labels():
    builder = Builder()
    for label, name in zip([*IDS[:3], "u:unused"], ["Fish", "Law", "Fishing law", "Whale"], strict=True):
        builder.add_name(builder.concept(label), name, "en")
    builder.add_name(builder.concept("u:law"), "Statute", "en", SYNONYM)
    builder.deprecate(builder.concept("u:both"))
    builder.add_group("schemes", "s:1", "Animals")
    builder.add_member("schemes", "u:fish", "s:1")
    builder.add_member("schemes", "u:unused", "s:1")
    builder.add_member("collections", "u:law", "c:1")
    return Labels(IDS, ["Fish", "Law", "Fishing law", "Own"], np.array([9, 4, 2, 1]), builder.build())


@pytest.mark.parametrize(
    ("rule", "applies"),
    [
        ("id:u:law", [0, 1, 0, 0]),
        ("u:own", [0, 0, 0, 1]),
        ("u:unused", [0, 0, 0, 0]),
        ("name:fish*", [1, 0, 1, 0]),
        ("name:*LAW", [0, 1, 1, 0]),
        ("name:statute", [0, 1, 0, 0]),
        ("name:Ow?", [0, 0, 0, 1]),
        ("scheme:Animals", [1, 0, 0, 0]),
        ("scheme:s:1", [1, 0, 0, 0]),
        ("collection:c:1", [0, 1, 0, 0]),
        ("rows<4", [0, 0, 1, 1]),
        ("rows >= 4", [1, 1, 0, 0]),
        ("rows=1", [0, 0, 0, 1]),
        ("deprecated", [0, 0, 1, 0]),
    ],
)
def test_each_kind_of_rule(labels, rule, applies):
    assert LabelRules(exclude=[rule]).mask(labels).tolist() == [not one for one in applies]
    if any(applies):
        assert LabelRules(include=[rule]).mask(labels).tolist() == [bool(one) for one in applies]
    assert LabelRules(exclude=[rule]).effects(labels)["exclude"] == [(rule, sum(applies))]


def test_what_is_excluded_is_excluded_though_included(labels):
    rules = LabelRules(include=["name:*law", "u:own"], exclude=["rows<2"])
    assert rules.mask(labels).tolist() == [False, True, True, False]
    assert LabelRules().mask(labels).all() and not LabelRules() and rules
    assert str(rules.effects(labels)["include"][0]) == "name:*law (2 labels)"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("u:lwa", "names no label and no concept"),
        ("scheme:Plants", "names none of those in the vocabulary: Animals"),
        ("collection:x", "names none of those"),
        ("rows5", "does not compare|names no label"),
        ("rows<few", "write it like rows<5"),
        ("name:", "says no name"),
        ("", "is no rule"),
        (5, "is no rule"),
        ("rows>=0", "leaves none of the 4 labels"),
    ],
)
def test_a_rule_that_says_nothing_is_refused(labels, rule, message):
    with pytest.raises(InvalidInput, match=message):
        LabelRules(exclude=[rule]).mask(labels)


def test_a_single_string_is_no_list_of_rules(labels):
    with pytest.raises(InvalidInput, match=r"exclude='rows<2'; pass a list of rules: \['rows<2'\]"):
        LabelRules(exclude="rows<2").mask(labels)


def test_a_rule_about_a_vocabulary_needs_one(labels):
    with pytest.raises(InvalidInput, match="needs a vocabulary"):
        LabelRules(exclude=["deprecated"]).mask(labels._replace(vocabulary=None))
    assert LabelRules(exclude=["name:fish"]).mask(labels._replace(vocabulary=None)).sum() == 3


def test_rules_are_kept_in_folders(tmp_path):
    rules = LabelRules(include=["name:a*"], exclude=["rows<2", "u:1"])
    persistence.save(rules, tmp_path / "rules")
    back = persistence.load(tmp_path / "rules")
    assert back.get_params() == rules.get_params()
    assert clone(rules).get_params() == rules.get_params()
