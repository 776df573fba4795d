"""Extreme multi-label classification that finds the rare labels, from incomplete training labels.

Every public name is imported on first use, so that ``import tailwise`` loads neither numba nor torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

_HOME_OF = {
    "TopK": "base",
    "workdir": "distributed",
    "XMCModel": "base",
    "Popularity": "baselines",
    "Centroid": "baselines",
    "NearestRows": "baselines",
    "Dataset": "data",
    "load_dataset": "data",
    "make_longtail": "data",
    "drop_labels": "data",
    "TextDataset": "data",
    "Texts": "data",
    "JainPropensity": "propensity",
    "ConstantPropensity": "propensity",
    "GivenPropensity": "propensity",
    "propensity_from_hierarchy": "propensity",
    "propensity_from_substitutes": "propensity",
    "propensity_from_audit": "propensity",
    "propensity_from_pairs": "propensity",
    "evaluate": "metrics",
    "compare": "metrics",
    "Evaluator": "metrics",
    "label_slices": "metrics",
    "label_table": "metrics",
    "metric_names": "metrics",
    "metric_scorer": "metrics",
    "predict_topk": "metrics",
    "GLaS": "embedding",
    "SampledSoftmax": "embedding",
    "WSABIE": "embedding",
    "XMLCNN": "sequence",
    "AttentionXML": "sequence",
    "ExactIndex": "embedding",
    "FaissIndex": "embedding",
    "propensity_sensitivity": "experiments.sensitivity",
    "unbiased": "losses",
    "convex_surrogate": "losses",
    "PropensityReranker": "tail",
    "CentroidReranker": "tail",
    "RankNet": "tail",
    "TailAugmented": "tail",
    "Calibrated": "tail",
    "Columns": "tail",
    "Ensemble": "tail",
    "Stacked": "tail",
    "Sublinear": "tail",
    "TradeOff": "tail",
    "LPSR": "tail",
    "classifier_norms": "tail",
    "Tagger": "text",
    "TextFeatures": "text",
    "TextParts": "text",
    "GivenVectors": "text",
    "SentenceVectors": "text",
    "Sequences": "text",
    "LabelMatcher": "text",
    "MatchedNames": "text",
    "KnownLabels": "text",
    "read_word_vectors": "text",
    "learn_word_vectors": "text",
    "Vocabulary": "vocabulary",
    "LabelRules": "vocabulary",
    "Audit": "audit",
    "plan_audit": "audit",
    "estimate_audit": "audit",
    "FastXML": "forest",
    "PfastXML": "forest",
    "PfastreXML": "forest",
    "TailCentroids": "forest",
    "Parabel": "trees",
    "Bonsai": "trees",
    "DiSMEC": "linear",
    "PWDiSMEC": "linear",
    "PPDSparse": "linear",
    "PDSparse": "linear",
    "ProXML": "linear",
    "LEML": "compression",
    "CPLST": "compression",
    "MLCSSP": "compression",
    "CS": "compression",
    "SLEEC": "compression",
    "RobustXML": "compression",
    "load": "persistence",
    "tune": "tuning",
    "set_progress": "parallel",
    "TailwiseError": "errors",
}
"""Where each public name lives: the one list that lazy import, ``dir`` and the documentation read."""

__all__ = sorted(["__version__", *_HOME_OF])


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tailwise' has no attribute {name!r}")
    value = getattr(import_module(f"tailwise.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
