"""Wrappers over any model: re-rank, augment, calibrate, combine. Each is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tailwise.lazy import lazy_names

if TYPE_CHECKING:
    from tailwise.tail.augmented import TailAugmented, augment_rows
    from tailwise.tail.calibrated import Calibrated, expected_calibration_error
    from tailwise.tail.columns import Columns, resolve_groups
    from tailwise.tail.ensemble import Ensemble
    from tailwise.tail.lpsr import LPSR
    from tailwise.tail.norms import classifier_norms, plot_classifier_norms
    from tailwise.tail.ranknet import RankNet
    from tailwise.tail.reranker import CentroidReranker, PropensityReranker
    from tailwise.tail.stacked import Stacked
    from tailwise.tail.sublinear import Sublinear
    from tailwise.tail.tail_calibrated import TailCalibrated
    from tailwise.tail.tradeoff import TradeOff, TradeOffCurve, trade_off_curve

__all__ = [
    "LPSR",
    "Calibrated",
    "CentroidReranker",
    "Columns",
    "Ensemble",
    "PropensityReranker",
    "RankNet",
    "Stacked",
    "Sublinear",
    "TailAugmented",
    "TailCalibrated",
    "TradeOff",
    "TradeOffCurve",
    "augment_rows",
    "classifier_norms",
    "expected_calibration_error",
    "plot_classifier_norms",
    "resolve_groups",
    "trade_off_curve",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "TailAugmented": "augmented",
        "augment_rows": "augmented",
        "Calibrated": "calibrated",
        "expected_calibration_error": "calibrated",
        "Columns": "columns",
        "resolve_groups": "columns",
        "Ensemble": "ensemble",
        "LPSR": "lpsr",
        "classifier_norms": "norms",
        "plot_classifier_norms": "norms",
        "RankNet": "ranknet",
        "CentroidReranker": "reranker",
        "PropensityReranker": "reranker",
        "Stacked": "stacked",
        "Sublinear": "sublinear",
        "TailCalibrated": "tail_calibrated",
        "TradeOff": "tradeoff",
        "TradeOffCurve": "tradeoff",
        "trade_off_curve": "tradeoff",
    },
)
