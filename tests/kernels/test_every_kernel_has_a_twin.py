"""Every public kernel stands in a table TWINS, over which the tests of this folder run."""

import importlib.util
import pkgutil
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive.twins import Twin, assert_equals_twin
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from strategies import examples

import tailwise.kernels


@cache
def public_kernels():
    """Compiled functions whose name has no underscore, by ``module.name``."""
    found = {}
    for module in pkgutil.walk_packages(tailwise.kernels.__path__, "tailwise.kernels."):
        for name, value in vars(import_module(module.name)).items():
            if isinstance(value, (Dispatcher, _Intrinsic)) and value.__module__ == module.name and name[0] != "_":
                found[f"{module.name.removeprefix('tailwise.kernels.')}.{name}"] = value
    return found


@cache
def tables():
    """The tables of all files of twins, joined."""
    joined = {}
    for path in sorted(Path(__file__).parent.glob("twins_of_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        assert not joined.keys() & module.TWINS.keys(), f"{path.name} repeats a kernel"
        joined |= module.TWINS
    return joined


def test_every_kernel_has_a_twin():
    named = tables()
    without = [name for name, kernel in public_kernels().items() if kernel not in named]
    assert not without, f"no table TWINS in tests/kernels names {', '.join(without)}"
    assert len(named) == len(public_kernels()), "a table TWINS names what is no public kernel"


@pytest.mark.parametrize("name", public_kernels())
def test_kernel_equals_its_twin(name):
    kernel = public_kernels()[name]
    twin = tables()[kernel]

    @settings(examples(twin.examples), deadline=None)
    @given(arguments=twin.arguments)
    def equals(arguments):
        assert_equals_twin(kernel, twin, arguments)

    equals()


def test_the_comparison_can_fail():
    wrong = Twin(lambda a: a.sum() + 1, st.just((np.ones(2),)))
    with pytest.raises(AssertionError, match="what it returns"):
        assert_equals_twin(np.sum, wrong, (np.ones(2),))
