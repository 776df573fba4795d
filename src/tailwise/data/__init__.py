"""Data sets, file formats, text features, synthetic data and label dropping."""

from tailwise.data.dataset import Dataset, TextDataset
from tailwise.data.download import cache_folder, fetch, is_cached
from tailwise.data.loading import load_dataset
from tailwise.data.registry import REGISTRY, RegisteredDataset
from tailwise.data.xmc import read_xmc, read_xmc_split, write_xmc

__all__ = [
    "REGISTRY",
    "Dataset",
    "RegisteredDataset",
    "TextDataset",
    "cache_folder",
    "fetch",
    "is_cached",
    "load_dataset",
    "read_xmc",
    "read_xmc_split",
    "write_xmc",
]
