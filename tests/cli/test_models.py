"""The model table: names, settings, and what auto chooses."""

from typing import Literal

import pytest

from tailwise.cli.models import (
    CLASSES,
    choose_model,
    command_name,
    make_model,
    model_class,
    model_names,
    parse_settings,
    with_tail,
)
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


def test_every_name_leads_to_its_class_and_back():
    for name in model_names():
        cls = model_class(name)
        assert command_name(cls.__name__) == name
        assert model_class(name.upper().replace("-", "_")) is cls


def test_an_unknown_model_is_answered_with_a_near_one():
    with pytest.raises(InvalidInput, match="did you mean 'centroid'"):
        model_class("centroyd")


def test_a_model_is_built_with_its_own_defaults_and_the_settings():
    assert make_model("centroid", ["n_jobs=2"], random_state=7).n_jobs == 2
    assert make_model("popularity", [], n_jobs=3).get_params() == {}


def test_tail_wraps_the_model_and_zero_does_not():
    model = make_model("centroid", [])
    assert with_tail(model, 0.0) is model
    with pytest.raises(InvalidInput, match="--tail"):
        with_tail(model, 1.5)
    assert with_tail(model, 0.5).t == 0.5


def test_every_public_model_class_of_the_table_exists_or_is_left_out():
    assert {model_class(name).__name__ for name in model_names()} <= set(CLASSES)


def test_auto_says_what_it_chose_and_why():
    small, large = choose_model(1000, 100, 10_000), choose_model(10**7, 10**6, 10**9)
    assert small.name in model_names()
    assert large.name in model_names()
    assert "1,000 rows, 100 labels" in small.reason
