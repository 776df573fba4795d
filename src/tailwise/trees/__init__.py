"""Trees over labels with linear classifiers at the edges: Parabel, Bonsai, or a tree of your own."""

from tailwise.trees.bonsai import Bonsai
from tailwise.trees.parabel import Parabel

__all__ = ["Bonsai", "Parabel"]
