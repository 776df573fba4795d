"""What a class keeps of its objects, what must hold when they come back, and how a folder names it."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from tailwise.errors import InvalidInput, ModelFileError
from tailwise.persistence.checks import Violation, check_that

_MOVED = {
    "tailwise.data.text_features": "tailwise.text.features",
    "tailwise.data.sequences": "tailwise.text.sequences",
    "tailwise.tagger": "tailwise.text.tagger",
    "tailwise.linear.dual_state": "tailwise.dual_state",
    "tailwise.kernels.trees.chunks": "tailwise.trees.old_folders",
}
"""Where the classes of modules are now that folders name by an older place."""


class Saveable:
    """Marks a class whose parameters and fitted attributes can be written to a folder and read back."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; scikit-learn's BaseEstimator provides it."""
        return super().get_params(deep=deep)  # type: ignore[misc]

    def _state(self) -> dict[str, Any]:
        """What is kept besides the parameters: by default every attribute that ends in ``_``."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and not name.startswith("_")}

    def _restore(self, state: dict[str, Any]) -> None:
        """Put back what :meth:`_state` returned; other names would hide methods and parameters."""
        for name in state:
            check_that(name.endswith("_") and not name.startswith("_"), f"{name} is no fitted attribute")
        vars(self).update(state)

    def _check_state(self) -> None:
        """Refuse a restored state that no ``fit`` could have left: called by ``load`` wherever there is a state.

        A class that does not say what its state must be has none. A subclass calls :mod:`tailwise.persistence.checks`
        on its attributes, whatever its kernels trust above all: shapes that agree, indices within range, numbers that
        are finite. Any exception refuses the folder and becomes the reason given. Checks take the extremes of an array
        or compare neighbours: they read every array once, about 12 ms for 100 MB in the page cache, and 0.1 s and more
        for a model of more than 1 GB.
        """
        raise Violation("it keeps no state")


def is_abstract(cls: type) -> bool:
    """Whether ``cls`` leaves something to be written by a subclass."""
    return any(getattr(getattr(cls, name), "__isabstractmethod__", False) for name in dir(cls))


def class_name(cls: type) -> str:
    """How a manifest names ``cls``."""
    if not cls.__module__.startswith("tailwise."):
        raise InvalidInput(f"{cls.__module__}.{cls.__qualname__} cannot be saved: only classes of tailwise can")
    return f"{cls.__module__}:{cls.__qualname__}"


def resolve_class(name: str) -> type:
    """The class of tailwise that a manifest names; nothing else is ever imported."""
    module, _, qualname = name.partition(":")
    if not re.fullmatch(r"tailwise(\.\w+)+", module) or not qualname.isidentifier():
        raise ModelFileError(f"the model names the class {name!r}, which is not one of tailwise")
    try:
        cls = getattr(import_module(_MOVED.get(module, module)), qualname)
    except (ModuleNotFoundError, AttributeError) as error:
        raise ModelFileError(f"the model names the class {name!r}, which this tailwise does not have") from error
    if not isinstance(cls, type):
        raise ModelFileError(f"{name!r} is not a class")
    return cls
