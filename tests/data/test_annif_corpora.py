"""Annif's corpora, in every form that its documentation has, read as Annif reads them."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from tailwise import Vocabulary, load_dataset
from tailwise.data import convert, detect_format, read_records, read_texts, split_file
from tailwise.errors import DataFormatError, InvalidInput

ANNIF = Path(__file__).parents[2] / ".venv-annif" / "bin" / "python"
BOM = b"\xef\xbb\xbf"
ONE, TWO = "http://e.org/1", "http://e.org/2"
DOCUMENTS = [("Fish of the sea", [ONE]), ('A "quoted" law, of fish', [ONE, TWO]), ("Law", [TWO])]


def as_tsv(brackets=True):
    form = "<{}>" if brackets else "{}"
    return "".join(f"{text}\t{' '.join(map(form.format, uris))}\n" for text, uris in DOCUMENTS).encode()


def as_csv():
    rows = [f'"{text.replace(chr(34), chr(34) * 2)}",{" ".join(uris)},d{i}' for i, (text, uris) in enumerate(DOCUMENTS)]
    return ("text,subject_uris,document_id\r\n" + "\r\n".join(rows) + "\r\n").encode()


def as_jsonl():
    names = {ONE: "Fish", TWO: "Law"}
    lines = []
    for i, (text, uris) in enumerate(DOCUMENTS):
        subjects = [{"uri": uri} if i % 2 else {"label": names[uri]} for uri in uris]
        lines.append(
            json.dumps({"document_id": f"d{i}", "text": text, "metadata": {"title": "t"}, "subjects": subjects})
        )
    return ("\n".join(lines) + "\n").encode()


FILES = {
    "brackets.tsv": as_tsv(),
    "bare.tsv": as_tsv(brackets=False),
    "marked.tsv": BOM + as_tsv(),
    "packed.tsv.gz": gzip.compress(as_tsv()),
    "plain.csv": as_csv(),
    "marked.csv": BOM + as_csv(),
    "packed.csv.gz": gzip.compress(as_csv()),
    "lines.jsonl": as_jsonl(),
    "packed.jsonl.gz": gzip.compress(as_jsonl()),
}
READ = """
import json
import sys

from annif.corpus import DocumentDirectory, DocumentFileCSV, DocumentFileJSONL, DocumentFileTSV


class Subjects:
    'Knows every URI, and the labels of the tests by their text.'

    def by_uri(self, uri, warnings=True):
        return uri

    def by_label(self, label, language):
        return {"Fish": "http://e.org/1", "Law": "http://e.org/2"}.get(label)


path, name = sys.argv[1], sys.argv[1].removesuffix(".gz")
if name.endswith(".csv"):
    corpus = DocumentFileCSV(path, Subjects())
elif name.endswith(".jsonl"):
    corpus = DocumentFileJSONL(path, Subjects(), "en")
elif name.endswith(".tsv"):
    corpus = DocumentFileTSV(path, Subjects())
else:
    corpus = DocumentDirectory(path, Subjects(), "en", require_subjects=True)
print(json.dumps([[doc.text, sorted(doc.subject_set)] for doc in corpus.documents]))
"""
VOCABULARY = Vocabulary.from_names({ONE: "Fish", TWO: "Law"}, "en")


def write_folder(folder, kind):
    folder.mkdir()
    for i, (text, uris) in enumerate(DOCUMENTS):
        names = {ONE: "Fish", TWO: "Law"}
        mark = BOM if i else b""
        if kind == "json":
            subjects = [{"uri": uri, "label": names[uri]} for uri in uris]
            (folder / f"d{i}.json").write_text(json.dumps({"text": text, "subjects": subjects}))
            continue
        (folder / f"d{i}.txt").write_bytes(mark + text.encode())
        if kind == "tsv":
            keys = "".join(f"<{uri}>\t{names[uri]}\n" for uri in uris)
        else:
            keys = "".join(f"{names[uri]}\n" for uri in uris)
        (folder / f"d{i}.{kind}").write_bytes(mark + keys.encode())
    return folder


@pytest.fixture(params=[*FILES, "tsv", "key", "json"])
def corpus(request, tmp_path):
    if request.param not in FILES:
        return write_folder(tmp_path / "corpus", request.param)
    path = tmp_path / request.param
    path.write_bytes(FILES[request.param])
    return path


def rows_of(data):
    return [(text, sorted(labels)) for text, labels in zip(data.texts_train, data.labels_of(ids=True), strict=True)]


def test_every_form_gives_the_same_rows(corpus):
    data = load_dataset(corpus, vocab=VOCABULARY)
    assert rows_of(data) == DOCUMENTS
    assert data.label_ids == [ONE, TWO] and data.label_names == ["Fish", "Law"]
    assert data.vocab is VOCABULARY


def test_annif_reads_them_alike(corpus):
    if not ANNIF.exists():
        pytest.skip("Annif is not at hand in .venv-annif; `make peers` installs it")
    done = subprocess.run([ANNIF, "-c", READ, corpus], capture_output=True, text=True, check=True)
    theirs = [(text, labels) for text, labels in json.loads(done.stdout)]
    assert theirs == rows_of(load_dataset(corpus, vocab=VOCABULARY))


def test_texts_are_read_without_labels(corpus):
    assert read_texts(corpus, detect_format(corpus)) == [text for text, _ in DOCUMENTS]


def test_a_corpus_is_split_and_converted_like_any_data(corpus, tmp_path):
    done = split_file(corpus, tmp_path / "parts", test_fraction=0.34, vocab=VOCABULARY)
    both = load_dataset(tmp_path / "parts", vocab=VOCABULARY)
    assert both.n_train == 2 and both.n_test == 1 and len(done.written) == 2
    parts = rows_of(both) + [
        (text, sorted(labels)) for text, labels in zip(both.texts_test, both.labels_of("test", ids=True), strict=True)
    ]
    assert sorted(parts) == sorted(DOCUMENTS)
    for target, kind in (("out.tsv", "annif"), ("out.jsonl", None), ("out.csv", None)):
        convert(corpus, tmp_path / target, kind, vocab=VOCABULARY)
        assert rows_of(load_dataset(tmp_path / target)) == DOCUMENTS


def test_a_label_that_the_vocabulary_does_not_have_is_left_out_and_counted(tmp_path):
    folder = write_folder(tmp_path / "corpus", "key")
    (folder / "d0.key").write_text("Fish\nWhale\n")
    data = load_dataset(folder, vocab=VOCABULARY)
    assert rows_of(data) == DOCUMENTS
    assert data.reading["labels that the vocabulary does not have"] == 1


def test_without_a_vocabulary_a_label_is_its_text(tmp_path):
    data = load_dataset(write_folder(tmp_path / "corpus", "key"))
    assert data.labels_of(ids=True) == [["Fish"], ["Fish", "Law"], ["Law"]]


def test_a_text_without_labels_is_for_prediction_alone(tmp_path):
    folder = write_folder(tmp_path / "corpus", "tsv")
    (folder / "new.txt").write_text("a new one")
    assert load_dataset(folder).n_train == 3
    assert read_texts(folder, "documents")[-1] == "a new one"
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "a.txt").write_text("a text of its own")
    assert detect_format(alone) == "documents"
    with pytest.raises(DataFormatError, match="alone: found no row"):
        load_dataset(alone)
    (tmp_path / "texts.tsv").write_text("with\t<u:1>\nwithout\n")
    assert read_texts(tmp_path / "texts.tsv", "annif") == ["with", "without"]
    with pytest.raises(DataFormatError, match=r"texts\.tsv, line 2: found 'without'; expected text⇥uri"):
        load_dataset(tmp_path / "texts.tsv")


def test_a_document_may_have_metadata_alone(tmp_path):
    line = json.dumps({"metadata": {"title": "t"}, "subjects": [{"uri": ONE}]})
    (tmp_path / "a.jsonl").write_text(line + "\n" + json.dumps({"text": "b", "subjects": [{"uri": TWO}]}) + "\n")
    assert load_dataset(tmp_path / "a.jsonl").texts_train == ["", "b"]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.json").write_text(line)
    assert load_dataset(folder).texts_train == [""]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", '{"text": "a", "subjects": [{"url": "u:1"}]}', r"a\.json: found .*'url'.*expected labels such as"),
        ("a.json", '{"text": "a", "subjects": "u:1"}', r"expected labels such as"),
        ("a.json", '{"text": 1, "subjects": []}', r"a\.json: found '1'; expected a text"),
        ("a.json", '{"text": "a", "more": 1}', r"a\.json: found the fields text, more"),
        ("a.json", '{"text": "a",\n}', r"a\.json, line 2"),
    ],
)
def test_a_malformed_document_is_refused_by_name(tmp_path, name, text, message):
    folder = write_folder(tmp_path / "corpus", "tsv")
    (folder / name).write_text(text)
    with pytest.raises(DataFormatError, match=message):
        load_dataset(folder)


def test_a_malformed_subject_is_refused_by_line(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "subjects": [{"uri": "u:1"}]}\n{"text": "a", "subjects": [{}]}\n')
    with pytest.raises(DataFormatError, match=r"a\.jsonl, line 2: found '\{\}'; expected a label such as"):
        load_dataset(tmp_path / "a.jsonl")


def test_other_files_stay_what_they_were(tmp_path):
    (tmp_path / "headed.tsv").write_text("text\tlabels\nsee http://e.org\ta\n")
    assert detect_format(tmp_path / "headed.tsv") == "tsv"
    (tmp_path / "rows.txt").write_text("1 2 2\n0 0:1.0\n")
    assert detect_format(tmp_path / "rows.txt") == "xmc"
    folder = tmp_path / "xmc"
    folder.mkdir()
    (folder / "train.txt").write_text("1 2 2\n0 0:1.0\n")
    (folder / "label_names.txt").write_text("a\nb\n")
    assert load_dataset(folder).label_names == ["a", "b"]


def test_what_is_no_folder_and_what_is_no_vocabulary(tmp_path):
    (tmp_path / "a.tsv").write_text("a\t<u:1>\n")
    with pytest.raises(InvalidInput, match=r"a\.tsv is no folder; format='documents'"):
        load_dataset(tmp_path / "a.tsv", format="documents")
    with pytest.raises(InvalidInput, match=r"read it first: Vocabulary\.read"):
        load_dataset(tmp_path / "a.tsv", vocab="names.json")
    with pytest.raises(InvalidInput, match="are no URIs, as Annif's lines need"):
        data = load_dataset(tmp_path / "a.tsv")
        data.label_ids = ["two words"]
        from tailwise.data import write_dataset

        write_dataset(data, tmp_path / "b.tsv", "annif")


def test_a_label_twice_is_merged_unless_told(tmp_path):
    (tmp_path / "a.txt").write_text("sea")
    (tmp_path / "a.key").write_text("law\n<u:1>\nlaw\n")
    assert read_records(tmp_path, "documents")[1] == [["law", "u:1"]]
    with pytest.raises(DataFormatError, match="the label 'law' twice"):
        read_records(tmp_path, "documents", duplicates="refuse")
