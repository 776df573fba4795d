"""Labels through a small space: LEML, CPLST, ML-CSSP."""

from tailwise.compression.cplst import CPLST
from tailwise.compression.leml import LEML
from tailwise.compression.mlcssp import MLCSSP

__all__ = ["CPLST", "LEML", "MLCSSP"]
