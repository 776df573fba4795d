"""Opening a data set by name or by path."""

from __future__ import annotations

from pathlib import Path

from tailwise.data.dataset import Dataset
from tailwise.data.download import fetch
from tailwise.data.registry import REGISTRY, find_registered
from tailwise.data.xmc import read_xmc


def load_dataset(name: str, *, unit_rows: bool = True) -> Dataset:
    """Open a data set."""
    entry = find_registered(str(name))
    folder = fetch(entry.name)
    X_train, Y_train = read_xmc(folder / entry.train.name)
    X_test, Y_test = read_xmc(folder / entry.test.name)
    data = Dataset(
        X_train, Y_train, X_test, Y_test, name=entry.name, source=f"{entry.description}; from {entry.archive}"
    )
    return data.with_unit_rows() if unit_rows else data
