"""Vocabularies read and written: each format gives back what it can hold, and a malformed file is refused by line."""

import gzip
import socket

import pytest

import tailwise
from tailwise import Vocabulary, persistence
from tailwise.errors import DataFormatError, InvalidInput, ModelFileError
from tailwise.vocabulary.reading import FORMATS, WRITTEN

E = "http://example.org/"
TURTLE = """@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xl: <http://www.w3.org/2008/05/skos-xl#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix e: <http://example.org/> .
e:scheme a skos:ConceptScheme ; dct:title "Animals"@en .
e:fish a skos:Concept ; skos:prefLabel "Fish"@en, "Fisch"@de, "poisson \\"vif\\""@fr ; skos:altLabel "Fishes"@en ;
    skos:hiddenLabel "fsh"@en ; skos:notation "1.2" ; skos:inScheme e:scheme ; skos:narrower e:cod .
e:cod a skos:Concept ; rdfs:label "Cod"@en ; owl:deprecated true ; xl:prefLabel [ xl:literalForm "Kabeljau"@de ] ;
    skos:topConceptOf e:scheme .
e:eel a skos:Concept ; skos:prefLabel "Eel"@en, "Electric eel"@en ; skos:broader e:fish, e:elsewhere .
e:inner a skos:Collection ; skos:member e:cod .
e:outer a skos:OrderedCollection ; skos:prefLabel "Outer" ; skos:memberList ( e:fish e:inner ) .
"""


@pytest.fixture
def turtle(tmp_path):
    path = tmp_path / "animals.ttl"
    path.write_text(TURTLE, encoding="utf-8")
    return path


def state(vocabulary):
    return repr(vocabulary._state())


def test_skos(turtle):
    vocab = Vocabulary.read(turtle)
    assert vocab.ids == [E + "cod", E + "eel", E + "fish"]
    assert vocab.languages == ["en", "de", "fr"]
    assert [vocab.name(label) for label in vocab.ids] == ["Cod", "Eel", "Fish"]
    assert vocab.preferred_names("de") == ["Kabeljau", "Eel", "Fisch"]
    assert vocab.preferred_names("de-AT") == vocab.preferred_names("de")
    assert vocab.names(E + "fish") == [
        ("Fish", "en", True),
        ("Fisch", "de", True),
        ('poisson "vif"', "fr", True),
        ("Fishes", "en", False),
        ("fsh", "en", False),
    ]
    assert vocab.names(E + "eel") == [("Eel", "en", True), ("Electric eel", "en", False)]
    assert vocab.notation(E + "fish") == "1.2" and vocab.notation(E + "cod") == ""
    assert vocab.broader.tolist() == [[0, 2], [1, 2]]
    assert vocab.deprecated.tolist() == [True, False, False]
    assert vocab.schemes.names == ["Animals"] and vocab.schemes.members.tolist() == [[0, 0], [2, 0]]
    assert vocab.collections.ids == [E + "inner", E + "outer"]
    assert vocab.collections.names == [E + "inner", "Outer"]
    assert vocab.collections.members.tolist() == [[0, 0], [0, 1], [2, 1]]


def test_every_rdf_format_says_the_same(turtle, tmp_path):
    rdflib = pytest.importorskip("rdflib")
    vocab = Vocabulary.read(turtle)
    graph = rdflib.Graph().parse(turtle)
    for suffix, name in {".rdf": "xml", ".nt": "nt11", ".jsonld": "json-ld"}.items():
        graph.serialize(tmp_path / f"other{suffix}", format=name)
        assert state(Vocabulary.read(tmp_path / f"other{suffix}")) == state(vocab)
    packed = tmp_path / "packed.ttl.gz"
    packed.write_bytes(gzip.compress(turtle.read_bytes()))
    assert state(Vocabulary.read(packed)) == state(vocab)


def test_turtle_gives_all_back(turtle, tmp_path):
    vocab = Vocabulary.read(turtle)
    assert vocab.write(tmp_path / "back.ttl") == []
    assert state(Vocabulary.read(tmp_path / "back.ttl")) == state(vocab)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".json"])
def test_tables_give_back_names_and_say_what_they_lose(turtle, tmp_path, suffix):
    vocab = Vocabulary.read(turtle)
    lost = vocab.write(tmp_path / f"back{suffix}")
    back = Vocabulary.read(tmp_path / f"back{suffix}", language=None if suffix == ".csv" else "en")
    assert back.ids == vocab.ids
    assert [back.name(label) for label in back.ids[1:]] == [vocab.name(label) for label in vocab.ids[1:]]
    assert {"3 synonyms", "2 steps of the hierarchy"} <= set(lost)
    if suffix == ".json":
        assert "1 notations" in lost and "1 marks of deprecation" in lost
    else:
        assert back.deprecated.tolist() == vocab.deprecated.tolist()
        assert back.notations == vocab.notations
    if suffix == ".csv":
        assert back.preferred_names("de")[2] == "Fisch" and set(back.languages) == {"en", "de", "fr"}
    else:
        assert "2 languages but one" in lost
    assert back.write(tmp_path / f"again{suffix}") in ([], lost)
    assert (tmp_path / f"again{suffix}").read_bytes() == (tmp_path / f"back{suffix}").read_bytes()


def test_the_formats_of_annif(tmp_path):
    (tmp_path / "v.csv").write_bytes(
        b"\xef\xbb\xbfuri,label_en,label_fi,notation\r\n<http://e.org/1>,fish,kala,1\r\nhttp://e.org/2,,,\r\n"
    )
    vocab = Vocabulary.read(tmp_path / "v.csv")
    assert vocab.ids == ["http://e.org/1", "http://e.org/2"]
    assert vocab.name("http://e.org/1", "fi") == "kala" and vocab.notations == ["1", ""]
    assert vocab.deprecated.tolist() == [False, True]
    (tmp_path / "v.tsv").write_bytes(
        b"\xef\xbb\xbf<http://e.org/1>\tfish\nhttp://e.org/2\tcod\t2.1\n<http://e.org/3>\n"
    )
    vocab = Vocabulary.read(tmp_path / "v.tsv", language="en")
    assert vocab.ids == ["http://e.org/1", "http://e.org/2", "http://e.org/3"]
    assert vocab.languages == ["en"] and vocab.notations == ["", "2.1", ""]
    assert vocab.deprecated.tolist() == [False, False, True]


SKOS = "http://www.w3.org/2004/02/skos/core#"
BAD = {
    "quote.ttl": ('@prefix a: <http://a> .\na:b a:c "x"\n a:d 3 .\n', "line 3"),
    "tag.rdf": ("<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\n<a>\n</rdf:RDF>", "line 3"),
    "triple.nt": ("<a:b> <a:c> <a:d> .\n<a:b> <a:c> .\n", "line 2"),
    "space.nt": ("<a:b> <a:c> <a:d> .\n<a:b> <a:c> <a:d <a:e> .\n", "line 2"),
    "relative.nt": ("<b> <a:c> <a:d> .\n", "line 1"),
    "comma.nt": ("<a:b> <a:c> <a:d> .\n<a:b> <a:c> _:d,_:e .\n", "line 2: found '<a:b> <a:c> _:d,_:e .'"),
    "dot.nt": ("<a:b> <a:c> <a:d> .\n_:d. <a:c> <a:d> .\n", "line 2: found '_:d. <a:c> <a:d> .'"),
    "return.nt": ('<a:b> <a:c> "d\\u000d" .\n<a:b> <a:c> "d\re" .\n', "line 2: found '<a:b> <a:c>"),
    "half.nt": ('<a:b> <a:c> "\\ud800" .\n', "line 1"),
    "half.ttl": (f'<a:b> a <{SKOS}Concept> ; <{SKOS}prefLabel> "\\ud800" .\n', "a lone surrogate"),
    "open.ttl": ("@prefix a: <http://a> .\na:b a:c 'x\" ; a:c a:d .\n", "line 2"),
    "unnamed.ttl": (f'[] a <{SKOS}Concept> ; <{SKOS}prefLabel> "x" .\n', "a skos:Concept without a URI"),
    "bracket.rdf": (
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'\nxmlns:a='http://[/'><a:b/></rdf:RDF>",
        "line 2",
    ),
    "within.rdf": (
        f"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:s='{SKOS}'>\n"
        "<s:Concept rdf:about='a:1'><s:a rdf:resource='x'><b/></s:a></s:Concept></rdf:RDF>",
        "line 2",
    ),
    "fetching.rdf": (
        "<?xml version='1.0'?>\n<!DOCTYPE r [\n<!ENTITY a SYSTEM 'secret.txt'>]>\n<r/>",
        "line 3",
    ),
    "laughing.rdf": ("<!DOCTYPE r [<!ENTITY a 'ha'>\n<!ENTITY b '&a;&a;'>]>\n<r/>", "line 2"),
    "parameter.rdf": ("<!DOCTYPE r [<!ENTITY % a 'ha'>]>\n<r/>", "line 1"),
    "long.rdf": (f"<!DOCTYPE r [<!ENTITY a '{'a' * 400}'>]>\n<r/>", "at most 300 characters"),
    "definition.rdf": ("<!DOCTYPE r SYSTEM 'r.dtd'>\n<r/>", "no definition in another file"),
    "context.jsonld": ('{"@graph": [{"@context": "http://example.org/c"}]}', "nothing is fetched"),
    "importing.jsonld": ('{"@context": {"@import": "http://example.org/c"}}', "nothing is fetched"),
    "escaped.jsonld": ('{"a": 1,\n"@context": "\\u0061:c"}', "line 2: found the @context 'a:c'"),
    "number.jsonld": ("\n 22", "line 2: found '22'; expected JSON-LD: an object, or a list of objects"),
    "prefix.jsonld": ('{"@context":\n{"s": "a:#",\n"s\\u0020s": "http://e.org/#"}}', "line 3"),
    "comma.jsonld": ('{"a": \n1,}', "line 2"),
    "empty.ttl": ("", "no skos:Concept"),
    "columns.csv": ("uri,label\n1,2\n", "line 1: found the columns uri, label"),
    "twice.csv": ("uri,label_en\na:1,x\na:1,y\n", "line 3: found 'a:1' a second time"),
    "width.csv": ("uri,label_en\na:1,x,y\n", "line 2: found 3 columns"),
    "many.tsv": ("<a:1>\tb\na:2\td\te\tf\n", "line 2: found 4 columns"),
    "none.tsv": ("a:1\tx\n\tname\n", "line 2: found no uri"),
    "nothing.tsv": ("\n", "no concept"),
    "list.json": ('["a", "b"]', "names without ids"),
    "number.json": ('{"a": 1}', "an object"),
    "id.json": ('{"": "a"}', "an empty id"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_file_is_refused_by_line(tmp_path, name):
    text, message = BAD[name]
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    with pytest.raises(DataFormatError) as refused:
        Vocabulary.read(tmp_path / name)
    assert name in str(refused.value) and message in str(refused.value)


def test_namespaces_as_entities_are_read(tmp_path):
    rdf = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!DOCTYPE rdf:RDF [ <!ENTITY e "http://example.org/"> ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:skos="http://www.w3.org/2004/02/skos/core#">
<skos:Concept rdf:about="&e;1"><skos:prefLabel xml:lang="de">Öl</skos:prefLabel></skos:Concept>
</rdf:RDF>"""
    (tmp_path / "v.xml").write_text(rdf, encoding="utf-8")
    vocab = Vocabulary.read(tmp_path / "v.xml")
    assert vocab.names(E + "1") == [("Öl", "de", True)]


def test_a_uri_without_a_scheme_does_not_depend_on_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.ttl").write_text(f'<#1> a <{SKOS}Concept> ; <{SKOS}prefLabel> "x" .\n')
    assert Vocabulary.read("v.ttl").ids == ["file:///#1"]


def test_nothing_is_fetched(turtle, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    for name, (text, _) in BAD.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        with pytest.raises(DataFormatError):
            Vocabulary.read(tmp_path / name)
    Vocabulary.read(turtle)


def test_a_packed_file_may_not_unpack_to_more_than_said(tmp_path, monkeypatch):
    monkeypatch.setenv("TAILWISE_MAX_BYTES", "1000")
    (tmp_path / "v.ttl.gz").write_bytes(gzip.compress(b" " * 2000))
    with pytest.raises(DataFormatError, match="TAILWISE_MAX_BYTES"):
        Vocabulary.read(tmp_path / "v.ttl.gz")


def test_the_format_must_be_known(turtle, tmp_path):
    assert len(Vocabulary.read(turtle.rename(tmp_path / "v.dat"), format="turtle")) == 3
    with pytest.raises(InvalidInput, match=r"v\.dat does not end in one of \.ttl, .*format='turtle'"):
        Vocabulary.read(tmp_path / "v.dat")
    with pytest.raises(InvalidInput, match="is not one of"):
        Vocabulary.read(tmp_path / "v.dat", format="skos")
    with pytest.raises(InvalidInput, match=r"v\.rdf does not end in one of \.ttl, \.csv"):
        Vocabulary.from_names({"a:1": "a"}).write(tmp_path / "v.rdf")
    with pytest.raises(InvalidInput, match="'12' is no URI"):
        Vocabulary.from_names({"12": "a"}).write(tmp_path / "v.ttl")
    with pytest.raises(InvalidInput, match="a tab or a line break"):
        Vocabulary.from_names({"12": "a\tb"}).write(tmp_path / "v.tsv")
    assert not (tmp_path / "v.ttl").exists() and not (tmp_path / "v.tsv").exists()


def test_turtle_holds_any_text(tmp_path):
    names = {f"u:{i}": text for i, text in enumerate(['"', "\\", "a\tb\nc\rd", "\\u0041", "{}<>|", "𝔘 \u2028"])}
    vocab = Vocabulary.from_names(names, "de-AT")
    vocab.write(tmp_path / "v.ttl")
    assert state(Vocabulary.read(tmp_path / "v.ttl")) == state(vocab)


def test_a_vocabulary_is_a_folder_and_comes_back(turtle, tmp_path):
    vocab = Vocabulary.read(turtle)
    persistence.save(vocab, tmp_path / "vocab")
    assert state(tailwise.load(tmp_path / "vocab")) == state(vocab)
    empty = Vocabulary()
    persistence.save(empty, tmp_path / "empty")
    assert state(tailwise.load(tmp_path / "empty")) == state(empty)


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v.ids.append("u:9"),
        lambda v: v.ids.__setitem__(0, v.ids[1]),
        lambda v: v.languages.pop(),
        lambda v: v.notations.pop(),
        lambda v: v.terms.concept.__setitem__(0, 3),
        lambda v: v.terms.concept.__setitem__(0, 2),
        lambda v: v.terms.kind.__setitem__(0, 3),
        lambda v: v.broader.__setitem__((0, 0), -1),
        lambda v: v.schemes.members.__setitem__((0, 1), 1),
        lambda v: v.collections.names.pop(),
        lambda v: setattr(v, "deprecated", v.deprecated[:-1]),
        lambda v: setattr(v, "terms", tuple(v.terms)),
    ],
)
def test_a_folder_that_no_vocabulary_could_have_left_is_refused(turtle, tmp_path, change):
    vocab = Vocabulary.read(turtle)
    change(vocab)
    persistence.save(vocab, tmp_path / "vocab")
    with pytest.raises(ModelFileError):
        tailwise.load(tmp_path / "vocab")


def test_every_format_is_documented():
    from tailwise.vocabulary import reading

    assert set(WRITTEN) <= set(FORMATS)
    for suffix, name in reading.SUFFIXES.items():
        assert suffix in reading.__doc__ and name in reading.__doc__
