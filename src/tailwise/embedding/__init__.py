"""Embedding models, with torch (GLaS, SampledSoftmax, RowNetwork, BinaryNetwork) or without (WSABIE); finding labels.

Importing this room does not import torch; training does, and says which extra to install where it is missing.
"""

from tailwise.embedding.approximate import FaissIndex
from tailwise.embedding.binary_network import BinaryNetwork
from tailwise.embedding.glas import GLaS
from tailwise.embedding.index import ExactIndex, LabelIndex, RecallReport, recall_report
from tailwise.embedding.row_network import RowNetwork
from tailwise.embedding.sampled_softmax import SampledSoftmax
from tailwise.embedding.sampling import SAMPLERS, WEIGHTINGS, Draw, implicit_margin, weights_for
from tailwise.embedding.wsabie import WSABIE

__all__ = [
    "SAMPLERS",
    "WEIGHTINGS",
    "WSABIE",
    "BinaryNetwork",
    "Draw",
    "ExactIndex",
    "FaissIndex",
    "GLaS",
    "LabelIndex",
    "RecallReport",
    "RowNetwork",
    "SampledSoftmax",
    "implicit_margin",
    "recall_report",
    "weights_for",
]
