import itertools
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fuzzer.page.chart import Line, duration, interval_bar, line_chart, share_bar, short

SVG = "{http://www.w3.org/2000/svg}"


def parsed(markup):
    return ElementTree.fromstring(str(markup).replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1))


@given(
    st.lists(st.tuples(st.floats(0, 1e7), st.floats(0, 1e9)), min_size=1, max_size=30),
    st.lists(st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8), min_size=1, max_size=4),
)
@example(points=[(0.0, 5e-324)], names=["a"])
@example(points=[(5e-324, 1e9)], names=["a"])
def test_lines_stay_within_the_picture(points, names):
    chart = parsed(line_chart("title", [Line(name, sorted(points)) for name in names]))
    _x, _y, width, height = map(float, chart.get("viewBox").split())
    assert len(chart.findall(f"{SVG}path")) == len(names)
    for path in chart.findall(f"{SVG}path"):
        for x, y in re.findall(r"[ML]([\d.e+-]+) ([\d.e+-]+)", path.get("d")):
            assert 0 <= float(x) <= width and 0 <= float(y) <= height
    ends = sorted(float(text.get("y")) for text in chart.findall(f"{SVG}text") if "end" in text.get("class").split())
    assert all(below - above >= 12 for above, below in itertools.pairwise(ends))


def test_names_are_text():
    assert "<b>" not in line_chart("<b>", [Line('"<b>', [(0.0, 1.0)]), Line("x", [(0.0, 2.0)])])


def test_a_hundred_thousand_points_make_a_small_picture():
    points = [(5.0 * number, float(number % 977)) for number in range(100_000)]
    assert len(line_chart("many", [Line("line", points)])) < 20_000


def test_nothing_to_draw_draws_nothing():
    assert line_chart("none", [Line("line", [])]) == ""


@pytest.mark.parametrize("seconds, text", [
    (0, "0"), (45, "45 s"), (720, "12 min"), (9000, "2 h 30"), (7200, "2 h"), (90000, "1 d 1 h"), (86400, "1 d"),
])  # fmt: skip
def test_durations_read_as_a_person_writes_them(seconds, text):
    assert duration(seconds) == text


def test_numbers_are_short():
    assert [short(value) for value in (0, 0.25, 950, 14144, 2.3e6)] == ["0", "0.25", "950", "14.1k", "2.3M"]


def test_bars_hold_their_values():
    bar = parsed(interval_bar(0.1, 0.2, 0.4, 0.4, 0.3))
    low, high = (float(bar.find(f"{SVG}line[@class='span']").get(end)) for end in ("x1", "x2"))
    assert (
        low < float(bar.find(f"{SVG}circle").get("cx")) < float(bar.find(f"{SVG}line[@class='rate']").get("x1")) < high
    )
    assert parsed(share_bar(0.25)).find(f"{SVG}rect[@class='part']").get("width") == "25.0"
    assert interval_bar(0.0, 0.0, 0.0, 0.0, 0.0)
