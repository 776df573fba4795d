"""Propensity models, and how to estimate them from evidence."""

from tailwise.propensity.evidence import (
    propensity_from_audit,
    propensity_from_hierarchy,
    propensity_from_substitutes,
)
from tailwise.propensity.fitting import CurveFit, EstimatedPropensity
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
    "CurveFit",
    "EstimatedPropensity",
    "GivenPropensity",
    "JainPropensity",
    "Propensity",
    "check_propensity",
    "jain_inverse",
    "known_propensity",
    "propensity_from_audit",
    "propensity_from_hierarchy",
    "propensity_from_substitutes",
    "resolve_propensity",
]
