"""Trees over rows: FastXML, PfastXML, PfastreXML, and the tail classifiers that re-rank any model."""

from tailwise.forest.models import FastXML, PfastXML
from tailwise.forest.reranked import PfastreXML
from tailwise.forest.tail_centroids import TailCentroids

__all__ = ["FastXML", "PfastXML", "PfastreXML", "TailCentroids"]
