"""How a model becomes a folder and comes back: JSON and ``.npy`` files, never pickle.

A folder holds ``manifest.json`` and one file for each array, named after its content's digest. The manifest
lists class, parameters, fitted state, and the sha256 of every file. A new model is written to a temporary
sibling that is renamed when it is whole; an existing one is replaced by swapping its manifest, which is one
atomic rename because files of different content never share a name. A crash leaves the old model or the new one,
of two savers one wins whole, and whoever opens the folder meanwhile sees the old model or the new one.

Any class that derives from :class:`Saveable` can be kept: its ``get_params`` and every attribute that ends in
``_``. Values may be None, bool, numbers, strings, lists, tuples, dicts with string keys, numpy arrays, scipy CSR
matrices, NamedTuples of tailwise, dicts of torch tensors (kept as safetensors), and other Saveable objects.
"""

from __future__ import annotations

from tailwise.persistence.folder import UnwritableModel, load, save
from tailwise.persistence.manifest import is_replaceable, read_manifest
from tailwise.persistence.saveable import Saveable

__all__ = ["Saveable", "UnwritableModel", "is_replaceable", "load", "read_manifest", "save"]
