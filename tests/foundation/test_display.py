"""One table, four forms; anything as JSON; a model in a line."""

import io
import json
import re
from html import unescape

import numpy as np
import pytest
from rich.console import Console

import tailwise
from tailwise.base import TopK
from tailwise.display import MARKS, Cell, Table, describe, plain

ROWS = [
    ["p@1", Cell("83.30", "[81.00, 85.00]"), Cell("+1.20", "[+0.30, +2.10]", "better")],
    ["psp@1", Cell("–"), Cell("-0.50", "[-0.90, -0.10]", "worse")],
    ["f1@5", 7, Cell("+0.10", "[-0.20, +0.40]", "unclear")],
]
TABLE = Table("Scores", ["metric", "a", "b − a"], ROWS, ["in percent"])


def drawn(table):
    console = Console(file=io.StringIO(), width=200)
    console.print(table.rich())
    return console.file.getvalue()


@pytest.mark.parametrize("form", [str, Table.markdown, Table.html, drawn], ids=["text", "markdown", "html", "terminal"])
def test_every_form_says_the_same_with_the_same_marks(form):
    text = unescape(re.sub("<[^>]*>", " ", form(TABLE)))
    words = text.replace("|", " ").split()
    expected = [word for row in ROWS for cell in row for word in str(cell).split()]
    place = words.index("p@1")
    assert words[place : place + len(expected)] == expected
    assert {mark: words.count(mark) for mark in MARKS.values()} == dict.fromkeys(MARKS.values(), 1)
    assert "Scores" in text
    assert "in percent" in text


def test_a_title_can_be_left_out():
    bare = TABLE._replace(title="", notes=())
    assert str(bare).startswith("metric")
    assert bare.markdown().startswith("| metric |")
    assert "<caption>" not in bare.html()
    assert drawn(bare).split()[0] == "metric"


def test_text_columns_stand_left():
    table = Table("", ["label", "id", "n"], [["law", "x", 12], ["taxation", "yy", 3]], left=2)
    assert str(table).splitlines() == ["label     id   n", "law       x   12", "taxation  yy   3"]
    assert "|---|---|---:|" in table.markdown()
    assert table.html().count('<td class="text">') == 4


def test_markup_in_cells_stays_text():
    table = Table("<t>", ["[red]a"], [["<b>|[/]"], [Cell("<i>", "<u>")]])
    assert not re.search(r"<[tbiu]>", table.html())
    assert r"<b>\|[/]" in table.markdown()
    assert "<b>|[/]" in drawn(table)
    assert "[red]a" in drawn(table)


@pytest.mark.parametrize("form", [str, Table.markdown, drawn], ids=["text", "markdown", "terminal"])
def test_characters_that_steer_a_terminal_are_spelled_out(form):
    shown = form(Table("a\x1b[2Jb", ["c\nd"], [["e\u202ef"], [Cell("g\rh", "i\tj")]], ["k\x07l"]))
    for spelled in (r"a\x1b[2Jb", r"c\nd", r"e\u202ef", r"g\rh i\tj", r"k\x07l"):
        assert spelled in shown


def test_verdicts_reach_the_style_of_a_page():
    assert '<td class="better">+1.20 <small>[+0.30, +2.10]</small> ▲</td>' in TABLE.html()
    assert "<td>83.30 <small>[81.00, 85.00]</small></td>" in TABLE.html()


def test_anything_becomes_json():
    value = {
        1: np.float32(0.5),
        "a": [np.int64(3), float("inf"), np.array([1.0, np.nan])],
        "t": TopK(np.array([[1]]), np.array([[-np.inf]])),
        "o": slice(1),
        "b": np.True_,
    }
    expected = {
        "1": 0.5,
        "a": [3, None, [1.0, None]],
        "t": {"labels": [[1]], "scores": [[None]]},
        "o": "slice(None, 1, None)",
        "b": True,
    }
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == expected


def test_a_model_is_described_by_what_differs_from_its_defaults():
    model = tailwise.PropensityReranker(tailwise.Centroid(n_jobs=2), tail=0.5, propensity=np.array([0.5, 1.0]))
    assert describe(model) == "PropensityReranker(base=Centroid(), propensity=array([0.5, 1. ]), tail=0.5)"
