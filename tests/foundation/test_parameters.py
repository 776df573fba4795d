"""Parameters are declared once: the table, the constructor and the docstring say the same."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import tailwise
from tailwise.errors import InvalidInput
from tailwise.parameters import (
    EVERYWHERE,
    Choice,
    Constraint,
    Flag,
    Integer,
    Jobs,
    Number,
    OrFunction,
    OrNone,
    Seed,
    Text,
    check_parameters,
    constraints_of,
    signature_of,
)


def declares(cls):
    return inspect.isclass(cls) and any("_parameters" in vars(base) for base in cls.__mro__)


CLASSES = {name: cls for name in tailwise.__all__ if declares(cls := getattr(tailwise, name))}


def test_every_public_estimator_declares_its_parameters():
    estimators = {n for n in tailwise.__all__ if hasattr(getattr(tailwise, n), "get_params")} - {"XMCModel"}
    assert estimators <= set(CLASSES), estimators - set(CLASSES)
    assert len(CLASSES) > 25


@pytest.mark.parametrize("name", CLASSES)
def test_the_table_has_every_argument_of_the_constructor(name):
    declared = set(EVERYWHERE)
    for base in CLASSES[name].__mro__:
        declared |= set(vars(base).get("_parameters", {}))
    assert set(signature_of(CLASSES[name])) <= declared


@pytest.mark.parametrize("name", CLASSES)
def test_defaults_satisfy_their_constraints(name):
    constraints = constraints_of(CLASSES[name])
    for parameter in signature_of(CLASSES[name]).values():
        if parameter.default is not parameter.empty:
            constraints[parameter.name].check(parameter.name, parameter.default)


@pytest.mark.parametrize("name", CLASSES)
def test_all_arguments_but_the_first_are_named(name):
    kinds = [parameter.kind for parameter in signature_of(CLASSES[name]).values()]
    assert all(kind is inspect.Parameter.KEYWORD_ONLY for kind in kinds[1:])


@pytest.mark.parametrize("name", CLASSES)
def test_the_docstring_names_the_parameters_and_their_choices(name):
    cls = CLASSES[name]
    section = re.search(
        r"Parameters\n\s+-+\n(.*?)(?=\n\s+(Examples|Notes|Attributes)\n\s+-+|\Z)", cls.__doc__ or "", re.S
    )
    heads = re.findall(r"^    ([A-Za-z_][\w, ]*?)(?: : (.*))?$", section[1], re.M) if section else []
    described = {one.strip(): kind for names, kind in heads for one in names.split(",")}
    assert set(described) == set(signature_of(cls)), "the docstring describes other parameters than there are"
    for parameter, constraint in constraints_of(cls).items():
        inner = constraint
        while isinstance(inner, OrNone | OrFunction):
            inner = inner.other
        if type(inner) is Choice and "{" in described[parameter]:
            shown = set(re.findall(r'"([^"]+)"', described[parameter].split("}")[0]))
            assert shown == {value for value in inner.values if isinstance(value, str)}, parameter


WRONG = object()


@pytest.mark.parametrize("name", CLASSES)
def test_every_constrained_argument_refuses_nonsense_by_name(name):
    for parameter, constraint in constraints_of(CLASSES[name]).items():
        if type(constraint) is Constraint:
            continue
        with pytest.raises(InvalidInput, match=re.escape(parameter)):
            constraint.check(parameter, WRONG)


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        (Number(low=0, open_low=True), [1e-9, 3, np.float32(2)], [0, -1, np.inf, np.nan, True, "1", None]),
        (Integer(low=1, high=3), [1, np.int64(3)], [0, 4, 2.0, True]),
        (Choice(None, "a"), [None, "a"], ["b", 1, np.zeros(2)]),
        (Flag(), [True, False, np.bool_(True)], [1, 0, "yes", None]),
        (OrNone(Integer()), [None, 4], ["4"]),
        (OrFunction(Choice("a")), [len, "a"], ["b", 3]),
        (Text(), ["x"], [1, None]),
        (Seed(), [None, 3, np.random.default_rng(0), np.random.RandomState(0)], ["x", -1, 0.5]),
        (Jobs(), [None, 2, -1], [0, 1.5, True]),
    ],
)
def test_constraints(constraint, good, bad):
    for value in good:
        constraint.check("name", value)
    for value in bad:
        with pytest.raises(InvalidInput, match=r"^(name|n_jobs)="):
            constraint.check("name", value)


def test_a_seed_is_not_drawn_from_when_it_is_checked():
    for make in (np.random.default_rng, np.random.RandomState):
        used, fresh = make(5), make(5)
        Seed().check("random_state", used)
        assert used.random() == fresh.random()


def test_parts_are_checked_with_the_whole():
    with pytest.raises(InvalidInput, match=r"C=-1 is outside \(0, inf\)"):
        check_parameters(tailwise.Calibrated(tailwise.DiSMEC(-1)))
    with pytest.raises(InvalidInput, match=r"C=-1 is outside"):
        check_parameters(tailwise.Stacked([tailwise.Centroid(), tailwise.DiSMEC(-1)]))
    with pytest.raises(InvalidInput, match=r"a=0 is outside"):
        check_parameters(tailwise.PWDiSMEC(propensity=tailwise.JainPropensity(0)))
    with pytest.raises(InvalidInput, match=r"members\[1\]='x' is not a tailwise model; pass one, such as DiSMEC\(\)"):
        check_parameters(tailwise.Ensemble([tailwise.Centroid(), "x"]))
