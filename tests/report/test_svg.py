"""Charts as SVG: well-formed, inside the frame, whatever the numbers."""

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailwise.display import Table
from tailwise.pages.page import page
from tailwise.pages.svg import Axis, Chart, spanning

values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(values, st.booleans())
def test_a_chart_is_well_formed_and_keeps_marks_inside(numbers, log):
    y = np.abs(numbers) + 0.5 if log else np.array(numbers)
    x = np.arange(1, y.size + 1)
    chart = Chart("a <title> & more", spanning("x", x), spanning("y", y, log=log))
    chart.line(x, y, name="<b>")
    chart.bar(1, 2, float(y[0]))
    chart.interval(1, float(y.min()), float(y.max()))
    chart.region(1, 2, "head", 0)
    chart.guide(0, 0, 1, 1)
    root = ElementTree.fromstring(chart.svg())
    for circle in root.iter("circle"):
        assert 0 <= float(circle.get("cx")) <= 420
        assert 0 <= float(circle.get("cy")) <= 270


@pytest.mark.parametrize(
    "axis", [Axis("x", 0, 100), Axis("x", 0.9, 25_000, True), Axis("x", 81.2, 83.9), Axis("x", 0, 1e-4)]
)
def test_ticks_are_few_round_and_inside(axis):
    ticks = [value for value, _ in axis.marks()]
    assert 1 <= len(ticks) <= 7
    assert all(axis.low - 1e-9 <= tick <= axis.high + 1e-9 for tick in ticks)


def test_not_a_number_is_left_out():
    chart = Chart("t", Axis("x", 0, 1), Axis("y", 0, 1))
    chart.line([0.0, 0.5, np.nan], [0.1, np.nan, 0.3])
    assert chart.svg().count("<circle") == 1


def test_text_is_escaped():
    html = page("<script>", "", [("a", "<b>", Table("c<", ["<i>"], [["ok"]]).html())], "&")
    assert "<script>" not in html
    assert "&lt;b&gt;" in html
