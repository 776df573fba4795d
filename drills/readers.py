"""Do the readers take what a format allows, refuse everything else with its line, and never do anything else?

Each try changes a valid file: bits flip, pieces are cut, repeated, or taken from other places and from a list of nasty
ones. The reader and a plain twin of it then read the file. Both read the same, or both refuse: all else is broken.
"""

from __future__ import annotations

import gzip
import io
import logging
import lzma
import random
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from tests.naive import data as naive

from drills.harness import Outcome
from tailwise import Vocabulary
from tailwise.data import (
    read_arff,
    read_libsvm,
    read_mulan_labels,
    read_names,
    read_records,
    read_split,
    read_xmc,
)
from tailwise.errors import DataFormatError

COUNT = 20_000
MODEST = 1_000

_SLOW_SECONDS = 10.0
_WHOLE = (
    "no row",
    "damaged",
    "no <label>",
    "more bytes",
    "the columns",
    "no concept",
    "no skos",
    "resources nested",
)  # of a file
_ROWS = b"0,2 0:1 3:-0.5\n 1:1e-3\n1\n\n2 2:.25 4:7.\n"
_HEADER = b"# tailwise libsvm: 5 rows, 5 features from 1, 3 labels from 0\n"
_ARFF = b"""% note
@relation 'a b'
@attribute word {0,1}
@attribute 'it\\'s' {0,1}
@attribute size numeric
@attribute law {0,1}
@attribute colour {red, 'x,y', "q"}
@data
{0 1,3 1}
{}
{ 2 -1.5 , 1 1,4 'x,y'}
% end
{0 0,2 2.5e3, 3 0}
"""
_XML = b"""<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="law"><label name="it's"/></label>
<label name="\xc3\xa9"></label></labels>
"""
_JSONL = (
    b'{"text": "a\\u00e9\\n", "labels": ["x", 3]}\n{"text": null, "labels": "a; b"}\n{"labels": null, "text": "c"}\n'
)
_CSV = b'text,labels\n"a ""b"", c",x;y\nplain,\n"two\nlines",z\n'
_ANNIF = 'deep sea\t<u:1> u:2\n\tu:3\na "b"\t\né\t<u:1>\n'.encode()
_VOCABULARY = "<u:1>\tsea\t1.2\nu:2\té \nu:3\n".encode()
_TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix e: <http://e.org/> .
e:1 a skos:Concept ; skos:prefLabel "sea"@en , "Meer"@de ; skos:altLabel "ocean"@en .
<http://e.org/2> a skos:Concept ; skos:prefLabel "é" ; skos:broader e:1 ; skos:notation "2" .
""".encode()
NASTY = (
    *(bytes([byte]) for byte in b"\n\r\0\x1b\x85\xff\"'\\,;: \t#%{}[]-+.e0_"),
    *(b"\r\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xd9\xa1", b"\\ud800"),
    *(b"1_0", b"nan", b"inf", b"1e39", b"1e-50", b"2147483647", b"4294967296", b"9" * 30, b"9" * 5000, b"[" * 1200),
    *(b"<!DOCTYPE a>", b"&amp;", b"<label name='b'/>"),
)


class Reader(NamedTuple):
    """A reader, its twin, and a file that both take."""

    name: str
    seed: bytes
    suffix: str
    read: Callable[[Path], Any]
    twin: Callable[[bytes], Any]


def drill(count: int, folder: Path) -> Iterator[Outcome]:
    """Each reader with ``count`` changed files."""
    warnings.filterwarnings("ignore", ".*features are taken to count from 1")
    for reader in readers():
        outcome = Outcome(reader.name)
        for number in range(count):
            chance = random.Random(f"{reader.name} {number}")
            path = folder / f"file{reader.suffix}"
            path.write_bytes(_changed(reader.seed, chance) if number else reader.seed)
            outcome.count(*judge(reader, path))
        yield outcome


def judge(reader: Reader, path: Path) -> tuple[str, str]:
    """How reading the file ended, as :class:`drills.harness.Outcome` counts it, and why."""
    started = time.monotonic()
    refusal: DataFormatError | None = None
    found = expected = None
    try:
        found = reader.read(path)
    except DataFormatError as error:
        refusal = error
    except Exception as error:
        return "broken", f"{path.read_bytes()[:80]!r}: {error!r}"
    if time.monotonic() - started > _SLOW_SECONDS:
        return "broken", f"{path.read_bytes()[:80]!r}: slow"
    try:
        expected = reader.twin(path.read_bytes())
        readable = True
    except (ValueError, *_DAMAGED):
        readable = False
    if readable and refusal is not None:
        return "broken", f"refused what can be read: {refusal}"
    if not readable and refusal is None:
        return "broken", f"read what cannot be: {path.read_bytes()[:200]!r}"
    if refusal is not None:
        without_line = refusal.line is None and not refusal.found.startswith(_WHOLE)
        return ("broken", f"no line: {refusal}") if without_line else ("refused", "")
    return ("intact", "") if _same(found, expected) else ("broken", f"read otherwise: {path.read_bytes()[:200]!r}")


def _changed(data: bytes, chance: random.Random) -> bytes:
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        a, b = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
        b = min(b, a + chance.choice((1, 3, 10, 1000)))
        match chance.randrange(5):
            case 0 if data:
                at = chance.randrange(len(data))
                data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
            case 1:
                data = data[:a] + data[b:]
            case 2:
                data = data[:b] + data[a:b] * chance.choice((1, 2, 50)) + data[b:]
            case 3:
                at = chance.randrange(len(data) + 1)
                data = data[:at] + data[a:b] + data[at:]
            case _:
                data = data[:a] + chance.choice(NASTY) + data[a if chance.random() < 0.5 else b :]
    return data


def readers() -> list[Reader]:
    """All readers of files."""
    base_zero = partial(read_libsvm, label_base=0)
    xmc = b"5 5 3\n" + _ROWS
    headed = _HEADER + _ROWS.replace(b" 0:", b" 5:")
    table = pa.table({"text": ["a", "é", None], "other": [1, 2, 3], "labels": [["x", "y"], [], None]})
    records = io.BytesIO()
    parquet.write_table(table, records)
    return [
        Reader("xmc", xmc, ".txt", read_xmc, naive.parse_xmc),
        Reader("xmc.gz", gzip.compress(xmc, mtime=0), ".txt.gz", read_xmc, _unpacked(gzip.open)),
        Reader("xmc.xz", lzma.compress(xmc), ".txt.xz", read_xmc, _unpacked(lzma.open)),
        Reader(
            "libsvm", _ROWS, ".svm", partial(base_zero, feature_base=0), partial(naive.parse_libsvm, feature_base=0)
        ),
        Reader("libsvm with header", headed, ".svm", base_zero, naive.parse_libsvm),
        Reader("arff", _ARFF, ".arff", partial(read_arff, labels=["law", "it's"]), _arff_twin),
        Reader("mulan xml", _XML, ".xml", read_mulan_labels, naive.parse_xml),
        Reader("jsonl", _JSONL, ".jsonl", partial(_records, format="jsonl"), naive.parse_jsonl),
        Reader("csv", _CSV, ".csv", partial(_records, format="csv"), partial(naive.parse_delimited, delimiter=",")),
        Reader(
            "tsv",
            _CSV.replace(b",", b"\t"),
            ".tsv",
            partial(_records, format="tsv"),
            partial(naive.parse_delimited, delimiter="\t"),
        ),
        Reader("parquet", records.getvalue(), ".parquet", partial(_records, format="parquet"), _parquet_twin),
        Reader("annif", _ANNIF, ".tsv", _annif, naive.parse_annif),
        Reader("vocabulary tsv", _VOCABULARY, ".tsv", _vocabulary, naive.parse_vocabulary_tsv),
        Reader("skos", _TURTLE, ".ttl", _skos, _skos_twin),
        Reader("names", "law\né\n\nsea\r\n".encode(), ".txt", read_names, naive.parse_names),
        Reader(
            "split", b"1 2\n3 1\n2 3\n", ".txt", partial(read_split, n_rows=5), partial(naive.parse_split, n_rows=5)
        ),
    ]


def _records(path: Path, format: str) -> list[tuple[str, list[str]]]:
    delimiter = {"csv": ",", "tsv": "\t"}.get(format)
    # Nothing is left to be found out: the twins know one way to read.
    said = {"label_separator": ";", "duplicates": "refuse", "encoding": "utf-8", "quoting": "minimal"}
    texts, labels = read_records(path, format, text_columns="text", label_column="labels", delimiter=delimiter, **said)
    return list(zip(texts, labels or [], strict=True))


def _annif(path: Path) -> list[tuple[str, list[str]]]:
    texts, labels = read_records(path, "annif", duplicates="refuse", encoding="utf-8")
    return list(zip(texts, labels or [], strict=True))


def _vocabulary(path: Path) -> list[tuple[str, str, str]]:
    vocab = Vocabulary.read(path)
    named = {vocab.ids[place]: text for place, text in zip(vocab.terms.concept, vocab.terms.text, strict=True)}
    return [(label, named.get(label, ""), note) for label, note in zip(vocab.ids, vocab.notations, strict=True)]


def _skos(path: Path) -> Any:
    vocab = Vocabulary.read(path)
    names = {(label, *name[:2]) for label in vocab.ids for name in vocab.names(label)}
    steps = {(vocab.ids[child], vocab.ids[parent]) for child, parent in vocab.broader.tolist()}
    return names, steps, set(vocab.ids)


def _skos_twin(data: bytes) -> Any:
    """What a whole graph says, asked fact by fact."""
    import rdflib
    from rdflib.namespace import RDF, RDFS, SKOS

    logging.getLogger("rdflib").setLevel(logging.CRITICAL)
    text = data.decode().removeprefix("\ufeff")
    try:
        graph = rdflib.Graph().parse(data=text, format="turtle")
    except RecursionError as error:
        raise ValueError from error
    except Exception as error:
        raise ValueError(str(error)) from error
    concepts = {str(one) for one in graph.subjects(RDF.type, SKOS.Concept)}
    if not concepts:
        raise ValueError("no concept")
    names = {
        (str(one), str(name).strip(), (name.language or "").lower())
        for kind in (SKOS.prefLabel, SKOS.altLabel, SKOS.hiddenLabel, RDFS.label)
        for one, name in graph.subject_objects(kind)
        if isinstance(name, rdflib.Literal) and str(one) in concepts and str(name).strip()
    }
    steps = {(str(a), str(b)) for a, b in graph.subject_objects(SKOS.broader)}
    steps |= {(str(b), str(a)) for a, b in graph.subject_objects(SKOS.narrower)}
    return names, {(a, b) for a, b in steps if {a, b} <= concepts and a != b}, concepts


def _unpacked(opener: Callable[..., Any]) -> Callable[[bytes], Any]:
    return lambda data: naive.parse_xmc(opener(io.BytesIO(data)).read())


def _arff_twin(data: bytes) -> Any:
    labels = ["law", "it's"]
    rows, features = naive.parse_arff(data, labels)
    return rows, len(features), len(labels)


def _parquet_twin(data: bytes) -> Any:
    with parquet.ParquetFile(io.BytesIO(data)) as file:
        names = file.schema_arrow.names
        rows = file.read(["text", "labels"]).to_pylist()
    if not rows or len(set(names)) < len(names):
        raise ValueError("no row, or columns of the same name")
    return [naive._record(row) for row in rows]


_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException, ArithmeticError)


def _same(found: Any, expected: Any) -> bool:
    if isinstance(found, np.ndarray):
        return found.tolist() == expected
    if not (isinstance(found, tuple) and hasattr(found[0], "indptr")):
        return bool(found == expected)
    X, Y = found[:2]
    rows, n_features, n_labels = expected
    if X.shape != (len(rows), n_features) or Y.shape != (len(rows), n_labels):
        return False
    for row, (features, labels) in enumerate(rows):
        a, b = X.indptr[row], X.indptr[row + 1]
        values = X.data[a:b]
        wanted = np.array([features[i] for i in sorted(features)], np.float32)
        # Numbers of more digits than float64 holds may round to a neighbour.
        if (
            X.indices[a:b].tolist() != sorted(features)
            or not ((values == wanted) | (values == np.nextafter(wanted, values))).all()
        ):
            return False
        if Y.indices[Y.indptr[row] : Y.indptr[row + 1]].tolist() != labels:
            return False
    return True
