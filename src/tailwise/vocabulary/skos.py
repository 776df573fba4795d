"""SKOS in RDF: Turtle, N-Triples, RDF/XML and JSON-LD through rdflib, triple by triple, and written as Turtle.

Nothing is fetched: entities of another file and contexts by address are refused. Triples are not kept, only what is
said of concepts, so that memory is a few times that of the vocabulary.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tailwise.data.files import parse_json, read_text, shown, split_lines
from tailwise.errors import DataFormatError, InvalidInput, import_extra
from tailwise.vocabulary.building import Builder
from tailwise.vocabulary.vocabulary import HIDDEN, PREFERRED, SYNONYM, Vocabulary

SKOS = "http://www.w3.org/2004/02/skos/core#"
_XL = "http://www.w3.org/2008/05/skos-xl#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
_DEPRECATED = "http://www.w3.org/2002/07/owl#deprecated"
_TITLES = ("http://purl.org/dc/terms/title", "http://purl.org/dc/elements/1.1/title", _RDFS_LABEL)
_KINDS = {"prefLabel": PREFERRED, "altLabel": SYNONYM, "hiddenLabel": HIDDEN}
_GROUPS = {"ConceptScheme": "schemes", "Collection": "collections", "OrderedCollection": "collections"}
_LONGEST_ENTITY = 300
FORMATS = {"turtle": "turtle", "ntriples": "turtle", "xml": "xml", "jsonld": "json-ld"}
"""The formats read here, and what rdflib calls them; N-Triples are Turtle, whose errors name lines."""

BASE = "file:///"
"""What a URI without a scheme is taken to be of: by itself rdflib would take the folder that it is called in."""
_HALF = "[dD][89a-fA-F]"  # how the escape of half a character begins
_HEX = rf"\\u(?!{_HALF})[0-9A-Fa-f]{{4}}|\\U(?!0000{_HALF})00(?:0[0-9A-Fa-f]|10)[0-9A-Fa-f]{{4}}"
_IRI = rf'<[A-Za-z][A-Za-z0-9+.\-]*:(?:[^\x00-\x20<>"{{}}|^`\\]|{_HEX})*>'
# The labels of blank nodes, by the grammar of N-Triples but for the colon, which Turtle does not take.
_LETTER = (
    "A-Za-zÀ-ÖØ-öø-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff"
    "\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_IN_LABEL = rf"{_LETTER}_0-9\-·\u0300-\u036f\u203f\u2040"
_BLANK = rf"_:[{_LETTER}_0-9](?:[{_IN_LABEL}.]*[{_IN_LABEL}])?"
_LITERAL = rf"""\"(?:[^"\\\r]|\\[tbnrf"'\\]|{_HEX})*\"(?:@[A-Za-z]+(?:-[A-Za-z0-9]+)*|\^\^{_IRI})?"""
_TRIPLE = re.compile(
    rf"[ \t]*(?:(?:{_IRI}|{_BLANK})[ \t]*{_IRI}[ \t]*(?:{_IRI}|{_BLANK}|{_LITERAL})[ \t]*\.[ \t]*)?(?:#.*)?"
)


class _Facts:
    """What triples said that matters here; resources are their URIs, or the names of blank nodes."""

    def __init__(self) -> None:
        self.types: dict[str, set[str]] = defaultdict(set)
        self.literals: list[tuple[str, str, str, str | None]] = []  # resource, property, text, language
        self.links: list[tuple[str, str, str]] = []
        self.unnamed = False

    def check_characters(self, path: Path) -> None:
        """Refuse halves of characters, which can be escaped."""
        try:
            "".join([text for fact in self.literals for text in fact[:3]] + list(self.types["Concept"])).encode()
        except UnicodeEncodeError as error:
            raise DataFormatError(path, None, "a lone surrogate, which is no character", "text") from error

    def add(self, subject: str, predicate: str, value: str, language: str | None, is_literal: bool) -> None:
        if predicate == _RDF + "type":
            if value.startswith(SKOS):
                self.types[value.removeprefix(SKOS)].add(subject)
        elif predicate.startswith((SKOS, _XL)) or predicate in (_DEPRECATED, *_TITLES, _RDF + "first", _RDF + "rest"):
            if is_literal:
                self.literals.append((subject, predicate, value, language))
            else:
                self.links.append((subject, predicate, value))


def read_skos(path: Path, format: str) -> Vocabulary:
    """The concepts of an RDF file: what has the type ``skos:Concept``, sorted by URI."""
    rdflib = import_extra("rdflib", "skos", "reading SKOS")
    text = read_text(path)
    if format == "xml":
        text = _without_entities(path, text)
    elif format == "jsonld":
        _check_contexts(path, text)
    elif format == "ntriples":
        _check_triples(path, text)
    facts = _Facts()
    with _told(path, text):
        graph = rdflib.Graph(store=_sink(rdflib, facts))
        graph.parse(data=text, format=FORMATS[format], publicID=BASE)
    if "\\u" in text.lower():
        facts.check_characters(path)
    if facts.unnamed:
        # Its name would be another one every time.
        raise DataFormatError(path, None, "a skos:Concept without a URI", "a URI for each concept")
    vocabulary = _built(facts)
    if not len(vocabulary):
        raise DataFormatError(path, None, "no skos:Concept", "concepts with the type skos:Concept")
    return vocabulary


def _sink(rdflib: Any, facts: _Facts) -> Any:
    """A store that hands triples on and keeps none."""
    literal = rdflib.Literal

    class Sink(rdflib.store.Store):
        context_aware = True
        graph_aware = True

        def add(self, triple: Any, context: Any, quoted: bool = False) -> None:
            subject, predicate, value = triple
            if isinstance(subject, rdflib.BNode) and str(predicate) == _RDF + "type" and str(value) == SKOS + "Concept":
                facts.unnamed = True
            is_literal = isinstance(value, literal)
            language = value.language if is_literal else None
            facts.add(sys.intern(str(subject)), sys.intern(str(predicate)), str(value), language, is_literal)

        def add_graph(self, graph: Any) -> None:
            pass

        def bind(self, *_: Any, **__: Any) -> None:
            pass

        def namespace(self, prefix: str) -> None:
            return None

        def prefix(self, namespace: Any) -> None:
            return None

        def namespaces(self) -> Iterator[Any]:
            return iter(())

        def __len__(self, context: Any = None) -> int:
            return 0

    return Sink()


def _built(facts: _Facts) -> Vocabulary:
    builder = Builder()
    for label in sorted(facts.types["Concept"]):
        builder.concept(label)
    lists = _lists(facts)
    forms = defaultdict(list)  # of names that are resources of their own
    titles: dict[str, list[tuple[str, str]]] = defaultdict(list)
    called = {(s, language) for s, p, _, language in facts.literals if p == SKOS + "prefLabel"}
    for subject, predicate, text, language in facts.literals:
        local = predicate.removeprefix(SKOS)
        if predicate == _XL + "literalForm":
            forms[subject].append((text, language))
        if local == "prefLabel" or predicate in _TITLES:
            titles[subject].append((language or "", text))
        if subject not in builder:
            continue
        concept = builder.concept(subject)
        if local in _KINDS:
            builder.add_name(concept, text, language, _KINDS[local])
        elif predicate == _RDFS_LABEL:
            builder.add_name(concept, text, language, SYNONYM if (subject, language) in called else PREFERRED)
        elif local == "notation":
            builder.add_notation(concept, text)
        elif predicate == _DEPRECATED and text.strip().lower() in ("true", "1"):
            builder.deprecate(concept)
    nested = defaultdict(set)  # collection -> members
    for subject, predicate, value in facts.links:
        local = predicate.removeprefix(SKOS)
        if local in ("broader", "narrower"):
            builder.add_broader(*((subject, value) if local == "broader" else (value, subject)))
        elif local in ("inScheme", "topConceptOf", "hasTopConcept"):
            builder.add_member("schemes", *((value, subject) if local == "hasTopConcept" else (subject, value)))
        elif local == "member":
            nested[subject].add(value)
        elif local == "memberList":
            nested[subject].update(lists(value))
        elif predicate.startswith(_XL) and predicate.removeprefix(_XL) in _KINDS and subject in builder:
            for text, language in forms[value]:
                builder.add_name(builder.concept(subject), text, language, _KINDS[predicate.removeprefix(_XL)])
    for collection in list(nested):
        for member in _members(collection, nested):
            builder.add_member("collections", member, collection)
    for local, groups in _GROUPS.items():
        for group in facts.types[local]:
            builder.add_group(groups, group)
    for groups, group in builder.groups():
        if titles[group]:
            builder.add_group(groups, group, min(titles[group])[1])
    return builder.build()


def _lists(facts: _Facts) -> Any:
    first = {s: value for s, p, value in facts.links if p == _RDF + "first"}
    rest = {s: value for s, p, value in facts.links if p == _RDF + "rest"}

    def items(node: str) -> Iterator[str]:
        seen = set()
        while node in first and node not in seen:
            seen.add(node)
            yield first[node]
            node = rest.get(node, "")

    return items


def _members(collection: str, nested: dict[str, set[str]]) -> set[str]:
    """What a collection holds, and what the collections in it hold."""
    found: set[str] = set()
    waiting = [collection]
    while waiting:
        for member in nested.get(waiting.pop(), ()):
            if member not in found:
                found.add(member)
                waiting.append(member)
    return found


def _without_entities(path: Path, text: str) -> str:
    """RDF/XML without its declaration (it is decoded already); entities that fetch or that multiply are refused."""
    for entity in re.finditer(r"<!ENTITY\s+(?P<parameter>%\s+)?[^\s>]+\s+(?P<value>\"[^\"]*\"|'[^']*'|[^>]*)", text):
        value = entity["value"]
        if entity["parameter"] or value[:1] not in "\"'" or "&" in value or len(value) > _LONGEST_ENTITY:
            line = text.count("\n", 0, entity.start()) + 1
            expected = f"entities that stand for a text of at most {_LONGEST_ENTITY} characters, such as a namespace"
            raise DataFormatError(path, line, shown(entity[0]), expected)
    doctype = re.search(r"<!DOCTYPE\s+[^\s\[>]+\s+(SYSTEM|PUBLIC)", text)
    if doctype:
        line = text.count("\n", 0, doctype.start()) + 1
        raise DataFormatError(path, line, shown(doctype[0]), "no definition in another file")
    return re.sub(r"^\s*<\?xml[^>]*\?>", lambda found: "\n" * found[0].count("\n"), text, count=1)


def _check_triples(path: Path, text: str) -> None:
    """N-Triples a line; the parser of Turtle, which names lines, takes what neither format allows."""
    for line, triple in enumerate(split_lines(text), start=1):
        if not _TRIPLE.fullmatch(triple):
            raise DataFormatError(path, line, shown(triple), '<subject> <property> <object> ., or "text"@language .')


def _check_contexts(path: Path, text: str) -> None:
    """JSON-LD whose contexts are in the file itself: one by address would be fetched."""
    try:
        value = parse_json(text)
    except ValueError as error:
        raise DataFormatError(path, getattr(error, "lineno", None), str(error), "JSON-LD") from error
    if not isinstance(value, dict | list):
        first = text[: len(text) - len(text.lstrip())].count("\n") + 1
        raise DataFormatError(path, first, shown(text.strip()), "JSON-LD: an object, or a list of objects")
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            contexts = one.get("@context", [])
            for context in contexts if isinstance(contexts, list) else [contexts]:
                if isinstance(context, str) or (isinstance(context, dict) and "@import" in context):
                    expected = "an @context written out in the file; nothing is fetched"
                    line = _line_of_string(text, context if isinstance(context, str) else "@import")
                    raise DataFormatError(path, line, f"the @context {shown(str(context))}", expected)
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else []


def _line_of_string(text: str, wanted: str) -> int | None:
    """The first line of JSON that holds a string, however it is escaped."""
    for found in re.finditer(r'"(?:[^"\\]|\\.)*"', text):
        if json.loads(found[0]) == wanted:
            return text.count("\n", 0, found.start()) + 1
    return None


@contextmanager
def _told(path: Path, text: str) -> Iterator[None]:
    """Errors of the parsers as errors of the file, with the line; what rdflib logs of odd literals is not heard."""
    log = logging.getLogger("rdflib")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    except (MemoryError, DataFormatError):
        raise
    except RecursionError as error:
        raise DataFormatError(path, None, "resources nested too deeply", "RDF that can be read") from error
    except IndexError as error:
        # So rdflib's Turtle ends where the text does.
        raise DataFormatError(path, text.count("\n") + 1, "the end of the file", "RDF that can be read") from error
    except Exception as error:
        why = " ".join(str(getattr(error, "_why", None) or getattr(error, "message", None) or error).split())
        raise DataFormatError(path, _line_of(error, text), shown(why), "RDF that can be read") from error
    finally:
        log.setLevel(level)


def _line_of(error: Exception, text: str) -> int | None:
    if hasattr(error, "getLineNumber"):
        return error.getLineNumber()
    if isinstance(getattr(error, "lines", None), int):
        return error.lines + 1  # type: ignore[attr-defined]
    placed = re.match(r"[^:]*:(\d+):\d+: ", str(error))
    if placed:
        return int(placed[1])
    if "IPv6" in str(error):
        placed = re.search(r"//[^/\s\"'>]*[\[\]]", text)
        return text.count("\n", 0, placed.start()) + 1 if placed else None
    # Of a wrong value rdflib says only which.
    quoted = re.search(r"'([^']+)'", str(error))
    at = text.find(quoted[1]) if quoted else -1
    if at >= 0:
        return text.count("\n", 0, at) + 1
    # What it did not foresee: its parser of Turtle counts lines, that of XML has a locator, JSON-LD names a prefix.
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if "Prefixes" in str(error) and isinstance(prefix := frame.f_locals.get("prefix"), str):
            return _line_of_string(text, prefix)
        parser = frame.f_locals.get("self")
        if isinstance(lines := getattr(parser, "lines", None), int):
            return lines + 1
        if (locator := getattr(parser, "locator", None)) is not None:
            return locator.getLineNumber()
    return None


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def turtle(vocabulary: Vocabulary) -> Iterator[str]:
    """The vocabulary as Turtle, piece by piece; an id that is no URI is refused."""
    yield f"@prefix skos: <{SKOS}> .\n@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
    said: dict[int, list[str]] = {place: [] for place in range(len(vocabulary))}
    terms = vocabulary.terms
    words = {kind: f"skos:{word}" for word, kind in _KINDS.items()}
    for place, text, language, kind in zip(
        terms.concept.tolist(), terms.text, terms.language.tolist(), terms.kind.tolist(), strict=True
    ):
        said[place].append(f"{words[kind]} {_literal(text, vocabulary.languages[language])}")
    for place, notation in enumerate(vocabulary.notations):
        if notation:
            said[place].append(f"skos:notation {_literal(notation)}")
    for child, parent in vocabulary.broader.tolist():
        said[child].append(f"skos:broader {_uri(vocabulary.ids[parent])}")
    for concept, scheme in vocabulary.schemes.members.tolist():
        said[concept].append(f"skos:inScheme {_uri(vocabulary.schemes.ids[scheme])}")
    for scheme, name in zip(vocabulary.schemes.ids, vocabulary.schemes.names, strict=True):
        yield f"\n{_uri(scheme)} a skos:ConceptScheme ;\n    skos:prefLabel {_literal(name)} .\n"
    for place, (collection, name) in enumerate(
        zip(vocabulary.collections.ids, vocabulary.collections.names, strict=True)
    ):
        members = vocabulary.collections.members
        of = [f"skos:member {_uri(vocabulary.ids[c])}" for c in members[members[:, 1] == place, 0].tolist()]
        yield f"\n{_uri(collection)} a skos:Collection ;\n    "
        yield " ;\n    ".join([f"skos:prefLabel {_literal(name)}", *of]) + " .\n"
    for place, label in enumerate(vocabulary.ids):
        more = ["owl:deprecated true"] if vocabulary.deprecated[place] else []
        yield f"\n{_uri(label)} " + " ;\n    ".join(["a skos:Concept", *said[place], *more]) + " .\n"


def _uri(label: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\x00-\x20<>\"{}|^`\\]*", label):
        raise InvalidInput(f"{label!r} is no URI, as Turtle needs them; write CSV, TSV or JSON")
    return f"<{label}>"


def _literal(text: str, language: str = "") -> str:
    escaped = re.sub(r'[\\"\n\r\t]', lambda found: _ESCAPES[found[0]], text)
    tag = f"@{language}" if re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", language) else ""
    return f'"{escaped}"{tag}'
