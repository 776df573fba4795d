"""What other programs predicted: every format told by its content, every wrong line by its number."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

from tailwise.data import Rows, load_dataset, read_predictions
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.judging import judge

EXPECTED = [["7", "12"], [], ["3"]]
TEXTS = {
    "omikuji": "7 0.900\t12 0.100\n\n3 0.500\n",
    "napkinXC": "7:0.9 12:0.1 \n \n3:5e-1 \n",
    "repository": "3 20\n7:0.9 12:0.1\n\n3:0.5\n",
    "unsorted": "12:0.1 7:0.9\n\n3:0.5\n",
    "PECOS text2text": "\n".join(
        json.dumps({"schema": ["output_item", "score"], "data": data})
        for data in ([["7", 0.9], ["12", 0.1]], [], [["3", 0.5]])
    ),
    "two lists": '{"labels": [7, 12], "scores": [0.9, 0.1]}\n{"labels": []}\n{"labels": ["3"], "scores": [1]}\n',
    "labels alone": '{"labels": ["7", "12"]}\n{"labels": []}\n["3"]\n',
    "by label": '{"labels": {"12": 0.1, "7": 0.9}}\n{"labels": {}}\n{"labels": {"3": 0.5}}\n',
    "tailwise JSON": '{"row": 0, "labels": [{"id": "7", "score": 0.9}, {"id": "12", "score": 0.1}]}\n'
    '{"row": 1, "labels": []}\n{"row": 2, "labels": [{"id": "3", "score": 0.5}]}\n',
    "annif index": '{"text": "a", "results": [{"uri": "7", "label": "x", "notation": null, "score": 0.9}, '
    '{"uri": "12", "label": "y", "notation": null, "score": 0.1}]}\n{"results": []}\n'
    '{"document_id": "d", "results": [{"uri": "3", "label": "z", "notation": "n", "score": 0.5}]}\n',
    "annif's service": '[{"document_id": null, "results": [{"uri": "7", "score": 0.9},\n{"uri": "12", "score": 0.1}]}'
    ',\n{"results": []}, {"results": [{"uri": "3", "label": "z", "score": 0.5}]}]',
    "annif suggest": "Suggestions for a.txt\n<7>\tx\t0.9\n<12>\ty\tnotation\t0.1\nSuggestions for b.txt\n"
    "Suggestions for c.txt\n<3>\tz\t0.5\n",
    "tailwise CSV": "row,rank,id,name,score\n0,1,7,seven,0.9\n0,2,12,twelve,0.1\n2,1,3,three,0.5\n",
    "tailwise TSV": "row\trank\tid\tname\tscore\n0\t1\t7\tseven\t0.9\n0\t2\t12\ttwelve\t0.1\n2\t1\t3\tthree\t0.5\n",
}


def ranked(found):
    return [[found.label_ids[label] for label in row if label >= 0] for row in found.topk.labels.tolist()]


@pytest.mark.parametrize("kind", TEXTS)
def test_every_format_says_the_same(tmp_path, kind):
    (tmp_path / "p").write_text(TEXTS[kind])
    found = read_predictions(tmp_path / "p", 3, 4)
    assert ranked(found) == EXPECTED
    assert found.topk.labels.dtype == np.int32 and found.topk.scores.dtype == np.float32
    assert (np.isneginf(found.topk.scores) == (found.topk.labels < 0)).all()
    assert ranked(read_predictions(tmp_path / "p", 3, 1)) == [["7"], [], ["3"]]


PEERS = Path(__file__).parent / "peers"
FIGURES = {
    "napkinxc.txt": {"p@1": 30.0},
    "omikuji.txt": {"p@1": 35.0},
    "pecos.npz": {"p@1": 25.0, "p@2": 32.5, "p@3": 26.67, "p@5": 20.0, "recall@2": 28.75, "recall@5": 50.42},
}
"""What the programs say of themselves, with as many digits as they print."""


@pytest.mark.parametrize("name", FIGURES)
def test_what_programs_really_print_scores_as_they_score_it(name):
    data = load_dataset(PEERS / "test.txt")
    rows = Rows.of(data, "train")
    trial = judge({name: read_predictions(PEERS / name, rows.Y.shape[0], 5)}, rows, 5)
    found = trial.metrics(list(FIGURES[name]), None)[name]
    assert {metric: round(found[metric].value, 2) for metric in found} == FIGURES[name]


def test_a_sparse_matrix(tmp_path):
    scores = sparse.lil_array((3, 13), dtype=np.float64)
    scores[0, 7], scores[0, 12], scores[2, 3] = 0.9, -0.1, 0.5
    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        sparse.save_npz(tmp_path / "p.npz", kind(scores))
        found = read_predictions(tmp_path / "p.npz", 3, 2)
        assert ranked(found) == EXPECTED and len(found.label_ids) == 13


def test_equal_scores_rank_as_they_stand(tmp_path):
    (tmp_path / "p").write_text("9 0.500\t2 0.500\t4 0.700\n")
    assert ranked(read_predictions(tmp_path / "p", 1, 3)) == [["4", "9", "2"]]


def test_labels_with_spaces_and_colons(tmp_path):
    (tmp_path / "p").write_text("law of the sea 0.5\thttp://x.org/1 0.25\n")
    assert ranked(read_predictions(tmp_path / "p", 1, 2)) == [["law of the sea", "http://x.org/1"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: found an empty file"),
        ("7:0.9\nnapkinXC 0.6.2 - predict\n", r"line 2: found 'napkinXC 0.6.2 - predict'; expected label:score"),
        ("napkinXC - predict\n7:0.9\n", r"line 1: found 'napkinXC - predict'; expected 'label score' pairs"),
        ("7 0.9\t12\n1 1\n", "line 1: found"),
        ("7:nan\n", "line 1: found '7:nan'"),
        ('{"labels": ["7"], "scores": []}\n', "line 1: found .*expected JSON such as"),
        ('{"labels": [true]}\n', "line 1: .*expected JSON"),
        ('{"labels": ["7"]}\n{"labels"\n', "line 2: .*expected JSON"),
        ("7:0.9 7:0.1\n1:1\n", "line 1: found a label twice"),
        ("7:0.9\n", r"found 1 rows; expected 2, one for each row"),
        ("row,id,score\n5,7,0.9\n", r"line 2: found '5'; expected a row from 0 to 1"),
        ("row,id,score\n1,7,much\n", r"line 2: found 'much'; expected a label and its score"),
    ],
)
def test_refusals_name_file_and_line(tmp_path, text, message):
    (tmp_path / "p.txt").write_text(text)
    with pytest.raises(DataFormatError, match=rf"p.txt(, )?(: )?{message}"):
        read_predictions(tmp_path / "p.txt", 2, 5)


def test_refused_matrices(tmp_path):
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_array(np.eye(3)))
    with pytest.raises(DataFormatError, match=r"p.npz: found 3 rows; expected 2"):
        read_predictions(tmp_path / "p.npz", 2, 5)
    np.savez(tmp_path / "p.npz", other=np.ones(3))
    with pytest.raises(DataFormatError, match=r"expected a sparse matrix that scipy.sparse.save_npz wrote"):
        read_predictions(tmp_path / "p.npz", 2, 5)
    np.savez(
        tmp_path / "p.npz", format=b"csr", data=np.ones(1), indices=np.array([9]), indptr=np.array([0, 1]), shape=(1, 2)
    )
    with pytest.raises((DataFormatError, InvalidInput)):
        read_predictions(tmp_path / "p.npz", 1, 5)
    (tmp_path / "p.npz").write_bytes(b"PK\x03\x04 and nothing else")
    with pytest.raises(DataFormatError, match="damaged or foreign"):
        read_predictions(tmp_path / "p.npz", 1, 5)


PIECES = st.sampled_from(
    [
        *TEXTS.values(),
        "\n",
        "\t",
        " ",
        ":",
        "7",
        "0.5",
        "1e999",
        "9" * 30,
        "nan",
        "{",
        "}",
        '"',
        "[",
        "]",
        ",",
        "\0",
        "é",
        "inf",
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, max_size=8).map("".join).map(str.encode) | st.binary(max_size=60))
def test_whatever_a_file_holds_is_read_or_refused(tmp_path, data):
    (tmp_path / "p").write_bytes(data)
    try:
        found = read_predictions(tmp_path / "p", 3, 2)
    except DataFormatError:
        return
    assert found.topk.labels.shape == (3, 2)
    assert found.topk.labels.max() < max(1, len(found.label_ids))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_changed_byte_of_a_matrix_is_read_or_refused(tmp_path, at, byte):
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_array(np.eye(3)), compressed=False)
    data = bytearray((tmp_path / "p.npz").read_bytes())
    data[at % len(data)] = byte
    (tmp_path / "p.npz").write_bytes(data)
    with contextlib.suppress(DataFormatError):
        read_predictions(tmp_path / "p.npz", 3, 2)


def test_a_folder_of_annif_files(tmp_path):
    for name, text in {"b": "", "c": "<3>\tz\t0.5\n", "a": "<7>\tx\t0.9\n<12>\ty\t1.2\t0.1\n"}.items():
        (tmp_path / f"{name}.annif").write_text(text)
    assert ranked(read_predictions(tmp_path, 3, 4)) == EXPECTED
    assert ranked(read_predictions(tmp_path, 2, 4, names=["c", "a"])) == [["3"], ["7", "12"]]
    with pytest.raises(DataFormatError, match=r"found no d\.annif; expected a file"):
        read_predictions(tmp_path, 1, 4, names=["d"])
    with pytest.raises(DataFormatError, match="found 3 rows; expected 2"):
        read_predictions(tmp_path, 2, 4)
    (tmp_path / "b.annif").write_text("<7>\tx\t0.9\n7 0.9\n")
    with pytest.raises(DataFormatError, match=r"b\.annif, line 2: found '7 0\.9'; expected <uri>⇥label⇥score"):
        read_predictions(tmp_path, 3, 4)


def test_one_document_as_annif_suggest_prints_it(tmp_path):
    (tmp_path / "p").write_text("<7>\tx\t0.9\n<12>\ty\t0.1\n")
    assert ranked(read_predictions(tmp_path / "p", 1, 4)) == [["7", "12"]]
    (tmp_path / "p").write_text('{"results": [{"uri": "7"}]}')
    with pytest.raises(DataFormatError, match="an answer without labels and scores, number 1"):
        read_predictions(tmp_path / "p", 1, 4)
