"""Labels through a small space: LEML, CPLST, ML-CSSP."""

from tailwise.compression.cplst import CPLST
from tailwise.compression.cs import CS
from tailwise.compression.leml import LEML
from tailwise.compression.mlcssp import MLCSSP

__all__ = ["CPLST", "CS", "LEML", "MLCSSP"]
