"""libsvm, ARFF and texts: what they hold is read, what is malformed is refused with its line."""

import json
import lzma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import data as naive
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from tailwise.data import (
    load_dataset,
    read_arff,
    read_libsvm,
    read_libsvm_files,
    read_mulan_labels,
    read_records,
    read_texts,
    write_libsvm,
    write_records,
    write_xmc,
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
    @pytest.mark.parametrize("base", [0, 1])
    def test_equals_scikit_learn(self, tmp_path, base):
        X, Y = _random(np.random.default_rng(1))
        write_libsvm(tmp_path / "a.svm", X, Y, feature_base=base)
        theirs, labels = load_svmlight_file(tmp_path / "a.svm", multilabel=True, zero_based=base == 0, n_features=12)
        ours, Y_read = read_libsvm(tmp_path / "a.svm")
        assert (theirs.toarray().astype(np.float32) == ours.toarray()).all()
        assert [tuple(np.flatnonzero(row)) for row in Y_read.toarray()] == [
            tuple(int(i) for i in row) for row in labels
        ]
        assert (ours.toarray() == X.toarray()).all() and (Y_read.toarray() == Y.toarray()).all()

    def test_comments_and_where_counting_starts(self, tmp_path):
        path = _put(tmp_path, "# a note\n1,2 1:0.5 3:1 # end\n\n2 2:1\n 1:4\n", "a.svm")
        X, Y = read_libsvm(path, label_base=1, feature_base=1)
        assert X.toarray().tolist() == [[0.5, 0, 1], [0, 1, 0], [4, 0, 0]]
        assert Y.toarray().tolist() == [[1, 1], [0, 1], [0, 0]]
        X, Y = read_libsvm(path, label_base=0, feature_base=0)
        assert X.shape == (3, 4) and Y.toarray().tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
        X, Y = read_libsvm(_put(tmp_path, "0 0:1 2:1\n", "b.svm"))
        assert X.shape == (1, 3) and Y.shape == (1, 1)

    def test_labels_are_never_guessed_and_features_only_with_a_word(self, tmp_path):
        path = _put(tmp_path, "1 1:1\n2 2:1\n", "a.svm")
        with pytest.raises(DataFormatError, match=r"a.svm: found labels from 1, .*label_base=0 or label_base=1"):
            read_libsvm(path)
        with pytest.warns(UserWarning, match="features are taken to count from 1, .*feature_base=0"):
            assert read_libsvm(path, label_base=0)[0].shape == (2, 2)
        unlabelled = _put(tmp_path, " 0:1\n", "b.svm")
        assert read_libsvm(unlabelled)[1].shape == (1, 1)

    def test_files_are_aligned(self, tmp_path):
        first = _put(tmp_path, "1 1:1\n", "a.svm")
        second = _put(tmp_path, "0,3 2:1 5:1\n", "b.svm")
        (X_a, Y_a), (X_b, Y_b) = read_libsvm_files([first, second], feature_base=1)
        assert X_a.shape[1] == X_b.shape[1] == 5
        assert Y_a.toarray().tolist() == [[0, 1, 0, 0]] and Y_b.toarray().tolist() == [[1, 0, 0, 1]]

    def test_what_one_file_tells_holds_for_the_other(self, tmp_path):
        write_libsvm(tmp_path / "a.svm", [[0, 2.0, 0]], [[0, 1, 0]])
        plain = _put(tmp_path, "2 2:3\n", "b.svm")
        (X_a, Y_a), (X_b, Y_b) = read_libsvm_files([tmp_path / "a.svm", plain])
        assert Y_a.toarray().tolist() == [[0, 1, 0]] and Y_b.toarray().tolist() == [[0, 0, 1]]
        assert X_a.toarray().tolist() == [[0, 2, 0]] and X_b.toarray().tolist() == [[0, 3, 0]]
        with pytest.raises(
            DataFormatError, match=r"line 1: found labels from 0; .*labels from 1, as label_base=1 says"
        ):
            read_libsvm(tmp_path / "a.svm", label_base=1)
        write_libsvm(tmp_path / "c.svm", [[0, 2.0]], [[0, 1, 0]])
        with pytest.raises(DataFormatError, match=r"c.svm, line 1: found n features 2; expected n features 3"):
            read_libsvm_files([tmp_path / "a.svm", tmp_path / "c.svm"])
        with pytest.raises(DataFormatError, match=r"b.svm: found 9 features; expected 3, as the other file says"):
            read_libsvm_files([tmp_path / "a.svm", _put(tmp_path, "2 9:3\n", "b.svm")])

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            (
                ": 1 rows, 2 features from 1, 3 labels from 0\n3 1:1\n",
                "line 2: found '3'; expected a label from 0 to 2",
            ),
            (": 1 rows, 2 features from 1, 3 labels from 0\n0 3:1\n", "line 2: found '3:1'"),
            (": 1 rows, 2 features from 1, 3 labels from 0\n0 0:1\n", "line 2: found feature 0 in row 1"),
            (": 2 rows, 2 features from 1, 3 labels from 0\n0 1:1\n", "line 2: found the end of the file after 1 rows"),
            (": 0 rows, 2 features from 1, 3 labels from 0\n0 1:1\n", "line 2: found a row more"),
            (": 1 rows, 2 features from 2, 3 labels from 0\n0 1:1\n", "line 1: .*expected a header such as"),
            (": 1 rows, 0 features from 1, 3 labels from 0\n0 1:1\n", "line 1: .*expected a header such as"),
            (" of mine\n0 1:1\n", "line 1: .*expected a header such as"),
        ],
    )
    def test_bad_headers(self, tmp_path, text, problem):
        with pytest.raises(DataFormatError, match=problem):
            read_libsvm(_put(tmp_path, "# tailwise libsvm" + text, "a.svm"))

    def test_a_test_file_read_alone_means_the_same_as_in_xmc(self, tmp_path):
        X, Y = _random(np.random.default_rng(2))
        Y = Y.tolil()
        Y[:, 0] = 0
        for write, name in ((write_libsvm, "test.svm"), (write_xmc, "test.txt")):
            write(tmp_path / name, X, Y)
        rows = [load_dataset(tmp_path / name) for name in ("test.svm", "test.txt")]
        assert (rows[0].Y_train.toarray() == rows[1].Y_train.toarray()).all() and rows[0].n_labels == 6
        assert (rows[0].X_train.toarray() == rows[1].X_train.toarray()).all()

    def test_refusals(self, tmp_path):
        path = _put(tmp_path, "# note\n0 1:1\n0 1:1 qid:3\n", "a.svm")
        with pytest.raises(DataFormatError, match="line 3: found 'qid:3'; expected index:value"):
            read_libsvm(path)
        path = _put(tmp_path, "# note\n\n0 1:1 2:1 1:3\n", "a.svm")
        with pytest.raises(DataFormatError, match="line 3: found feature 1 twice"):
            read_libsvm(path)
        with pytest.raises(DataFormatError, match="found no row"):
            read_libsvm(_put(tmp_path, "# nothing\n", "a.svm"))
        path = _put(tmp_path, "0 1:1\n0 0:1 9:1\n", "a.svm")
        with pytest.raises(DataFormatError, match=r"feature 0 in row 2; .*feature_base=0\?"):
            read_libsvm(path, feature_base=1)
        with pytest.raises(InvalidInput, match=r"n_features=5, but .* needs 10"):
            read_libsvm(path, n_features=5)
        with pytest.raises(InvalidInput, match="label_base=2 is not one of 0, 1, None"):
            read_libsvm(path, label_base=2)
        path = _put(tmp_path, "0 1:3e38 1:3e38\n", "a.svm")
        with pytest.raises(DataFormatError, match="line 1: found a feature whose values add up to infinity"):
            read_libsvm(path, feature_base=1, duplicates="merge")


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
            ("{}", "{0 2}", "line 11: found '2'; expected one of '0', '1' for the attribute 'word'"),
            ("{}", "{2 ?}", r"line 11: found '\?'; expected a finite number"),
            ("{}", "{2 inf}", "line 11: found 'inf'; expected a finite number"),
            ("{}", "{2 1_0}", "line 11: found '1_0'; expected a finite number"),
            ("{}", "{2 \u0661}", "line 11: found '\u0661'; expected a finite number"),
            ("{}", "{2 3.5e38}", "line 11: found '3.5e38'; expected a finite number"),
            ("{}", "{2 '1}", 'line 11: found "2 \'1"; expected entries'),
            ("{}", "{\u0662 1}", "line 11: found '\u0662 1'; expected entries"),
            ("{red, blue}", "{red, red}", "line 8: found '{red, red}'; expected values that differ"),
            ("{red, blue}", "{red,,blue}", "line 8: found ''; expected values such as"),
            ("{red, blue}", "{red} blue", "line 8: found an attribute of type"),
            ("size numeric", "'' numeric", "line 6: .*expected a name that is not empty"),
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

    def test_quoted_values_and_line_ends(self, tmp_path):
        text = "@attribute a {'x,y',\"it's\", 'q\\'}'}\r\n@attribute 'b\u2028c' numeric\n@attribute l {0,1}\n@data\n"
        rows = "{0 'x,y'}\n{0 \"it's\",1 2}\r\n{0 'q\\'}', 2 '1'}\n"
        X, Y, names, _ = read_arff(_put(tmp_path, text + rows, "a.arff"), ["l"])
        assert names == ["a", "b\u2028c"]
        assert X.toarray().tolist() == [[0, 0], [1, 2], [2, 0]] and Y.toarray().tolist() == [[0], [0], [1]]

    @pytest.mark.parametrize("xml", ["<labels>", "<labels/>", "<labels><label/></labels>", "<!DOCTYPE a><labels/>"])
    def test_bad_xml(self, tmp_path, xml):
        with pytest.raises(DataFormatError):
            read_mulan_labels(_put(tmp_path, xml, "toy.xml"))

    @pytest.mark.parametrize("around", ["<!-- {} -->", "<?note {}?>"])
    def test_a_declaration_that_is_only_spoken_of(self, tmp_path, around):
        xml = around.format("<!DOCTYPE a>") + '<labels><label name="law"/></labels>'
        path = _put(tmp_path, xml, "toy.xml")
        assert read_mulan_labels(path) == naive.parse_xml(path.read_bytes()) == ["law"]


_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
_LABEL = st.text(st.characters(exclude_categories=("Cs", "Z", "C"), exclude_characters=";|,["), min_size=1, max_size=6)


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
            ("body,labels\na,b\n", r"line 1: found the columns body, labels; expected a column 'text', or name them"),
            ("text,topics\na,b\n", r"line 1: found the columns text, topics; expected a column 'labels', or name it"),
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
