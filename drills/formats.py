"""Every format that is read: a file that is right, the reader, and a plain twin that is the judge.

``tests/foundation/test_drills.py`` fails for a format of data or of vocabularies that is missing here.
"""

from __future__ import annotations

import gzip
import io
import logging
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy import sparse
from tests.naive import data as naive

from tailwise import Vocabulary
from tailwise.data import read_arff, read_libsvm, read_mulan_labels, read_names, read_records, read_split, read_xmc
from tailwise.data.pairs import read_matrix
from tailwise.data.predictions import read_predictions
from tailwise.data.vectors import read_vectors
from tailwise.text import read_word_vectors
from tailwise.vocabulary.skos import BASE

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
_NTRIPLES = b"".join(
    b"<http://e.org/%s> <%s> %s .\n" % (subject, predicate, value)
    for subject, predicate, value in (
        (b"1", b"http://www.w3.org/1999/02/22-rdf-syntax-ns#type", b"<http://www.w3.org/2004/02/skos/core#Concept>"),
        (b"1", b"http://www.w3.org/2004/02/skos/core#prefLabel", b'"sea \\u00e9"@en'),
        (b"2", b"http://www.w3.org/1999/02/22-rdf-syntax-ns#type", b"<http://www.w3.org/2004/02/skos/core#Concept>"),
        (b"2", b"http://www.w3.org/2004/02/skos/core#broader", b"<http://e.org/1>"),
    )
)
_RDF_XML = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:s="http://www.w3.org/2004/02/skos/core#">
<s:Concept rdf:about="http://e.org/1"><s:prefLabel xml:lang="en">sea</s:prefLabel></s:Concept>
<s:Concept rdf:about="http://e.org/2"><s:altLabel>é</s:altLabel><s:broader rdf:resource="http://e.org/1"/></s:Concept>
</rdf:RDF>
""".encode()
_JSONLD = """{"@context": {"s": "http://www.w3.org/2004/02/skos/core#"}, "@graph": [
{"@id": "http://e.org/1", "@type": "s:Concept", "s:prefLabel": {"@value": "sea", "@language": "en"}},
{"@id": "http://e.org/2", "@type": "s:Concept", "s:altLabel": "é", "s:broader": {"@id": "http://e.org/1"}}]}
""".encode()
_VOCABULARY_CSV = 'uri,label_en,label_de,notation\n<u:1>,"sea, deep",Meer,1.2\nu:2,,é,\nu:3,,,\n'.encode()
_VOCABULARY_JSON = '{"u:1": "sea", "u:2": "é\\u00e9"}\n'.encode()
_DOCUMENT = b'{"text": "deep sea", "subjects": [{"uri": "<u:1>"}, {"label": "sea"}]}\n'
_KEYS = b"<u:1>\tsea\nlaw\n\n<u:2>\n"
_WORDS = "3 2\nsea 1 -.5\né 1e-3 2.\nlaw 3 4\n".encode()
_PREDICTED = b"3 0.5\t1 0.25\n\nlabel 1e-3\n"
_PREDICTED_JSON = b'{"labels": ["a", "b"], "scores": [0.9, 0.1]}\n{"labels": [], "scores": []}\n{"labels": ["c"]}\n'
_SHEET = """<?xml version="1.0"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>
<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c><c r="B1" t="inlineStr"><is><t>labels</t></is></c></row>
<row r="2"><c r="A2" t="inlineStr"><is><t>deep é</t></is></c><c r="B2" t="inlineStr"><is><t>a;b</t></is></c></row>
<row r="3"><c r="A3"><v>12</v></c><c r="B3" t="b"><v>1</v></c></row></sheetData></worksheet>
""".encode()


def _whole(data: bytes) -> bytes:
    return data


class Reader(NamedTuple):
    """A reader, its twin, and a file that both take.

    What is changed may be a part of the file: ``packed`` puts the rest around it. A reader that is ``stricter`` may
    refuse what the twin takes, never read it otherwise: the reason stands beside it. Where there is no twin, because
    the format is another program's and its rules are long, ``sound`` says whether what was read can be. A file of
    ``one_record`` is refused as a whole, without a line: it is one JSON object, or the labels of one document.
    """

    name: str
    seed: bytes
    suffix: str
    read: Callable[[Path], Any]
    twin: Callable[[bytes], Any] | None
    packed: Callable[[bytes], bytes] = _whole
    stricter: bool = False
    sound: Callable[[Any], bool] = bool
    one_record: bool = False


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
        Reader("matrix", b"3 5\n0:1 3:-0.5\n\n4:7.\n", ".txt", _without_labels, naive.parse_matrix),
        # Stricter: headers of numpy's version 3, which no matrix has, are refused.
        Reader("npz", _plain_array(_MATRIX.indices), ".npz", _without_labels, _npz_twin, _npz, stricter=True),
        Reader("vectors", _plain_array(np.eye(3, 2)), ".npy", lambda path: read_vectors(path, 3).tolist(), _npy_twin),
        Reader("word vectors", _WORDS, ".vec", _word_vectors, partial(naive.parse_word_vectors, words=_KNOWN_WORDS)),
        Reader(
            "documents", _DOCUMENT, ".json", partial(_documents, name="a.json"), naive.parse_document, one_record=True
        ),
        Reader("document keys", _KEYS, ".key", partial(_documents, name="a.key"), naive.parse_keys, one_record=True),
        Reader("xlsx", _SHEET, ".xlsx", partial(_records, format="xlsx"), None, _workbook(), sound=_are_records),
        # Stricter: the reader finds out the delimiter, and a header with more ; than commas is not one of commas.
        Reader("vocabulary csv", _VOCABULARY_CSV, ".csv", _vocabulary_names, naive.parse_vocabulary_csv, stricter=True),
        Reader(
            "vocabulary json",
            _VOCABULARY_JSON,
            ".json",
            _vocabulary_names,
            naive.parse_vocabulary_json,
            one_record=True,
        ),
        Reader("skos ntriples", _NTRIPLES, ".nt", _skos, _ntriples_twin),
        # Stricter: what would be fetched, entities that multiply, and halves of characters are refused unread.
        Reader("skos xml", _RDF_XML, ".rdf", _skos, partial(_skos_twin, format="xml"), stricter=True),
        Reader("skos json-ld", _JSONLD, ".jsonld", _skos, partial(_skos_twin, format="json-ld"), stricter=True),
        Reader("predictions", _PREDICTED, ".txt", _predictions, None, sound=_is_top),
        Reader("predictions jsonl", _PREDICTED_JSON, ".jsonl", _predictions, None, sound=_is_top),
    ]


def _records(path: Path, format: str) -> list[tuple[str, list[str]]]:
    delimiter = {"csv": ",", "tsv": "\t"}.get(format)
    # Nothing is left to be found out: the twins know one way to read.
    said = {"label_separator": ";", "duplicates": "refuse", "encoding": "utf-8", "quoting": "minimal"}
    texts, labels = read_records(path, format, text_columns="text", label_column="labels", delimiter=delimiter, **said)
    return list(zip(texts, labels or [], strict=True))


_MATRIX = sparse.csr_array(np.array([[1, 0, 2], [0, 0, 0], [0, -0.5, 0]], np.float32))
_KNOWN_WORDS = ("sea", "é", "nowhere")


def _plain_array(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def _npz(indices: bytes) -> bytes:
    """A matrix as scipy saves it, with these indices."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        others = {"indptr": _MATRIX.indptr, "data": _MATRIX.data, "shape": [3, 3], "format": b"csr", "_is_array": True}
        for name, value in others.items():
            packed.writestr(f"{name}.npy", _plain_array(np.asarray(value)))
        packed.writestr("indices.npy", indices)
    return file.getvalue()


def _npz_twin(data: bytes) -> Any:
    with zipfile.ZipFile(io.BytesIO(data)) as packed, packed.open("indices.npy") as file:
        indices = _array(file)
    naive._require(indices.shape == (3,) and indices.dtype.kind in "iu", indices.dtype)
    naive._require(indices.min() >= 0 and indices.max() < 3, indices)
    rows: list[Any] = [({}, []) for _ in range(3)]
    for row, place, value in ((0, 0, 1), (0, 1, 2), (2, 2, -0.5)):
        entries = rows[row][0]
        entries[int(indices[place])] = entries.get(int(indices[place]), 0) + np.float32(value)
    return rows, 3, 0


def _array(file: Any) -> Any:
    try:
        return np.lib.format.read_array(file, allow_pickle=False)
    except Exception as error:
        raise ValueError(str(error)) from error


def _npy_twin(data: bytes) -> Any:
    file = io.BytesIO(data)
    found = _array(file)
    naive._require(found.ndim == 2 and found.dtype.kind in "fiu" and len(found) == 3 and found.shape[1], "shape")
    naive._require(np.isfinite(found).all(), "not finite")
    return found.tolist()


def _without_labels(path: Path) -> Any:
    matrix = read_matrix(path)
    return matrix, sparse.csr_array((matrix.shape[0], 0), dtype=np.float32)


def _word_vectors(path: Path) -> Any:
    return read_word_vectors(path, _KNOWN_WORDS).tolist()


def _documents(path: Path, name: str) -> Any:
    folder = path.parent / "documents"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    (folder / name).write_bytes(path.read_bytes())
    if name.endswith(".key"):
        (folder / name).with_suffix(".txt").write_text("deep sea")
    texts, labels = read_records(folder, "documents", duplicates="refuse", encoding="utf-8")
    return list(zip(texts, labels or [], strict=True))


def _workbook() -> Callable[[bytes], bytes]:
    """What puts a sheet into a workbook."""
    import openpyxl

    file = io.BytesIO()
    openpyxl.Workbook().save(file)
    with zipfile.ZipFile(file) as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}

    def with_sheet(sheet: bytes) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w") as packed:
            for name, content in parts.items():
                packed.writestr(name, sheet if name == "xl/worksheets/sheet1.xml" else content)
        return made.getvalue()

    return with_sheet


def _are_records(found: Any) -> bool:
    return all(isinstance(text, str) and all(isinstance(label, str) for label in labels) for text, labels in found)


def _vocabulary_names(path: Path) -> Any:
    vocab = Vocabulary.read(path)
    return {label: {(name, language) for name, language, _ in vocab.names(label)} for label in vocab.ids}


def _predictions(path: Path) -> Any:
    return read_predictions(path, 3, 2)


def _is_top(found: Any) -> bool:
    labels, scores = found.topk
    there = labels >= 0
    return bool(
        labels.shape == scores.shape == (3, 2)
        and labels.max(initial=-1) < len(found.label_ids)
        and not np.isnan(scores[there]).any()
        and (scores[:, 1:] <= scores[:, :-1]).all()
    )


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


def _skos_twin(data: bytes, format: str = "turtle") -> Any:
    """What rdflib's own graph says."""
    import rdflib

    logging.getLogger("rdflib").setLevel(logging.CRITICAL)
    text = naive.text_of(data)
    if format == "xml":
        # What it declares is not looked at: the text is decoded already.
        text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text)
    try:
        return _said_in(rdflib.Graph().parse(data=text, format=format, publicID=BASE))
    except RecursionError as error:
        raise ValueError from error
    except Exception as error:
        raise ValueError(str(error)) from error


def _ntriples_twin(data: bytes) -> Any:
    import rdflib

    graph = rdflib.Graph()
    for triple in naive.parse_ntriples(data):
        makes = {"iri": rdflib.URIRef, "blank": rdflib.BNode, "text": lambda text: rdflib.Literal(text)}
        terms = [makes[kind](text) if not tag else rdflib.Literal(text, lang=tag) for kind, text, tag in triple]
        graph.add(tuple(terms))
    return _said_in(graph)


def _said_in(graph: Any) -> Any:
    """What a whole graph says, asked fact by fact."""
    import rdflib
    from rdflib.namespace import RDF, RDFS, SKOS

    concepts = {str(one) for one in graph.subjects(RDF.type, SKOS.Concept)}
    if not concepts or any(isinstance(one, rdflib.BNode) for one in graph.subjects(RDF.type, SKOS.Concept)):
        raise ValueError("no concept, or one without a URI")
    names = {
        (str(one), str(name).strip(), (name.language or "").lower())
        for kind in (SKOS.prefLabel, SKOS.altLabel, SKOS.hiddenLabel, RDFS.label)
        for one, name in graph.subject_objects(kind)
        if isinstance(name, rdflib.Literal) and str(one) in concepts and str(name).strip()
    }
    "".join([*concepts, *(text for name in names for text in name)]).encode()
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
        rows = file.read([name for name in names if name.strip().casefold() in ("text", "labels")]).to_pylist()
    if not rows or len(set(names)) < len(names):
        raise ValueError("no row, or columns of the same name")
    return naive.records(rows)


DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException, ArithmeticError)


def same(found: Any, expected: Any) -> bool:
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
