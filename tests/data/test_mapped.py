import json
import tracemalloc
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from strategies import sparse_rows

import tailwise
from tailwise.data import convert, load_dataset, mapped, write_libsvm, write_xmc
from tailwise.data.mapped import is_rows, read_rows, write_rows
from tailwise.errors import DataFormatError, InvalidInput
from tailwise.rows import unit_rows


def same(a, b):
    assert a.shape == b.shape
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(a, part), getattr(b, part))


@pytest.fixture
def rows():
    data = tailwise.make_longtail(400, 90, 30, test_fraction=0, random_state=0)
    return data.X_train, data.Y_train


@given(X=sparse_rows((1, 12), 9, signed=True), cuts=st.lists(st.integers(0, 12), max_size=4))
def test_rows_come_back_whatever_parts_they_came_in(X, cuts, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "a.rows"
    Y = sparse.csr_array((X != 0).astype(np.float32))
    ends = [0, *sorted(min(cut, X.shape[0]) for cut in cuts), X.shape[0]]
    write_rows(path, ((X[a:b], Y[a:b]) for a, b in pairwise(ends)), n_features=9, n_labels=9)
    found = read_rows(path)
    same(found[0], unit_rows(X))
    same(found[1], Y)


@pytest.mark.parametrize("kind", ["xmc", "libsvm", "libsvm without header"])
def test_a_file_is_streamed_to_what_reading_it_gives(kind, rows, tmp_path):
    source, target = tmp_path / ("a.txt" if kind == "xmc" else "a.svm"), tmp_path / "a.rows"
    reading = {}
    if kind == "xmc":
        write_xmc(source, *rows)
    else:
        write_libsvm(source, *rows, header=kind == "libsvm")
        reading = {} if kind == "libsvm" else {"label_base": 0, "feature_base": 1}
    assert convert(source, target, **reading) == [target]
    expected, found = load_dataset(source, **reading), load_dataset(target)
    same(found.X_train, expected.X_train)
    same(found.Y_train, expected.Y_train)
    assert not found.X_train.data.flags.writeable


def test_models_learn_the_same_bits_from_mapped_rows(rows, tmp_path):
    write_xmc(tmp_path / "a.txt", *rows)
    convert(tmp_path / "a.txt", tmp_path / "a.rows")
    tops = []
    for name in ("a.txt", "a.rows"):
        data = load_dataset(tmp_path / name)
        models = (tailwise.DiSMEC(random_state=0), tailwise.Bonsai(random_state=0, max_leaf=5))
        tops += [model.fit(data.X_train, data.Y_train).predict_topk(data.X_train[:50]) for model in models]
    for a, b in zip(tops[:2], tops[2:], strict=True):
        np.testing.assert_array_equal(a.labels, b.labels)
        np.testing.assert_array_equal(a.scores, b.scores)


def test_training_and_test_rows_lie_side_by_side(rows, tmp_path):
    data = tailwise.make_longtail(300, 60, 20, random_state=0)
    convert_to = tmp_path / "both"
    from tailwise.data import write_dataset

    write_dataset(data, convert_to, "rows")
    found = load_dataset(convert_to)
    same(found.X_test, unit_rows(data.X_test))
    same(found.Y_train, data.Y_train)


def test_memory_does_not_grow_with_the_file(tmp_path):
    line = b"1,2 " + b" ".join(b"%d:0.5" % i for i in range(0, 400, 2)) + b"\n"
    peaks = {}
    for thousands in (30, 30, 120):
        with (tmp_path / "large.txt").open("wb") as file:
            file.write(b"%d 400 3\n" % (1000 * thousands))
            for _ in range(thousands):
                file.write(line * 1000)
        tracemalloc.start()
        convert(tmp_path / "large.txt", tmp_path / "large.rows", n_jobs=1)
        peaks[thousands] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    X, _ = read_rows(tmp_path / "large.rows")
    assert X.nnz == 24_000_000
    assert peaks[120] < 1.2 * peaks[30]


def test_a_malformed_line_is_refused_and_nothing_is_left(tmp_path):
    (tmp_path / "a.txt").write_text("2 5 3\n0 1:1\n1 oops\n")
    with pytest.raises(DataFormatError, match="line 3"):
        convert(tmp_path / "a.txt", tmp_path / "a.rows")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("rows_told", [1, 3])
def test_another_number_of_rows_than_the_header_says_is_refused(rows_told, tmp_path):
    (tmp_path / "a.txt").write_text(f"{rows_told} 5 3\n0 1:1\n1 2:1\n")
    with pytest.raises(DataFormatError, match=f"{rows_told} rows, as the header says"):
        convert(tmp_path / "a.txt", tmp_path / "a.rows")


def test_rows_are_replaced_whole_and_foreign_folders_are_not(rows, tmp_path):
    X, Y = rows
    for n in (100, 50):
        write_rows(tmp_path / "a.rows", [(X[:n], Y[:n])])
        assert read_rows(tmp_path / "a.rows")[0].shape[0] == n
    assert len(list((tmp_path / "a.rows").iterdir())) == 7
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README").write_text("x")
    with pytest.raises(InvalidInput, match="holds no rows"):
        write_rows(tmp_path / "mine", [(X, Y)])
    assert not is_rows(tmp_path / "mine")


@pytest.mark.parametrize(
    "damage", ["flip", "truncate", "odd", "missing", "index", "facts", "shape", "format", "symlink", "rows", "outside"]
)
def test_damage_is_refused(damage, rows, tmp_path):
    X, Y = rows
    folder = tmp_path / "a.rows"
    write_rows(folder, [(X, Y)])
    (file,) = folder.glob("X.indices-*")
    facts = json.loads((folder / "rows.json").read_text())
    data = bytearray(file.read_bytes())
    if damage == "flip":
        data[100] ^= 4
        file.write_bytes(data)
    elif damage in ("truncate", "odd"):
        file.write_bytes(data[: -4 if damage == "truncate" else -3])
    elif damage == "missing":
        file.unlink()
    elif damage == "symlink":
        file.rename(tmp_path / "elsewhere")
        file.symlink_to(tmp_path / "elsewhere")
    elif damage == "index":
        import hashlib

        data[:4] = (10**6).to_bytes(4, "little")
        file.write_bytes(data)
        facts["X"]["files"]["indices"]["sha256"] = hashlib.sha256(data).hexdigest()
    elif damage == "facts":
        facts = []
    elif damage == "shape":
        facts["X"]["shape"] = [5, -1]
    elif damage == "outside":
        file.rename(tmp_path / "elsewhere")
        facts["X"]["files"]["indices"]["name"] = "../elsewhere"
    elif damage == "format":
        facts["format_version"] = 99
    elif damage == "rows":
        write_rows(tmp_path / "b.rows", [(X[:5], Y[:5])])
        for other in (tmp_path / "b.rows").glob("Y.*"):
            other.replace(folder / other.name)
        facts["Y"] = json.loads((tmp_path / "b.rows" / "rows.json").read_text())["Y"]
    (folder / "rows.json").write_text(json.dumps(facts))
    with pytest.raises(DataFormatError, match="write it again"):
        read_rows(folder)


def test_rows_are_there_at_every_moment_of_a_second_writing(rows, tmp_path, monkeypatch):
    X, Y = rows
    folder = tmp_path / "a.rows"
    write_rows(folder, [(X, Y)])
    seen = []
    for name in ("rename", "replace"):
        step = getattr(Path, name)

        def looked_at(self, target, step=step):
            seen.append(read_rows(folder)[0].shape[0])
            done = step(self, target)
            seen.append(read_rows(folder)[0].shape[0])
            return done

        monkeypatch.setattr(Path, name, looked_at)
    write_rows(folder, [(X[:50], Y[:50])])
    assert seen[0] == X.shape[0] and seen[-1] == 50 and set(seen) == {X.shape[0], 50}
    assert sorted(seen, reverse=True) == seen


def test_a_reader_goes_on_with_the_rows_that_replaced_those_it_began_with(rows, tmp_path, monkeypatch):
    X, Y = rows
    folder = tmp_path / "a.rows"
    write_rows(folder, [(X, Y)])
    stale = mapped._facts_at(folder)
    write_rows(folder, [(X[:50], Y[:50])])
    answers = iter([stale])
    real = mapped._facts_at
    monkeypatch.setattr(mapped, "_facts_at", lambda path: next(answers, None) or real(path))
    assert read_rows(folder)[0].shape[0] == 50
