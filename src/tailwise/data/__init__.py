"""Data sets, file formats, text features, synthetic data and label dropping."""

from tailwise.data.dataset import Dataset, TextDataset
from tailwise.data.download import cache_folder, fetch, is_cached
from tailwise.data.loading import load_dataset
from tailwise.data.missing import drop_labels
from tailwise.data.registry import REGISTRY, RegisteredDataset
from tailwise.data.synthetic import make_longtail
from tailwise.data.xmc import read_xmc, read_xmc_split, write_xmc

__all__ = [
    "REGISTRY",
    "Dataset",
    "RegisteredDataset",
    "TextDataset",
    "cache_folder",
    "drop_labels",
    "fetch",
    "is_cached",
    "load_dataset",
    "make_longtail",
    "read_xmc",
    "read_xmc_split",
    "write_xmc",
]
