"""What would be served and what it takes, found out by opening it: ``tailwise serve --check``."""

from __future__ import annotations

from typing import Any

from tailwise.cpus import available_cores
from tailwise.display import describe
from tailwise.measure import private_megabytes
from tailwise.persistence import read_manifest
from tailwise.serving.served import Served
from tailwise.serving.settings import Settings
from tailwise.serving.shelf import Shelf


def facts_of(settings: Settings) -> dict[str, Any]:
    """Open every model as a worker would, and tell of each; the first that cannot be served is refused."""
    before = private_megabytes()
    shelf = Shelf(settings)
    shelf.open()
    own = private_megabytes() - before
    workers = settings.workers or available_cores()
    files = sum(_megabytes(served) for served in shelf.all())
    facts: dict[str, Any] = {"address": f"http://{settings.host}:{settings.port}/", "workers": workers}
    for served in shelf.all():
        facts[served.id] = (
            f"{describe(served.tagger.model_)}; {served.n_labels:,} labels, "
            f"{served.tagger.n_samples_:,} training rows, {_megabytes(served):,.0f} MB of files"
        )
    facts["audits"] = ", ".join(settings.audits) or "none"
    facts["learning"] = "allowed" if settings.allow_learn else "not allowed"
    facts["token"] = "none" if settings.token is None else "for all" if settings.private else "for writes"
    facts["memory in MB, shared by all workers"] = round(files)
    facts["memory in MB, of each worker"] = round(before + own)
    facts["memory in MB, together"] = round(files + workers * (before + own))
    return facts


def _megabytes(served: Served) -> float:
    return sum(file["bytes"] for file in read_manifest(served.source.path)["files"].values()) / 1e6
