"""What is installed, and where things are kept: the first lines of every report of a fault."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "torch", "pyarrow", "openpyxl")


def installed() -> dict[str, str]:
    """The versions of tailwise, Python and the packages that matter, by name; without importing them."""
    import tailwise

    found = {"tailwise": tailwise.__version__, "python": f"{platform.python_version()} on {platform.platform()}"}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def places() -> dict[str, object]:
    """The threads used by default, and the folders of data sets and of compiled code, by name."""
    from tailwise.cpus import available_cores
    from tailwise.errors import DownloadError
    from tailwise.home import cache_folder
    from tailwise.kernels import cache

    try:
        data: object = cache_folder()
    except DownloadError as error:
        data = error
    return {
        "threads": available_cores(),
        "data sets in": str(data),
        "compiled code in": str(cache.cache_folder() or "no folder: none is writable"),
    }
