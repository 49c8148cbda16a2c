from hypothesis import given
from hypothesis import strategies as st

from fuzzer.page.series import downsample, read_plot

FINITE = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(st.floats(0, 1e5), FINITE), max_size=400), st.integers(1, 12))
def test_thinning_keeps_ends_and_extremes_in_order(points, buckets):
    points = sorted(points)
    thin = downsample(points, buckets)
    assert len(thin) <= max(4 * buckets + 4, 0)
    assert set(thin) <= set(points) and thin == sorted(thin, key=lambda point: point[0])
    if points:
        assert (thin[0], thin[-1]) == (points[0], points[-1])
        assert {min(y for _x, y in thin), max(y for _x, y in thin)} == {
            min(y for _x, y in points),
            max(y for _x, y in points),
        }


def test_a_spike_among_very_many_points_survives():
    points = [(float(x), 1.0) for x in range(100_000)]
    points[54_321] = (54_321.0, 9.0)
    thin = downsample(points)
    assert len(thin) <= 804 and (54_321.0, 9.0) in thin


def test_columns_are_read_by_name_and_odd_lines_skipped(tmp_path):
    file = tmp_path / "plot_data"
    file.write_text(
        "# run_time, execs_done, corpus_count\n0, 1, 2\n5, 3\n5, x, 4\n6, nan, 4\n10, 5, 6\n"
        "# execs_done, run_time\n7, 8\n9, 20\ntorn"
    )
    series = read_plot(file, ("execs_done", "corpus_count", "rss"))
    assert series.seconds == [0, 10, 10, 20]  # a resumed campaign's clock never runs back
    assert series.columns == {"execs_done": [1, 5, 7, 9], "corpus_count": [2, 6, 6, 6]}
    assert series.points("rss") == [] and not series.grows("rss")


def test_without_a_file_there_is_nothing(tmp_path):
    assert len(read_plot(tmp_path / "none", ("execs_done",))) == 0
