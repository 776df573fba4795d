"""Networks that read words in their order, trained with torch: XMLCNN and AttentionXML.

Importing this room does not import torch; training and predicting do, and say which extra to install where it is
missing.
"""

from tailwise.sequence.attention_xml import AttentionXML
from tailwise.sequence.xml_cnn import XMLCNN

__all__ = ["XMLCNN", "AttentionXML"]
