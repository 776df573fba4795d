"""A menu of the versions that stand side by side: ``site/dev``, ``site/0.2`` and so on, each a build of its own.

The list is a script beside the folders, ``versions.js``, and not the JSON that the theme's own menu would fetch: a page
opened from a disk may load a script and may not fetch. Every build writes the list anew from the folders it finds, so
the pages of an older version name a newer one without being built again.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

LIST = "versions.js"


def versions_in(site: Path) -> list[str]:
    """The names of the folders of ``site`` that hold a built site: releases from the newest, then the others."""
    names = [path.parent.name for path in site.glob("*/objects.inv")]
    return sorted(names, key=_newest_first)


def _newest_first(name: str) -> tuple[Any, ...]:
    release = re.fullmatch(r"\d+(?:\.\d+)*", name)
    return (0, [-int(part) for part in name.split(".")]) if release else (1, name)


def list_versions(site: Path) -> None:
    """Write the list of versions, and a first page that leads to the newest release."""
    names = versions_in(site)
    (site / LIST).write_text(f"window.tailwiseVersions = {json.dumps(names)};\n", encoding="utf-8")
    page = f"{names[0]}/index.html"
    (site / "index.html").write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={page}">'
        f'<title>tailwise</title><a href="{page}">tailwise {names[0]}</a></html>\n',
        encoding="utf-8",
    )


def _tell_page(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """What the menu's template needs: this version, this page, and where the list is."""
    context["docs_version"] = app.config.docs_version
    context["docs_page"] = f"{page}.html"
    context["docs_root"] = "../" * (page.count("/") + 1)


def _finish(app: Any, error: Exception | None) -> None:
    if error is None and app.config.docs_version:
        list_versions(Path(app.outdir).parent)


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.add_config_value("docs_version", "", "html", [str])
    app.connect("html-page-context", _tell_page)
    app.connect("build-finished", _finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
