"""Propensities by a word: one parser for every verb."""

import numpy as np
import pytest

from tailwise.errors import DataFormatError, InvalidInput
from tailwise.propensity import JainPropensity, named_propensity


@pytest.mark.parametrize(
    ("text", "a", "b"),
    [
        ("jain", 0.55, 1.5),
        ("jain:0.5,0.4", 0.5, 0.4),
        ("wikipedia", 0.5, 0.4),
        ("amazon", 0.6, 2.6),
        ("other", 0.55, 1.5),
    ],
)
def test_words(text, a, b):
    found = named_propensity(text)
    assert isinstance(found, JainPropensity) and (found.a, found.b) == (a, b)


def test_files_hold_propensities_or_their_inverses(tmp_path):
    (tmp_path / "p.txt").write_text("0.5\n1\n")
    (tmp_path / "inv.txt").write_text("2.0\n1.0\n")
    for name in ("p.txt", "inv.txt"):
        assert np.allclose(named_propensity(str(tmp_path / name)).fit([[1, 0]]).propensity_, [0.5, 1.0])


@pytest.mark.parametrize("text", ["jain:", "jain:1", "jain:a,b", "jain:0,1", "jain:1,2,3", "jain:nan,1"])
def test_a_and_b_must_be_numbers(text):
    with pytest.raises(InvalidInput, match=r"does not give A and B"):
        named_propensity(text)


def test_refusals(tmp_path):
    with pytest.raises(
        InvalidInput, match=r"propensity='amazn' is no propensity and no file; pass jain:A,B, wikipedia"
    ):
        named_propensity("amazn")
    (tmp_path / "p.txt").write_text("0.5\nhalf\n")
    with pytest.raises(DataFormatError, match=r"p.txt, line 2: found 'half'; expected a number a line"):
        named_propensity(str(tmp_path / "p.txt"))
    (tmp_path / "p.txt").write_text("0.5\n2\n")
    with pytest.raises(DataFormatError, match=r"numbers from 0.5 to 2; expected propensities in"):
        named_propensity(str(tmp_path / "p.txt"))
    (tmp_path / "p.txt").write_text("")
    with pytest.raises(DataFormatError, match="no numbers"):
        named_propensity(str(tmp_path / "p.txt"))
