import numpy as np
import pytest

from tailwise.data.wordnet import read_wordnet_nouns
from tailwise.errors import DataFormatError, InvalidInput

LINES = """\
  1 This software and database is being provided to you
00001740 03 n 01 entity 0 001 ~ 00001930 n 0000 | that which is perceived
00001930 03 n 02 physical_entity 0 thing 1 002 @ 00001740 n 0000 ~ 00002452 n 0000 | an entity that exists
00002452 03 n 01 oak 0 003 @ 00001930 n 0000 + 00692347 v 0101 @i 00001740 n 0000 | a tree; "an oak | two"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.noun").write_text(LINES, encoding="latin-1")
    return tmp_path


def test_nouns_know_their_words_glosses_and_what_is_above(folder):
    nouns = read_wordnet_nouns(folder)
    assert nouns.ids == ["00001740", "00001930", "00002452"]
    assert nouns.words == [["entity"], ["physical entity", "thing"], ["oak"]]
    assert nouns.glosses[2] == 'a tree; "an oak | two"'
    assert nouns.above == [[], [0], [1, 0]]
    assert nouns.ancestors(2) == [1, 0] and nouns.ancestors(0) == []
    np.testing.assert_array_equal(nouns.parents(), [[1, 0], [2, 1], [2, 0]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("00001740 03 n 01 entity 0 002 ~ 00001930 n 0000 | cut", "line 1: found .* expected a line of WordNet"),
        ("00001740 03 n xx entity", "expected a line of WordNet"),
        ("00001740 03 n 01 entity 0 001 @ 00001930 n 0000 | up", "a hypernym 00001930 without a line"),
    ],
)
def test_what_is_no_wordnet_is_refused(folder, text, message):
    (folder / "data.noun").write_text(text)
    with pytest.raises(DataFormatError, match=message):
        read_wordnet_nouns(folder)


def test_a_folder_without_wordnet_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"data\.noun does not exist"):
        read_wordnet_nouns(tmp_path)
