"""libsvm, ARFF and texts: what they hold is read, what is malformed is refused with its line."""

import json
import lzma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from tailwise.data import (
    read_arff,
    read_libsvm,
    read_libsvm_files,
    read_mulan_labels,
    read_records,
    read_texts,
    write_libsvm,
    write_records,
)
from tailwise.errors import DataFormatError, InvalidInput


def _put(folder, text, name):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def _random(rng, n_rows=40):
    X = sparse.random_array((n_rows, 12), density=0.3, rng=rng, format="csr", dtype=np.float32)
    Y = sparse.csr_array(sparse.random_array((n_rows, 6), density=0.3, rng=rng, format="csr") > 0).astype(np.float32)
    return X, Y


class TestLibsvm:
    @pytest.mark.parametrize("zero_based", [True, False])
    def test_equals_scikit_learn(self, tmp_path, zero_based):
        X, Y = _random(np.random.default_rng(1))
        write_libsvm(tmp_path / "a.svm", X, Y, zero_based=zero_based)
        theirs, labels = load_svmlight_file(tmp_path / "a.svm", multilabel=True, zero_based=zero_based, n_features=12)
        ours, Y_read = read_libsvm(tmp_path / "a.svm", n_features=12, n_labels=6)
        assert (theirs.toarray().astype(np.float32) == ours.toarray()).all()
        assert [tuple(np.flatnonzero(row)) for row in Y_read.toarray()] == [
            tuple(int(i) for i in row) for row in labels
        ]
        assert (ours.toarray() == X.toarray()).all() and (Y_read.toarray() == Y.toarray()).all()

    def test_comments_and_where_counting_starts(self, tmp_path):
        path = _put(tmp_path, "# a note\n1,2 1:0.5 3:1 # end\n\n2 2:1\n 1:4\n", "a.svm")
        X, Y = read_libsvm(path)
        assert X.toarray().tolist() == [[0.5, 0, 1], [0, 1, 0], [4, 0, 0]]
        assert Y.toarray().tolist() == [[1, 1], [0, 1], [0, 0]]
        X, Y = read_libsvm(path, zero_based=True)
        assert X.shape == (3, 4) and Y.shape == (3, 3)

    def test_files_are_aligned(self, tmp_path):
        first = _put(tmp_path, "1 1:1\n", "a.svm")
        second = _put(tmp_path, "3 2:1 5:1\n", "b.svm")
        (X_a, Y_a), (X_b, Y_b) = read_libsvm_files([first, second])
        assert X_a.shape[1] == X_b.shape[1] == 5 and Y_a.shape[1] == Y_b.shape[1] == 3

    def test_refusals(self, tmp_path):
        path = _put(tmp_path, "# note\n0 1:1\n0 1:1 qid:3\n", "a.svm")
        with pytest.raises(DataFormatError, match="line 3: found 'qid:3'; expected index:value"):
            read_libsvm(path)
        path = _put(tmp_path, "# note\n\n0 1:1 2:1 1:3\n", "a.svm")
        with pytest.raises(DataFormatError, match="line 3: found feature 1 twice"):
            read_libsvm(path)
        with pytest.raises(DataFormatError, match="found no row"):
            read_libsvm(_put(tmp_path, "# nothing\n", "a.svm"))
        path = _put(tmp_path, "0 0:1 9:1\n", "a.svm")
        with pytest.raises(InvalidInput, match="zero_based=True"):
            read_libsvm(path, zero_based=False)
        with pytest.raises(InvalidInput, match=r"n_features=5, but .* needs 10"):
            read_libsvm(path, n_features=5)


_XML = """<?xml version="1.0"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="law"><label name="it's"/></label></labels>"""
_ARFF = """% a comment
@RELATION toy

@attribute word {0,1}
@attribute 'it\\'s' {0,1}
@attribute size numeric
@attribute law {0,1}
@attribute colour {red, blue}
@DATA
{0 1,3 1}
{}
{ 2 -1.5 , 1 1,4 blue}
% the last
{0 0,2 0.0, 3 0}
"""


class TestArff:
    def test_reads_labels_by_name(self, tmp_path):
        xml = _put(tmp_path, lzma.compress(_XML.encode()), "toy.xml.xz")
        X, Y, feature_names, label_names = read_arff(_put(tmp_path, _ARFF, "toy.arff"), xml)
        assert feature_names == ["word", "size", "colour"] and label_names == ["law", "it's"]
        assert X.toarray().tolist() == [[1, 0, 0], [0, 0, 0], [0, -1.5, 1], [0, 0, 0]]
        assert Y.toarray().tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]

    @pytest.mark.parametrize(
        ("old", "new", "problem"),
        [
            ("{}", "1,0,0,1,red", "line 11: found '1,0,0,1,red'; expected a sparse row"),
            ("{}", "{9 1}", "line 11: found '9 1'; expected an attribute from 0 to 4"),
            ("{}", "{x 1}", "line 11: found 'x 1'; expected entries"),
            ("{}", "{1}", "line 11: found '1'; expected entries"),
            ("{}", "{0 1,}", "line 11: found ''; expected entries"),
            ("{}", "{0 1,0 1}", "line 11: found attribute 0 twice"),
            ("{}", "{0 2}", "line 11: found '2'; expected one of 0, 1 for the attribute 'word'"),
            ("{}", "{2 ?}", r"line 11: found '\?'; expected a finite number"),
            ("{}", "{2 inf}", "line 11: found 'inf'; expected a finite number"),
            ("law {0,1}", "law numeric", None),
            ("law {0,1}", "laws {0,1}", "line 9: found no attribute 'law'"),
            ("size numeric", "size string", "line 6: found an attribute of type 'string'"),
            ("size numeric", "word numeric", "line 6: found attribute 'word' twice"),
            ("@attribute size", "@atribute size", "line 6: found '@atribute size numeric'"),
            ("@DATA", "", "line 10: found '{0 1,3 1}'"),
        ],
    )
    def test_refusals(self, tmp_path, old, new, problem):
        path = _put(tmp_path, _ARFF.replace(old, new), "toy.arff")
        if problem is None:
            assert read_arff(path, ["law"]).Y.nnz == 1
            return
        with pytest.raises(DataFormatError, match=problem):
            read_arff(path, ["law", "it's"])

    @pytest.mark.parametrize("xml", ["<labels>", "<labels/>", "<labels><label/></labels>", "<!DOCTYPE a><labels/>"])
    def test_bad_xml(self, tmp_path, xml):
        with pytest.raises(DataFormatError):
            read_mulan_labels(_put(tmp_path, xml, "toy.xml"))


_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
_LABEL = st.text(st.characters(exclude_categories=("Cs", "Z", "C"), exclude_characters=";"), min_size=1, max_size=6)


class TestRecords:
    @settings(max_examples=25, deadline=None)
    @given(st.lists(st.tuples(_TEXT, st.lists(_LABEL, unique=True, max_size=3)), min_size=1, max_size=5))
    def test_round_trips(self, tmp_path_factory, records):
        texts, labels = [text for text, _ in records], [row for _, row in records]
        folder = tmp_path_factory.mktemp("records")
        for format, name in (("jsonl", "a.jsonl.gz"), ("csv", "a.csv"), ("tsv", "a.tsv.xz"), ("parquet", "a.parquet")):
            write_records(folder / name, format, texts, labels)
            assert read_records(folder / name, format) == (texts, labels)
            assert read_texts(folder / name, format) == texts

    def test_columns_and_separator(self, tmp_path):
        path = _put(tmp_path, "id,title,abstract,subjects\n1,Sea,Law of the sea,a|b\n2,Sky,,\n", "a.csv")
        found = read_records(path, "csv", label_separator="|")
        assert found.texts == ["Sea\nLaw of the sea", "Sky"] and found.labels == [["a", "b"], []]
        found = read_records(path, "csv", text_columns="title", label_column="id")
        assert found.texts == ["Sea", "Sky"] and found.labels == [["1"], ["2"]]
        path = _put(tmp_path, '{"title": "Sea", "abstract": null, "labels": [3, "b"]}\r\n', "a.jsonl")
        assert read_records(path, "jsonl") == (["Sea"], [["3", "b"]])

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            ("{", "line 2: found '{'; expected a JSON object"),
            ("", "line 2: found ''; expected a JSON object"),
            ("[1]", r"line 2: found '\[1\]'; expected a JSON object such as"),
            ('{"labels": []}', "line 2: found the columns labels; expected the text column 'text'"),
            ('{"text": 1, "labels": []}', "line 2: found '1'; expected a text in the column 'text'"),
            ('{"text": "a"}', "line 2: found the columns text; expected the label column 'labels'"),
            ('{"text": "a", "labels": 1}', "line 2: found '1'; expected a list of labels"),
            ('{"text": "a", "labels": [1.5]}', "line 2: found '1.5'; expected a label that is"),
            ('{"text": "a", "labels": [""]}', "line 2: found \"''\"; expected a label that is"),
            ('{"text": "a", "labels": ["b", "b"]}', "line 2: found the label 'b' twice"),
            (b'{"text": "\xff", "labels": []}', "line 2: found bytes that are not UTF-8"),
        ],
    )
    def test_bad_json_lines(self, tmp_path, line, problem):
        line = line if isinstance(line, bytes) else line.encode()
        good = b'{"text": "a", "labels": ["x"]}\n'
        with pytest.raises(DataFormatError, match=problem):
            read_records(_put(tmp_path, good + line + b"\n" + good, "a.jsonl"), "jsonl")

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "line 1: found an empty file"),
            ("text,labels\n", "found no row"),
            ("text,text\n", "line 1: .*column names that differ"),
            ("text,labels\na,b\nc\n", "line 3: found 1 columns; expected 2 columns"),
            ("text,labels\na,b\n\n", "line 3: found an empty line"),
            ('text,labels\n"a\nb",c\nd,e,f\n', "line 4: found 3 columns"),
            ('text,labels\n"a"b,c\n', "line 2: .*expected quotes that open and close"),
            ('text,labels\n"a,c\n', "expected quotes that open and close"),
            ("text,labels\na,b;;c\n", "line 2: .*expected a label that is"),
            ("body,labels\na,b\n", r"line 2: found the columns body, labels; expected a column 'text', or name them"),
            ("text,topics\na,b\n", r"line 2: found the columns text, topics; expected a column 'labels', or name it"),
        ],
    )
    def test_bad_csv(self, tmp_path, text, problem):
        with pytest.raises(DataFormatError, match=problem):
            read_records(_put(tmp_path, text, "a.csv"), "csv")

    def test_other_refusals(self, tmp_path):
        with pytest.raises(DataFormatError, match=r"line 2: .*text in UTF-8"):
            read_records(_put(tmp_path, b"text,labels\n\xff,b\n", "a.csv"), "csv")
        with pytest.raises(DataFormatError, match="a Parquet file"):
            read_records(_put(tmp_path, "PAR1 nothing", "a.parquet"), "parquet")
        with pytest.raises(InvalidInput, match="choose another label_separator"):
            write_records(tmp_path / "b.csv", "csv", ["a"], [["x;y"]])
        with pytest.raises(InvalidInput, match="labels has 2 rows but texts has 1"):
            write_records(tmp_path / "b.csv", "csv", ["a"], [["x"], []])
        assert not (tmp_path / "b.csv").exists()
        merged = _put(tmp_path, json.dumps({"text": "a", "labels": ["b", "c", "b"]}), "c.jsonl")
        assert read_records(merged, "jsonl", duplicates="merge").labels == [["b", "c"]]
