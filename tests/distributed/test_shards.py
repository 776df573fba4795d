import hashlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from tailwise.distributed.shards import is_sound, read_shard, shard_digest, write_shard
from tailwise.errors import InvalidInput, ModelFileError
from tailwise.topk import TopK

FACTS = {"site": 3, "blocks": [0, 2], "of": 7}


def assert_equal(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    elif sparse.issparse(expected):
        assert (found != expected).nnz == 0
    elif isinstance(expected, dict):
        assert_equal(list(found.items()), list(expected.items()))
    elif isinstance(expected, list | tuple):
        for a, b in zip(found, expected, strict=True):
            assert_equal(a, b)
    else:
        assert found == expected


VALUES = [
    [],
    [None, True, 3, 0.1, "naïve", "\ud800"],
    [np.arange(5, dtype=np.int64), np.empty((0, 3), np.float32), np.float32(2.5), np.array(7.0)],
    [(np.ones(3, bool), [np.array(["a", "bc"])]), TopK(np.zeros((1, 2), np.int32), np.ones((1, 2), np.float32))],
    [sparse.csr_array(np.eye(4, dtype=np.float32)), {"a": 1, "b": np.arange(3)}],
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_what_is_written_comes_back(value, tmp_path):
    digest = write_shard(tmp_path / "a.shard", value, FACTS)
    assert_equal(read_shard(tmp_path / "a.shard", FACTS), value)
    assert is_sound(tmp_path / "a.shard")
    assert_equal(read_shard(tmp_path / "a.shard", FACTS, sound=True), value)
    whole = (tmp_path / "a.shard").read_bytes()
    assert digest == shard_digest(tmp_path / "a.shard") == hashlib.sha256(whole[:-32]).hexdigest()


def test_arrays_are_mapped_and_aligned(tmp_path):
    write_shard(tmp_path / "a", [np.ones(3, np.uint8), np.ones(5), np.ones(2, np.int64)], FACTS)
    for array in read_shard(tmp_path / "a", FACTS):
        assert array.flags.aligned and not array.flags.writeable


def test_the_same_value_is_the_same_file(tmp_path):
    value = [np.arange(10), "x"]
    assert write_shard(tmp_path / "a", value, FACTS) == write_shard(tmp_path / "b", value, FACTS)


@given(at=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
def test_a_changed_byte_is_refused(at, change, tmp_path_factory):
    path = tmp_path_factory.mktemp("shard") / "a"
    write_shard(path, [np.arange(20, dtype=np.float32), {"k": [1, 2]}], FACTS)
    data = bytearray(path.read_bytes())
    data[int(at * len(data))] ^= change
    path.write_bytes(data)
    assert not is_sound(path)
    with pytest.raises(ModelFileError, match="is no piece of this run"):
        read_shard(path, FACTS)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 60])
def test_a_torn_file_is_refused(size, tmp_path):
    write_shard(tmp_path / "a", [np.arange(20)], FACTS)
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:size])
    assert not is_sound(tmp_path / "a") and not is_sound(tmp_path / "b")
    with pytest.raises(ModelFileError):
        read_shard(tmp_path / "a", FACTS)


def test_another_piece_is_refused(tmp_path):
    write_shard(tmp_path / "a", [1], FACTS)
    with pytest.raises(ModelFileError, match=r"its blocks is \[0, 2\], not \[2, 4\]"):
        read_shard(tmp_path / "a", {**FACTS, "blocks": [2, 4]})


def test_what_cannot_be_saved_is_refused_before_a_file_appears(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be saved"):
        write_shard(tmp_path / "a", [np.array([object()])], FACTS)
    with pytest.raises(InvalidInput, match="cannot be saved"):
        write_shard(tmp_path / "a", [Path()], FACTS)
    assert list(tmp_path.iterdir()) == []
