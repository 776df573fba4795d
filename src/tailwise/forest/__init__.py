"""Trees over rows: FastXML, PfastXML, PfastreXML, and the tail classifiers that re-rank any model."""

from tailwise.forest.models import Explanation, FastXML, PfastreXML, PfastXML, Vote
from tailwise.forest.tail_centroids import TailCentroids

__all__ = ["Explanation", "FastXML", "PfastXML", "PfastreXML", "TailCentroids", "Vote"]
