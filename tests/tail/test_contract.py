from contracts import ModelContract

from tailwise import Centroid, NearestRows, Popularity
from tailwise.tail import (
    LPSR,
    Calibrated,
    CentroidReranker,
    Columns,
    Ensemble,
    PropensityReranker,
    RankNet,
    Stacked,
    Sublinear,
    TailAugmented,
    TailCalibrated,
    TradeOff,
)


class TestPropensityReranker(ModelContract):
    def make(self, **params):
        return PropensityReranker(Centroid(), **params)


class TestCentroidReranker(ModelContract):
    def make(self, **params):
        return CentroidReranker(Centroid(), **params)


class TestCalibrated(ModelContract):
    def make(self, **params):
        return Calibrated(Centroid(), **params)


class TestCalibratedByFrequency(ModelContract):
    def make(self, **params):
        return Calibrated(Popularity(), **{"method": "platt", "per": "frequency-bin", **params})


class TestTailCalibrated(ModelContract):
    def make(self, **params):
        return TailCalibrated(Centroid(), **params)


class TestTailCalibratedNearest(ModelContract):
    def make(self, **params):
        return TailCalibrated(Centroid(), **{"nearest": True, **params})


class TestTailCalibratedProbabilities(ModelContract):
    def make(self, **params):
        return TailCalibrated(Popularity(), **{"n_candidates": 3, **params})


class TestRankNet(ModelContract):
    def make(self, **params):
        return RankNet(Centroid(), **{"blocks": 2, "epochs": 2, **params})


class TestLinearRankNet(ModelContract):
    def make(self, **params):
        return RankNet(Centroid(), **{"bottleneck": None, "epochs": 2, "learning_rate": 0.01, **params})


class TestPublishedRankNet(ModelContract):
    def make(self, **params):
        return RankNet.as_published(Centroid(), **params)


class TestTailAugmented(ModelContract):
    def make(self, **params):
        return TailAugmented(Centroid(), **params)


class TestPublishedTailAugmented(ModelContract):
    def make(self, **params):
        return TailAugmented.as_published(Centroid(), **params)


class TestEnsemble(ModelContract):
    def make(self, **params):
        return Ensemble([Centroid(), Popularity()], **params)


class TestFittedEnsemble(ModelContract):
    def make(self, **params):
        return Ensemble([Centroid(), NearestRows()], **{"weights": "fitted", **params})


class TestStacked(ModelContract):
    def make(self, **params):
        return Stacked([Centroid(), NearestRows(k=5)], **{"max_iter": 10, **params})


class TestStackedNearest(ModelContract):
    def make(self, **params):
        return Stacked([Centroid(), NearestRows(k=5)], **{"max_iter": 10, "nearest": True, **params})


class TestSublinear(ModelContract):
    def make(self, **params):
        return Sublinear(Centroid(), **params)


class TestLPSR(ModelContract):
    def make(self, **params):
        return LPSR(Centroid(), **{"n_partitions": 6, **params})


class TestNearestRows(ModelContract):
    def make(self, **params):
        return NearestRows(**params)


class TestTradeOff(ModelContract):
    def make(self, **params):
        return TradeOff(Centroid(), **params)


class TestWrappersCompose(ModelContract):
    def make(self, **params):
        inner = TailAugmented(NearestRows(k=10), random_state=1)
        return PropensityReranker(Calibrated(RankNet(inner, epochs=1, random_state=1), random_state=1), **params)


class TestColumns(ModelContract):
    def make(self, **params):
        return Columns(Centroid(), **params)
