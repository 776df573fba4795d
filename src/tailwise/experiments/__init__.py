"""Comparing models: published tables, reports, and the papers' experiments on missing labels."""

from tailwise.experiments.sensitivity import Sensitivity, propensity_sensitivity

__all__ = ["Sensitivity", "propensity_sensitivity"]
