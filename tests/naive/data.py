"""Plain twins of the readers and writers: split, int, float, and Python lists."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
from scipy import sparse


def read_rows(text, n_features, n_labels):
    """Rows of the form ``l1,l2 f:v f:v`` as dense X and Y."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    X = np.zeros((len(lines), n_features), np.float32)
    Y = np.zeros((len(lines), n_labels), np.float32)
    for row, line in enumerate(lines):
        labels, _, features = line.rstrip("\r").partition(" ")
        for label in labels.split(",") if labels else []:
            Y[row, int(label)] = 1
        for pair in features.split():
            index, value = pair.split(":")
            X[row, int(index)] = np.float32(float(value))
    return X, Y


def write_rows(X, Y, base=0):
    """The text of sparse rows, each value in the shortest form that Python knows for its float32."""
    lines = []
    X, Y = sparse.csr_array(X), sparse.csr_array(Y)
    for row in range(X.shape[0]):
        labels = ",".join(str(label) for label in Y.indices[Y.indptr[row] : Y.indptr[row + 1]])
        a, b = X.indptr[row], X.indptr[row + 1]
        pairs = [f"{i + base}:{v!s}" for i, v in zip(X.indices[a:b], X.data[a:b], strict=True)]
        lines.append(" ".join([labels, *pairs]) or " ")
    return "".join(f"{line}\n" for line in lines)


def observed_counts(complete, n_rows, a, b):
    """n that solves n = n* p(n) for Jain's curve, one label at a time, by repeated substitution."""
    c = (np.log(n_rows) - 1) * (b + 1) ** a
    found = []
    for n_star in complete:
        n = float(n_star)
        for _ in range(2000):
            n = 0.5 * n + 0.5 * n_star / (1 + c * (n + b) ** -a)
        found.append(n)
    return np.array(found)


# Readers of bytes, for drills: what a format allows, character by character or with Python's own parsers. Each raises
# ValueError for a file that is malformed. Rows are pairs of a dict from index to value and a sorted list of labels.

_PAIR = rb"([0-9]+):([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_LARGEST_INDEX = 2**31 - 1
_MOST_COLUMNS = 2_000_000_000 // 8


def _require(condition, *what):
    if not condition:
        raise ValueError(*what)


def _byte_lines(data):
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


def parse_row(line, n_features, n_labels, comments=False):
    """One line of the repository's format or of libsvm's."""
    line = line.removesuffix(b"\r")
    if comments:
        line = re.sub(rb"(^|[ \t])#.*$", b"", line, flags=re.S)
    tokens = re.split(rb"[ \t]+", line)
    first = tokens.pop(0)
    labels = []
    if b":" in first:
        tokens.insert(0, first)
    elif first:
        labels = [int(label) for label in first.split(b",") if _require(re.fullmatch(rb"[0-9]+", label), line) is None]
    features = {}
    for token in tokens:
        if not token:
            continue
        match = re.fullmatch(_PAIR, token)
        _require(match, token)
        index, value = int(match.group(1)), float(match.group(2))
        _require(index not in features and index < n_features, index)
        with np.errstate(over="ignore"):
            features[index] = np.float32(value)
        _require(np.isfinite(features[index]), value)
    _require(len(set(labels)) == len(labels) and all(label < n_labels for label in labels), labels)
    return features, sorted(labels)


def _announced(rows, n_rows):
    while len(rows) > n_rows and rows[-1] == ({}, []):
        rows.pop()
    _require(len(rows) == n_rows, n_rows)
    return rows


def parse_xmc(data):
    """(rows, n_features, n_labels) of the repository's format."""
    lines = _byte_lines(data)
    _require(lines, "empty")
    fields = lines[0].split()
    _require(len(fields) == 3 and all(field.isdigit() and len(field) <= 100 for field in fields), fields)
    n_rows, n_features, n_labels = map(int, fields)
    _require(n_rows <= _LARGEST_INDEX and 0 < n_features <= _MOST_COLUMNS and 0 < n_labels <= _MOST_COLUMNS, fields)
    return _announced([parse_row(line, n_features, n_labels) for line in lines[1:]], n_rows), n_features, n_labels


def parse_libsvm(data, feature_base=None):
    """(rows, n_features, n_labels) of libsvm; labels count from 0, features from where the file or the caller says."""
    lines = _byte_lines(data)
    if lines and lines[0].startswith(b"# tailwise libsvm"):
        header = (
            rb"# tailwise libsvm: (\d{1,10}) rows, (\d{1,10}) features from ([01]), (\d{1,10}) labels from ([01])\s*"
        )
        match = re.fullmatch(header, lines[0])
        _require(match, lines[0])
        n_rows, n_features, base, n_labels, label_base = map(int, match.groups())
        _require(n_rows < _LARGEST_INDEX and 0 < n_features <= _MOST_COLUMNS and 0 < n_labels <= _MOST_COLUMNS)
        found = [parse_row(line, n_features + base, n_labels + label_base) for line in lines[1:]]
        found = _announced(found, n_rows)
        _require(all(min(row, default=base) >= base for row, _ in found))
        _require(all(min(labels, default=label_base) >= label_base for _, labels in found))
        _require(label_base == 0, "labels are asked for from 0")
        return [({i - base: v for i, v in row.items()}, labels) for row, labels in found], n_features, n_labels
    found = [parse_row(line, _MOST_COLUMNS, _MOST_COLUMNS, comments=True) for line in lines]
    found = [row for row in found if row != ({}, [])]
    _require(found, "no row")
    indices = [index for row, _ in found for index in row]
    base = feature_base if feature_base is not None else int(min(indices, default=0) > 0)
    n_labels = max((label for _, labels in found for label in labels), default=0) + 1
    found = [({index - base: value for index, value in row.items()}, labels) for row, labels in found]
    return found, max(max(indices, default=0) + 1 - base, 1), n_labels


def _arff_tokens(text, stops):
    """Words and quoted words of ``text`` with the characters of ``stops`` as words of their own."""
    tokens, at = [], 0
    while at < len(text):
        if text[at] in " \t\r\f\v":
            at += 1
        elif text[at] in stops:
            tokens.append(("stop", text[at]))
            at += 1
        elif text[at] in "'\"":
            quote, word, at = text[at], "", at + 1
            while at < len(text) and text[at] != quote:
                at += text[at] == "\\"
                _require(at < len(text), "a quote that does not close")
                word += text[at]
                at += 1
            _require(at < len(text), "a quote that does not close")
            tokens.append(("quoted", word))
            at += 1
            _require(at == len(text) or text[at] in " \t\r\f\v" + stops, "text behind a quote")
        else:
            word = ""
            while at < len(text) and text[at] not in " \t\r\f\v" + stops:
                _require(text[at] not in "'\"", "a quote inside a word")
                word += text[at]
                at += 1
            tokens.append(("bare", word))
    return tokens


def _between_commas(tokens):
    groups = [[]]
    for kind, word in tokens:
        if (kind, word) == ("stop", ","):
            groups.append([])
        else:
            groups[-1].append((kind, word))
    return groups


def parse_arff(data, labels):
    """(rows, feature names) of sparse ARFF."""
    space = " \t\r\f\v"
    lines = [line.removesuffix("\r").strip(space) for line in data.decode("utf-8-sig").split("\n")]
    attributes, start = [], None
    for number, line in enumerate(lines):
        word = line.split(" ")[0].split("\t")[0].split("\f")[0].split("\v")[0].split("\r")[0].lower()
        if word == "@data":
            start = number + 1
            break
        if not line or line.startswith("%") or word == "@relation":
            continue
        _require(line[:10].lower() == "@attribute" and line[10:11] in tuple(space), line)
        rest = line[10:].lstrip(space)
        if rest[:1] in ("'", '"'):
            end = 1
            while end < len(rest) and rest[end] != rest[0]:
                end += 2 if rest[end] == "\\" else 1
            _require(end < len(rest), "a quote that does not close")
            name = re.sub(r"\\(.)", r"\1", rest[1:end], flags=re.S)
            kind = rest[end + 1 :].strip(space)
        else:
            _require(not rest.startswith("{"), line)
            name = re.split(f"[{space}]", rest)[0]
            kind = rest[len(name) :].strip(space)
        _require(name and kind and name not in [known for known, _ in attributes], line)
        if kind.lower() in ("numeric", "real", "integer"):
            values = None
        else:
            _require(len(kind) > 1 and kind[0] == "{" and kind[-1] == "}", kind)
            groups = _between_commas(_arff_tokens(kind[1:-1], ","))
            _require(all(len(group) == 1 for group in groups), kind)
            values = [group[0][1] for group in groups]
            _require(len(set(values)) == len(values), kind)
            values = ["0", "1"] if set(values) == {"0", "1"} else values
        attributes.append((name, values))
    _require(start is not None, "no @data")
    names = [name for name, _ in attributes]
    _require(all(label in names for label in labels), "a label without attribute")
    features = [name for name in names if name not in labels]
    rows = []
    for line in lines[start:]:
        if not line or line.startswith("%"):
            continue
        _require(len(line) > 1 and line[0] == "{" and line[-1] == "}", line)
        row, found, seen = {}, [], set()
        for group in _between_commas(_arff_tokens(line[1:-1], ",")) if line[1:-1].strip(space) else []:
            _require(len(group) == 2 and group[0][0] == "bare" and re.fullmatch("[0-9]+", group[0][1]), line)
            index, value = int(group[0][1]), group[1][1]
            _require(index < len(attributes) and index not in seen, index)
            seen.add(index)
            name, values = attributes[index]
            if values is not None:
                _require(value in values, value)
                amount = float(values.index(value))
            else:
                _require(re.fullmatch(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", value), value)
                amount = float(value)
                _require(abs(amount) <= np.finfo(np.float32).max, value)
            if name in labels:
                _require(amount in (0.0, 1.0), value)
                found += [labels.index(name)] if amount else []
            elif amount:
                row[features.index(name)] = np.float32(amount)
        rows.append((row, sorted(found)))
    return rows, features


class _WithoutDoctype(ElementTree.TreeBuilder):
    def doctype(self, name, public, system):
        raise ValueError("DOCTYPE")


def parse_xml(data):
    """The label names of Mulan's xml, from the tree that Python builds."""
    try:
        root = ElementTree.fromstring(data, ElementTree.XMLParser(target=_WithoutDoctype()))
    except (ElementTree.ParseError, LookupError) as error:
        raise ValueError(error) from error
    names = [element.get("name") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
    _require(names and None not in names and len(set(names)) == len(names), names)
    return names


def _labels(value):
    if value is None:
        return []
    if isinstance(value, str):
        value = [piece.strip() for piece in value.split(";") if piece.strip()]
    _require(isinstance(value, list), value)
    labels = []
    for label in value:
        _require(isinstance(label, str | int) and not isinstance(label, bool) and label != "", label)
        labels.append(str(label))
    _require(len(set(labels)) == len(labels), labels)
    return labels


def _record(row):
    _require(isinstance(row, dict) and "text" in row and "labels" in row, row)
    _require(row["text"] is None or isinstance(row["text"], str), row)
    return row["text"] or "", _labels(row["labels"])


def parse_jsonl(data):
    """(text, labels) of each line."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not lines[-1].strip():
        lines.pop()
    _require(lines, "no row")
    rows = []
    for line in lines:
        try:
            row = json.loads(line.decode())
            json.dumps(row, ensure_ascii=False).encode()
        except RecursionError as error:
            raise ValueError("too deep") from error
        _require(isinstance(row, dict), row)
        rows.append(row)
    return records(rows)


def records(rows):
    """(text, labels) of each row, a dict; the first one has the names of the columns."""
    columns = {_plain_name(list(rows[0]), name): name for name in rows[0]}
    _require({"text", "labels"} <= set(columns), columns)
    return [
        _record({plain: row[columns[plain]] for plain in ("text", "labels") if columns[plain] in row}) for row in rows
    ]


def parse_delimited(data, delimiter):
    """(text, labels) of each row of CSV or TSV."""
    names, *rows = delimited_rows(data, delimiter)
    return records([dict(zip(names, row, strict=True)) for row in rows])


def delimited_rows(data, delimiter):
    """The cells of CSV or TSV, read a character at a time: the names of the columns, then rows as long as those."""
    text = data.decode("utf-8-sig")
    rows, row, cell, quoted, at = [], [], "", False, 0
    fresh = True  # nothing of this row was seen
    while at < len(text):
        c = text[at]
        if quoted:
            if c == '"' and text[at + 1 : at + 2] == '"':
                cell, at = cell + '"', at + 1
            elif c == '"':
                quoted = False
                _require(text[at + 1 : at + 2] in ("", delimiter, "\n", "\r"), "text behind a quote")
            else:
                cell += c
        elif c == '"' and not cell and text[at - 1 : at] != '"':
            quoted, fresh = True, False
        elif c == delimiter:
            row, cell, fresh = [*row, cell], "", False
        elif c in "\r\n":
            at += text[at : at + 2] == "\r\n"
            rows.append([] if fresh else [*row, cell])
            row, cell, fresh = [], "", True
        else:
            cell, fresh = cell + c, False
        at += 1
    _require(not quoted, "a quote that does not close")
    if not fresh:
        rows.append([*row, cell])
    _require(len(rows) > 1 and rows[0] and len(set(rows[0])) == len(rows[0]), "no row")
    _require(all(len(row) == len(rows[0]) for row in rows), "rows of other lengths")
    return rows


def _plain_name(names, name):
    """A column in another case is found where none is spelled alike."""
    plain = name.strip().casefold()
    if plain not in ("text", "labels") or plain in names:
        return name
    _require(sum(other.strip().casefold() == plain for other in names) == 1, "two columns alike")
    return plain


def text_of(data):
    """A file as text: UTF-8, or UTF-16 where a mark says so; what looks like UTF-16 without one is refused."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16").removeprefix("\ufeff")
    _require(
        [place for place in range(min(8, len(data))) if not data[place]] not in ([0, 2, 4, 6], [1, 3, 5, 7]), "wide"
    )
    return data.decode().removeprefix("\ufeff")


def parse_names(data):
    """Names, one a line."""
    lines = text_of(data).split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    return [line.removesuffix("\r") for line in lines]


def parse_split(data, n_rows):
    """Row numbers from 0 of the first column of a split file."""
    rows = [line.split() for line in data.splitlines()]
    _require(all(len(row) == len(rows[0]) > 0 for row in rows), "columns")
    _require(all(row[0].isdigit() and len(row[0]) < 100 and 1 <= int(row[0]) <= n_rows for row in rows), "numbers")
    found = [int(row[0]) - 1 for row in rows]
    _require(len(set(found)) == len(found), "twice")
    return found


def parse_annif(data):
    """Lines ``text⇥uri uri …`` as (text, labels) pairs."""
    rows = []
    for line in data.decode().removeprefix("\ufeff").removesuffix("\n").split("\n"):
        text, tab, uris = line.removesuffix("\r").partition("\t")
        _require(tab, "no tab")
        labels = [uri[1:-1] if uri[0] + uri[-1] == "<>" and len(uri) > 1 else uri for uri in uris.split()]
        labels = [label for label in labels if label]
        _require(len(set(labels)) == len(labels), "a label twice")
        rows.append((text, labels))
    _require(data.decode().removeprefix("\ufeff"), "no row")
    return rows


def parse_vocabulary_tsv(data):
    """Lines ``uri⇥label[⇥notation]`` as (uri, label, notation) triples."""
    concepts = {}
    for line in text_of(data).split("\n"):
        if not line.strip():
            continue
        uri, *rest = (cell.strip() for cell in line.removesuffix("\r").split("\t"))
        _require(len(rest) <= 2, "columns")
        uri = uri[1:-1] if uri[:1] == "<" and uri[-1:] == ">" else uri
        _require(uri and uri not in concepts, "no uri, or one twice")
        concepts[uri] = [*rest, "", ""][:2]
    _require(concepts, "no concept")
    return [(uri, *cells) for uri, cells in concepts.items()]


def parse_matrix(data):
    """(rows, n_columns, 0) of the repository's matrices: rows of the other format without labels."""
    lines = _byte_lines(data)
    _require(lines, "empty")
    fields = lines[0].split()
    _require(len(fields) == 2 and all(field.isdigit() and len(field) <= 100 for field in fields), fields)
    n_rows, n_columns = map(int, fields)
    _require(n_rows <= _LARGEST_INDEX and n_columns <= _MOST_COLUMNS, fields)
    return _announced([parse_row(line, n_columns, 0) for line in lines[1:]], n_rows), n_columns, 0


def parse_word_vectors(data, words):
    """The vectors of ``words``; zeros for those that are missing."""
    found, lengths = {}, set()
    for number, line in enumerate(_byte_lines(data)):
        word, *values = line.rstrip().split(b" ")
        word = word.decode()
        if word not in words or (number == 0 and len(values) == 1):
            continue
        _require(
            values and all(re.fullmatch(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value) for value in values), line
        )
        with np.errstate(over="ignore"):
            found[word] = [float(np.float32(value)) for value in map(float, values)]
        _require(np.isfinite(found[word]).all(), line)
        lengths.add(len(values))
        _require(len(lengths) == 1, line)
    _require(found, "no word")
    zeros = [0.0] * len(next(iter(found.values())))
    return [found.get(word, zeros) for word in words]


def _subjects(labels):
    _require(len(set(labels)) == len(labels), labels)
    return [("deep sea", labels)]


def _without_brackets(uri):
    return uri[1:-1] if uri.startswith("<") and uri.endswith(">") else uri


def parse_keys(data):
    """(text, labels) of a document whose labels are these lines."""
    labels = []
    for line in data.decode().removeprefix("\ufeff").split("\n"):
        cells = [cell.strip() for cell in line.removesuffix("\r").split("\t") if cell.strip()]
        if cells:
            labels.append(_without_brackets(cells[0]) if re.fullmatch(r"<[^<>\s]+>", cells[0]) else cells[0])
    return _subjects(labels)


def parse_vocabulary_json(data):
    """Names by id, from an object, or from lines with a title each, whose ids are their numbers."""
    text = text_of(data)
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        _require(error.msg == "Extra data", error)
        lines = text.rstrip().removesuffix("\n").split("\n")
        titles = [json.loads(line) for line in lines]
        _require(all(isinstance(one, dict) and isinstance(one.get("title"), str) for one in titles), titles)
        found = {str(place): one["title"] for place, one in enumerate(titles)}
    except RecursionError as error:
        raise ValueError("too deep") from error
    json.dumps(found, ensure_ascii=False).encode()
    _require(isinstance(found, dict) and found and "" not in found, found)
    _require(all(isinstance(name, str) for name in found.values()), found)
    return {label: {(name.strip(), "")} if name.strip() else set() for label, name in found.items()}


def parse_vocabulary_csv(data):
    """Names by uri: (name, language) pairs of the columns ``label_xx``."""
    names, *rows = delimited_rows(text_of(data).encode(), ",")
    languages = [name for name in names if name.startswith("label_")]
    _require("uri" in names and languages, names)
    found = {}
    for row in rows:
        cells = dict(zip(names, row, strict=True))
        uri = _without_brackets(cells["uri"].strip())
        _require(uri and uri not in found, uri)
        called = {(cells[name].strip(), name.removeprefix("label_").strip().lower()) for name in languages}
        found[uri] = {(name, language) for name, language in called if name}
    return found


def parse_document(data):
    """(text, labels) of a JSON document."""
    try:
        found = json.loads(data.decode().removeprefix("\ufeff"))
    except RecursionError as error:
        raise ValueError("too deep") from error
    json.dumps(found, ensure_ascii=False).encode()
    _require(isinstance(found, dict) and {"text", "metadata"} & set(found), found)
    _require(set(found) <= {"document_id", "text", "metadata", "subjects"}, found)
    _require("subjects" in found and isinstance(found.get("text", ""), str), found)
    _require(isinstance(found["subjects"], list), found)
    labels = []
    for subject in found["subjects"]:
        _require(isinstance(subject, dict), subject)
        given = [key for key in ("uri", "label") if isinstance(subject.get(key), str) and subject[key].strip()]
        _require(given, subject)
        text = subject[given[0]].strip()
        labels.append(_without_brackets(text) if given[0] == "uri" else text)
    _require(len(set(labels)) == len(labels), labels)
    return [(found.get("text", ""), labels)]


def _term(line, at):
    """The term of N-Triples that begins at a place, as (kind, text, language), and where it ends."""
    if line[at : at + 1] == "<":
        end = line.index(">", at)
        iri = _unescaped(line[at + 1 : end], "uU")
        _require(not set(line[at + 1 : end]) & set('<"{}|^`') and all(c > " " for c in line[at + 1 : end]), iri)
        _require(re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:", iri), iri)
        return ("iri", iri, ""), end + 1
    if line[at : at + 2] == "_:":
        end = at + 2
        while end < len(line) and (line[end] == "." or _in_label(line[end])):
            end += 1
        while line[end - 1] == ".":
            end -= 1
        _require(end > at + 2 and _in_label(line[at + 2], first=True), line)
        return ("blank", line[at:end], ""), end
    _require(line[at : at + 1] == '"', line)
    end = at + 1
    while line[end : end + 1] != '"':
        _require(end < len(line), line)
        end += 2 if line[end] == "\\" else 1
    _require("\r" not in line[at:end], line)
    text, at = _unescaped(line[at + 1 : end], "uUtbnrf\"'\\"), end + 1
    if tag := re.match(r"@[A-Za-z]+(-[A-Za-z0-9]+)*", line[at:]):
        return ("text", text, tag[0][1:]), at + len(tag[0])
    if line[at : at + 2] == "^^":
        (kind, _, _), at = _term(line, at + 2)
        _require(kind == "iri", line)
    return ("text", text, ""), at


def _in_label(character, first=False):
    """Whether the label of a blank node may hold a character, by the ranges of the recommendation."""
    ranges = "AZ az __ 09 \u00c0\u00d6 \u00d8\u00f6 \u00f8\u02ff \u0370\u037d \u037f\u1fff \u200c\u200d \u2070\u218f"
    ranges += " \u2c00\u2fef \u3001\ud7ff \uf900\ufdcf \ufdf0\ufffd \U00010000\U000effff"
    ranges += "" if first else " -- \u00b7\u00b7 \u0300\u036f \u203f\u2040"
    return any(low <= character <= high for low, high in ranges.split(" "))


def _unescaped(text, allowed):
    plain = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}
    out, at = "", 0
    while at < len(text):
        if text[at] != "\\":
            out, at = out + text[at], at + 1
            continue
        mark = text[at + 1 : at + 2]
        _require(mark and mark in allowed, text)
        if mark in plain:
            out, at = out + plain[mark], at + 2
        else:
            digits = text[at + 2 : at + (6 if mark == "u" else 10)]
            _require(re.fullmatch("[0-9A-Fa-f]+", digits) and len(digits) == (4 if mark == "u" else 8), text)
            _require(not 0xD800 <= int(digits, 16) <= 0xDFFF, text)
            out, at = out + chr(int(digits, 16)), at + 2 + len(digits)
    return out


def parse_ntriples(data):
    """Triples of (kind, text, language), term by term."""
    for line in text_of(data).split("\n"):
        line, at, terms = line.removesuffix("\r"), 0, []
        while line[at : at + 1] in (" ", "\t"):
            at += 1
        if at == len(line) or line[at] == "#":
            continue
        for _ in range(3):
            term, at = _term(line, at)
            terms.append(term)
            while line[at : at + 1] in (" ", "\t"):
                at += 1
        kinds = [kind for kind, _, _ in terms]
        _require(kinds[0] != "text" and kinds[1] == "iri" and line[at : at + 1] == ".", line)
        rest = line[at + 1 :].lstrip(" \t")
        _require(not rest or rest[0] == "#", line)
        yield tuple(terms)
