"""The models by name: how ``"pw-dismec"`` becomes ``PWDiSMEC()``.

Names follow from the public class names. Importing this module is cheap: a class is imported when it is asked for.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

import tailwise

CLASSES = (
    "DiSMEC",
    "PWDiSMEC",
    "ProXML",
    "PPDSparse",
    "PDSparse",
    "Parabel",
    "Bonsai",
    "FastXML",
    "PfastXML",
    "PfastreXML",
    "GLaS",
    "SampledSoftmax",
    "SLEEC",
    "CPLST",
    "LEML",
    "RobustXML",
    "MLCSSP",
    "CS",
    "WSABIE",
    "XMLCNN",
    "AttentionXML",
    "NearestRows",
    "Stacked",
    "Centroid",
    "Popularity",
)
"""Models that need no other model, most accurate families first."""

STACKED_MEMBERS = ("DiSMEC", "PWDiSMEC", "Centroid", "NearestRows")
"""What ``"stacked"`` combines unless members are given."""

_WORD_STARTS = re.compile(r"(?<=[A-Z]{2})(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z][a-z])")


def name_of(class_name: str) -> str:
    """The name under which a class is asked for.

    >>> [name_of(name) for name in ("PWDiSMEC", "PPDSparse", "PfastreXML", "GLaS", "SampledSoftmax")]
    ['pw-dismec', 'ppd-sparse', 'pfastrexml', 'glas', 'sampled-softmax']
    """
    return "-".join(_WORD_STARTS.split(class_name)).lower()


def model_names() -> list[str]:
    """The names of all models."""
    return [name_of(name) for name in CLASSES]


def plain_name(text: str) -> str:
    """A name without what does not matter in it: case, hyphens, underscores."""
    return text.lower().replace("-", "").replace("_", "")


def model_class(name: str) -> type:
    """The class behind a name; hyphens and case do not matter."""
    for class_name in CLASSES:
        if plain_name(class_name) == plain_name(name):
            return getattr(tailwise, class_name)
    # errors.py brings scikit-learn, which the names alone must not wait for.
    from tailwise.errors import InvalidInput

    close = difflib.get_close_matches(name.lower(), model_names(), 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InvalidInput(f"model {name!r} is not known; {hint}Choose auto, {', '.join(model_names())}")


def make_model(name: str, **parameters: Any) -> Any:
    """The unfitted model ``name`` with its own defaults and the ``parameters`` given.

    >>> make_model("parabel", n_trees=1)
    Parabel(n_trees=1)
    """
    cls = model_class(name)
    if cls.__name__ == "Stacked" and "members" not in parameters:
        parameters["members"] = [getattr(tailwise, member)() for member in STACKED_MEMBERS]
    return cls(**parameters)
