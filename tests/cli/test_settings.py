"""``--set param=value``: what it becomes, and what is refused."""

from typing import Literal

import pytest

from tailwise.cli.settings import parse_settings
from tailwise.cli.training import make_tagger
from tailwise.errors import InvalidInput


class Example:
    """A class with every kind of parameter."""

    def __init__(
        self,
        c: float = 1.0,
        n: int = 3,
        jobs: int | None = None,
        flag: bool = False,
        kind: Literal["a", "b"] = "a",
        name: str = "x",
        sizes: tuple[int, ...] = (1,),
        anything: object = None,
    ) -> None: ...


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("c=2", 2.0),
        ("c=0.5", 0.5),
        ("n=7", 7),
        ("jobs=none", None),
        ("jobs=2", 2),
        ("flag=true", True),
        ("kind=b", "b"),
        ("name=7", "7"),
        ("name=hello world", "hello world"),
        ("sizes=(1, 2)", (1, 2)),
        ("anything=0.5", 0.5),
        (" c = 2", 2.0),
    ],
)
def test_a_setting_gets_the_type_of_the_signature(setting, expected):
    (value,) = parse_settings(Example, [setting]).values()
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("c=fast", "Example needs a number for c; its default is 1.0"),
        ("n=1.5", "Example needs an integer for n; its default is 3"),
        ("flag=7", "Example needs true or false for flag"),
        ("kind=c", "Example needs 'a' or 'b' for kind; its default is 'a'"),
        ("knd=b", "Example has no parameter 'knd'; did you mean kind? It takes c, n, jobs"),
        ("c", "--set 'c' has no '='; write --set param=value"),
    ],
)
def test_a_wrong_setting_is_refused_with_the_fix(setting, message):
    with pytest.raises(InvalidInput, match=r"--set") as error:
        parse_settings(Example, [setting])
    assert message in str(error.value)


def test_a_tagger_gets_the_settings_the_seed_and_the_tail():
    tagger = make_tagger("parabel", ["n_trees=1"], ["min_df=1"], tail=0.5, seed=7, jobs=2)
    assert tagger.model.t == 0.5
    assert tagger.model.base.get_params().items() >= {"n_trees": 1, "random_state": 7, "n_jobs": 2}.items()
    assert tagger.features.min_df == 1
    assert make_tagger("popularity", [], [], tail=0.0, seed=7, jobs=3).model.get_params() == {}


def test_auto_takes_the_settings_that_both_models_have():
    tagger = make_tagger("auto", ["C=2"], [], tail=0.0, seed=0, jobs=None)
    assert tagger.model.one_vs_rest.C == tagger.model.tree.C == 2
    with pytest.raises(InvalidInput, match=r"DiSMEC has no parameter 'n_trees'.*name one of them with --model"):
        make_tagger("auto", ["n_trees=1"], [], tail=0.0, seed=0, jobs=None)
