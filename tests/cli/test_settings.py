"""``--set param=value``: what it becomes, and what is refused."""

import pytest

from tailwise.cli.settings import parse_settings
from tailwise.cli.training import make_tagger
from tailwise.errors import InvalidInput
from tailwise.parameters import Choice, Constraint, Flag, Integer, Number, OrNone, Text


class Example:
    """A class with every kind of parameter."""

    _parameters = {
        "c": Number(low=0),
        "n": Integer(low=1),
        "jobs": OrNone(Integer()),
        "flag": Flag(),
        "kind": Choice("linear", "tree", "none"),
        "name": Text(),
        "anything": Constraint(),
    }

    def __init__(self, c=1.0, *, n=3, jobs=None, flag=False, kind="linear", name="x", anything=()): ...


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("c=2", 2),
        ("c=0.5", 0.5),
        ("n=7", 7),
        ("jobs=none", None),
        ("jobs=2", 2),
        ("flag=true", True),
        ("kind=tree", "tree"),
        ("kind=none", "none"),
        ("name=7", "7"),
        ("name=hello world", "hello world"),
        ("name=a=b", "a=b"),
        ("anything=(1, 2)", (1, 2)),
        ("anything=0.5", 0.5),
        (" c = 2", 2),
    ],
)
def test_a_setting_becomes_what_the_constraint_allows(setting, expected):
    (value,) = parse_settings(Example, [setting]).values()
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("c=fast", "c='fast' must be a number. Example takes a number in [0, inf); the default is 1.0"),
        ("c=-1", "c=-1 is outside [0, inf)"),
        ("n=1.5", "n=1.5 must be an integer"),
        ("flag=7", "flag=7 is not one of True, False"),
        ("kind=three", "kind='three' is not one of 'linear', 'tree', 'none'; did you mean 'tree'?"),
        ("knd=b", "Example has no parameter 'knd'; did you mean kind? It takes c, n, jobs"),
        ("c", "--set 'c' has no '='; write --set param=value"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_fix(setting, message):
    with pytest.raises(InvalidInput, match=r"--set") as error:
        parse_settings(Example, [setting])
    assert message in str(error.value)


def test_a_tagger_gets_the_settings_the_seed_and_the_tail():
    tagger = make_tagger("parabel", ["n_trees=1"], ["min_df=1"], tail=0.5, seed=7)
    assert tagger.tail == 0.5 and tagger.calibrate and tagger.random_state == 7
    assert tagger.model.get_params().items() >= {"n_trees": 1, "random_state": 7}.items()
    assert tagger.features.min_df == 1
    assert make_tagger("popularity", [], [], tail=0.0, seed=7).model.get_params() == {}


def test_auto_takes_the_settings_that_both_models_have():
    tagger = make_tagger("auto", ["C=2"], [], tail=0.0, seed=0)
    assert tagger.model.one_vs_rest.C == tagger.model.tree.C == 2
    with pytest.raises(InvalidInput, match=r"DiSMEC has no parameter 'n_trees'.*name one of them with --model"):
        make_tagger("auto", ["n_trees=1"], [], tail=0.0, seed=0)
