from page_base import run_record

from fuzzer.page.tally import Tally


def test_asked_realised_and_lost_are_counted_from_runs():
    tally = Tally()
    tally.take(run_record(1, ("a", "b"), ("a", "c")))
    tally.take(run_record(2, ("a",), ("a",), valid=False))
    tally.take({"t": "plan"})
    counts = {name: (count.asked, count.realised, count.lost, count.ran) for name, count in tally.features.items()}
    assert counts == {"a": (2, 2, 0, 1), "b": (1, 0, 1, 0), "c": (0, 0, 0, 1)}
    assert [name for name, _count in tally.conformity()] == ["b", "a"]
    assert tally.never(["a", "b", "c", "d"]) == ["b", "d"]
