"""Where tailwise keeps what it fetched: data sets, vectors."""

from __future__ import annotations

import os
from pathlib import Path

from tailwise.errors import DownloadError


def cache_folder() -> Path:
    """Where data sets are kept: ``TAILWISE_HOME``, or ``~/.cache/tailwise``."""
    home = os.environ.get("TAILWISE_HOME")
    try:
        return Path(home).expanduser() if home else Path.home() / ".cache" / "tailwise"
    except RuntimeError as error:
        raise DownloadError(f"there is no place for data sets ({error}); set TAILWISE_HOME to a folder") from error
