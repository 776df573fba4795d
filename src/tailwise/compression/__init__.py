"""Labels through a small space: LEML, CPLST, ML-CSSP, CS, SLEEC, RobustXML."""

from tailwise.compression.cplst import CPLST
from tailwise.compression.cs import CS
from tailwise.compression.leml import LEML
from tailwise.compression.mlcssp import MLCSSP
from tailwise.compression.robust import RobustXML
from tailwise.compression.sleec import SLEEC

__all__ = ["CPLST", "CS", "LEML", "MLCSSP", "SLEEC", "RobustXML"]
