"""How good is Annif on the same records, by its own figures, what does it take, and what do we?

Annif 1.4 with its omikuji backend (Bonsai, as its documentation sets it) and its MLLM backend, on the TIBKAT records of
one language: trained on the training records, judged on the dev records by ``annif eval``, which prints F1@5 and nDCG.
Every command is a process of its own with one thread. The names of the subjects are German, so MLLM reads every text as
German. Annif is in ``.venv-annif`` (``make peers``); the corpus lies in
``../shared/data``; without either there is nothing to measure::

    python -m benchmarks annif_peer --language de --backends bonsai,mllm --ours "--model bonsai,--model dismec"

``--ours`` are options of ``tailwise train``, a model for each between commas: trained on the same files, and judged by
``tailwise evaluate --metrics annif``, whose figures are Annif's. Either list may be empty.

Annif's analyzers split texts into sentences first, by a model of NLTK that is fetched on first use. Where it is not
there, an untrained one takes its place, which knows no abbreviations: words at the end of a sentence are the same.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS, ROOT, save_results

QUESTION = "How good is Annif (Bonsai, MLLM) on the TIBKAT records beside us, and what does it take?"
_DATA = ROOT.parent / "shared" / "data"
_ANNIF = ROOT / ".venv-annif" / "bin" / "annif"
_STEMMERS = {"de": "german", "en": "english"}
_PROJECTS = """
[bonsai]
name=Bonsai
language={language}
backend=omikuji
analyzer=snowball({stemmer})
vocab=gnd(de)
cluster_balanced=False
cluster_k=100
max_depth=3
limit=100

[mllm]
name=MLLM
language=de
backend=mllm
analyzer=snowball(german)
vocab=gnd(de)
limit=100
"""
_MLLM_DOCUMENTS = 5000  # its scorer has ten features and learns from few documents
_SUGGESTED = 50
_SHOWN = ("F1@5", "NDCG", "NDCG@5", "Precision@1")


def main(arguments: list[str]) -> None:
    language = _option(arguments, "--language", "de")
    backends, ours = (
        [one.strip() for one in _option(arguments, name, default).split(",") if one.strip()]
        for name, default in (("--backends", "bonsai,mllm"), ("--ours", "--model bonsai"))
    )
    parts = {part: _DATA / f"tibkat-{language}-{part}.jsonl.xz" for part in ("train", "dev")}
    if not _ANNIF.exists() or not parts["train"].exists():
        print(f"{_ANNIF} (make peers) or {parts['train']} is not at hand; nothing was measured")
        return
    folder = RESULTS / "annif" / language
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "projects.cfg").write_text(_PROJECTS.format(language=language, stemmer=_STEMMERS[language]))
    _write_corpora(folder, parts)
    _stand_in_for_punkt(folder / "nltk_data")
    figures: dict[str, Any] = {"language": language}
    for options in ours:
        figures[options] = _ours(folder, options)
        _print(language, f"tailwise {options}", figures[options])
    if backends:
        figures["load-vocab"] = _annif(folder, "load-vocab", "gnd", "gnd.csv")
    for backend in backends:
        limit = ["--docs-limit", str(_MLLM_DOCUMENTS)] if backend == "mllm" else []
        figures[backend] = {
            "train": _annif(folder, "train", backend, "train.tsv.gz", "-j", "1", *limit),
            "eval": _annif(folder, "eval", backend, "dev.tsv.gz", "-j", "1", "-M", f"{backend}.json"),
        }
        named = json.loads((folder / f"{backend}.json").read_text())
        figures[backend]["metrics"] = {name: named[name] for name in _SHOWN}
        found = f"{backend}.jsonl"
        _annif(folder, "index", backend, "dev.tsv.gz", "-I", "-f", "--limit", str(_SUGGESTED), "-O", found)
        _print(language, f"annif {backend}", figures[backend])
    save_results(f"annif_peer_{language}", figures)


def _option(arguments: list[str], name: str, default: str) -> str:
    return arguments[arguments.index(name) + 1] if name in arguments[:-1] else default


def _write_corpora(folder: Path, parts: dict[str, Path]) -> None:
    """The records as Annif's TSV, title and abstract in one text, and the names of the subjects as its CSV."""
    for part, path in parts.items():
        with lzma.open(path, "rt", encoding="utf-8") as lines, gzip.open(folder / f"{part}.tsv.gz", "wt") as out:
            for record in map(json.loads, lines):
                text = " ".join(f"{record['title']} {record['abstract'] or ''}".split())
                print(text, " ".join(f"<{label}>" for label in record["labels"]), sep="\t", file=out)
    with lzma.open(_DATA / "tibkat-label-names.json.xz", "rt", encoding="utf-8") as file:
        names = json.load(file)
    from tailwise import Vocabulary

    Vocabulary.from_names(names, "de").write(folder / "gnd.csv")


def _stand_in_for_punkt(folder: Path) -> None:
    """An untrained sentence splitter where NLTK looks for its own."""
    model = folder / "tokenizers" / "punkt_tab" / "english"
    model.mkdir(parents=True, exist_ok=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (model / name).touch()


def _ours(folder: Path, options: str) -> dict[str, Any]:
    model = str(folder / "model")
    train = ["train", "train.tsv.gz", "-o", model, "--overwrite", "--vocab", "gnd.csv", "--jobs", "1", *options.split()]
    judge = ["evaluate", model, "dev.tsv.gz", "--metrics", "annif", "--jobs", "1", "--json"]
    costs = {verb[0]: _run(folder, ROOT / ".venv" / "bin" / "tailwise", verb) for verb in (train, judge)}
    log = (folder / f"evaluate-{Path(model).name}.log").read_text()
    found = json.loads(log[log.index("{") :])["metrics"]
    return costs | {"metrics": {name: found[name]["value"] for name in _SHOWN}}


def _annif(folder: Path, *arguments: str) -> dict[str, float]:
    return _run(folder, _ANNIF, list(arguments))


def _run(folder: Path, program: Path, arguments: list[str]) -> dict[str, float]:
    one_thread = {f"{kind}_NUM_THREADS": "1" for kind in ("OMP", "OPENBLAS", "MKL", "RAYON")}
    where = {"NLTK_DATA": str(folder / "nltk_data"), "ANNIF_DATADIR": str(folder / "data")}
    start = time.perf_counter()
    with (folder / f"{arguments[0]}-{Path(arguments[1]).name}.log").open("w") as log:
        process = subprocess.Popen(
            [program, *arguments], cwd=folder, env=os.environ | one_thread | where, stdout=log, stderr=log
        )
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{program.name} {' '.join(arguments)} failed:\n{Path(log.name).read_text()[-2000:]}")
    wall = time.perf_counter() - start
    return {"cpu": usage.ru_utime + usage.ru_stime, "wall": wall, "peak_mb": usage.ru_maxrss / 1024}


def _print(language: str, name: str, figures: dict[str, Any]) -> None:
    metrics = "  ".join(f"{metric} {value:.4f}" for metric, value in figures["metrics"].items())
    costs = "  ".join(
        f"{step} {cost['cpu']:.0f} CPU-s {cost['peak_mb']:.0f} MB"
        for step, cost in figures.items()
        if step != "metrics"
    )
    print(f"{language} {name:24} {metrics}  {costs}", flush=True)
