"""Corpora that benchmarks share: texts by field with their labels, from files at hand; none where they are not."""

from __future__ import annotations

import json
import lzma
import re
import shutil
import subprocess
from collections.abc import Iterator

from benchmarks.harness import ROOT
from tailwise.data import wordnet

DATA = ROOT.parent / "shared" / "data"

Records = Iterator[tuple[dict[str, str], list[str]]]


def tibkat(language: str) -> Records:
    """Training records of a library: title and abstract with GND subjects."""
    path = DATA / f"tibkat-{language}-train.jsonl.xz"
    if not path.exists():
        return
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            yield {"title": row["title"] or "", "abstract": row["abstract"] or ""}, row["labels"]


def nouns() -> Records:
    """WordNet's: words and gloss, labelled by every noun above them but the top five levels, which say nothing."""
    if not (wordnet.FOLDER / "data.noun").exists():
        return
    found = wordnet.read_wordnet_nouns()
    for noun in range(len(found.ids)):
        labels = [found.ids[top] for top in found.ancestors(noun)[:-5]]
        if labels:
            yield {"words": " ".join(found.words[noun]), "gloss": found.glosses[noun]}, labels


def glosses() -> Records:
    """WordNet's glosses alone, labelled by the words of the nouns right above: short rows, most labels on a few."""
    if not (wordnet.FOLDER / "data.noun").exists():
        return
    found = wordnet.read_wordnet_nouns()
    for noun, tops in enumerate(found.above):
        labels = sorted({word for top in tops for word in found.words[top]})
        if labels:
            yield {"gloss": found.glosses[noun]}, labels


def packages() -> Records:
    """Debian's packages: name and summary with the tags that its users gave them, many of them never."""
    for fields, paragraph in _summaries():
        labels = [tag.strip() for tag in paragraph.get("Tag", "").split(",") if tag.strip()]
        if labels:
            yield fields, labels


def dependencies() -> Records:
    """Debian's packages: name and summary with the packages that they need, most of which few need."""
    for fields, paragraph in _summaries():
        needed = [one.split() for one in re.split("[,|]", paragraph.get("Depends", ""))]
        if labels := sorted({words[0].split(":")[0] for words in needed if words}):
            yield fields, labels


def _summaries() -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Name and summary of each of Debian's packages, and all that its paragraph says."""
    if shutil.which("apt-cache") is None:
        return
    done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True)
    for paragraph in done.stdout.split("\n\n"):
        found = dict(line.split(": ", 1) for line in paragraph.replace("\n ", " ").split("\n") if ": " in line)
        if text := found.get("Description-en") or found.get("Description"):
            yield {"name": found["Package"].replace("-", " "), "summary": text}, found
