"""The walks in CONTRIBUTING.md lead past files that are there."""

import re
from pathlib import Path

import tailwise

ROOT = Path(tailwise.__file__).parent


def test_every_file_of_a_walk_is_there():
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walks = text.split("## Walks")[1].split("\n## ")[0]
    named = re.findall(r"`([\w/]+\.py)`", walks)
    assert len(named) > 40
    assert [name for name in named if not (ROOT / name).is_file()] == []
