"""One-vs-rest linear models: one sparse classifier a label, trained over all rows."""

from tailwise.linear.dismec import DiSMEC, PWDiSMEC
from tailwise.linear.ppd_sparse import PPDSparse
from tailwise.linear.proxml import ProXML

__all__ = ["DiSMEC", "PPDSparse", "PWDiSMEC", "ProXML"]
