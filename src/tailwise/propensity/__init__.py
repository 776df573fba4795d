"""Propensity models, and how to estimate them from evidence."""

from tailwise.propensity.models import (
    PRESETS,
    ConstantPropensity,
    GivenPropensity,
    JainPropensity,
    Propensity,
    check_propensity,
    jain_inverse,
)
from tailwise.propensity.resolve import known_propensity, resolve_propensity

__all__ = [
    "PRESETS",
    "ConstantPropensity",
    "GivenPropensity",
    "JainPropensity",
    "Propensity",
    "check_propensity",
    "jain_inverse",
    "known_propensity",
    "resolve_propensity",
]
