"""Linear models: one sparse classifier a label, each for itself or all in one problem."""

from tailwise.linear.dismec import DiSMEC, PWDiSMEC
from tailwise.linear.pd_sparse import PDSparse
from tailwise.linear.ppd_sparse import PPDSparse
from tailwise.linear.proxml import ProXML

__all__ = ["DiSMEC", "PDSparse", "PPDSparse", "PWDiSMEC", "ProXML"]
