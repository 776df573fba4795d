"""A reader's walk: every example in Python of the pages runs, in order, with nothing but the installed package.

Runs in an empty folder: ``python reader.py DOCS``, with the folder of the pages; by default that of this file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGES = ("texts.md",)
"""Pages whose examples need no data that has to be fetched, and no file of the reader's."""


def examples(page: Path) -> list[str]:
    """The blocks of Python in a page."""
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """The files that a page links to."""
    found = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return [link for link in found if not link.startswith("http")]


def main(docs: Path) -> None:
    """The walk."""
    for name in PAGES:
        space: dict[str, object] = {"__name__": "__main__"}
        blocks = examples(docs / name)
        for number, block in enumerate(blocks, 1):
            print(f"{name}, example {number} of {len(blocks)}")
            exec(compile(block, f"{name}, example {number}", "exec"), space)
    for page in sorted(docs.rglob("*.md")):
        for link in links(page):
            assert (page.parent / link).exists(), f"{page} links to {link}, which is not there"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1])
