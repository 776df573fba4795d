"""Data sets, file formats, synthetic data and label dropping."""

from tailwise.data.arff import read_arff, read_mulan_labels
from tailwise.data.dataset import Dataset, TextDataset
from tailwise.data.download import fetch, is_cached
from tailwise.data.labelled import Rows
from tailwise.data.libsvm import read_libsvm, read_libsvm_files, write_libsvm
from tailwise.data.loading import load_dataset
from tailwise.data.locate import FORMATS, ROW_FORMATS, detect_format, read_names
from tailwise.data.missing import drop_labels, planted_propensity
from tailwise.data.predictions import Predictions, read_predictions
from tailwise.data.record_writing import write_records
from tailwise.data.records import read_records, read_texts
from tailwise.data.registry import REGISTRY, RegisteredDataset, find_registered
from tailwise.data.saving import convert, write_dataset
from tailwise.data.split_files import SplitFiles, split_file
from tailwise.data.splitting import Split, split_rows
from tailwise.data.synthetic import make_longtail, write_longtail
from tailwise.data.tables import TEXT_FORMATS
from tailwise.data.texts import Texts
from tailwise.data.xmc import read_split, read_xmc, read_xmc_split, write_xmc
from tailwise.home import cache_folder

__all__ = [
    "FORMATS",
    "REGISTRY",
    "ROW_FORMATS",
    "TEXT_FORMATS",
    "Dataset",
    "Predictions",
    "RegisteredDataset",
    "Rows",
    "Split",
    "SplitFiles",
    "TextDataset",
    "Texts",
    "cache_folder",
    "convert",
    "detect_format",
    "drop_labels",
    "fetch",
    "find_registered",
    "is_cached",
    "load_dataset",
    "make_longtail",
    "planted_propensity",
    "read_arff",
    "read_libsvm",
    "read_libsvm_files",
    "read_mulan_labels",
    "read_names",
    "read_predictions",
    "read_records",
    "read_split",
    "read_texts",
    "read_xmc",
    "read_xmc_split",
    "split_file",
    "split_rows",
    "write_dataset",
    "write_libsvm",
    "write_longtail",
    "write_records",
    "write_xmc",
]
