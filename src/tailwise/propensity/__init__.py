"""Propensity models, and how to estimate them from evidence."""

from tailwise.propensity.evidence import (
    propensity_from_audit,
    propensity_from_hierarchy,
    propensity_from_pairs,
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
from tailwise.propensity.naming import named_propensity
from tailwise.propensity.pairs import AuditedPropensity
from tailwise.propensity.resolve import PropensityLike, known_propensity, resolve_propensity
from tailwise.propensity.weighting import WEIGHTING, WEIGHTINGS, propensity_weights

__all__ = [
    "PRESETS",
    "WEIGHTING",
    "WEIGHTINGS",
    "AuditedPropensity",
    "ConstantPropensity",
    "CurveFit",
    "EstimatedPropensity",
    "GivenPropensity",
    "JainPropensity",
    "Propensity",
    "PropensityLike",
    "check_propensity",
    "jain_inverse",
    "known_propensity",
    "named_propensity",
    "propensity_from_audit",
    "propensity_from_hierarchy",
    "propensity_from_pairs",
    "propensity_from_substitutes",
    "propensity_weights",
    "resolve_propensity",
]
