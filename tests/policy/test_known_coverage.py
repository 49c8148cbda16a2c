"""Known coverage: only the first report of an id is new."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fuzzer.policy.known_coverage import KnownCoverage, count

deltas = st.lists(
    st.dictionaries(
        st.sampled_from(["native", "python"]),
        st.dictionaries(st.sampled_from(["a.py", "b.so"]), st.lists(st.integers(0, 60), max_size=8)),
    ),
    max_size=12,
)


@given(deltas)
def test_absorb_agrees_with_plain_sets(history: list[dict]) -> None:
    known, plain = KnownCoverage(), set()
    for delta in history:
        flat = {(domain, file, i) for domain, files in delta.items() for file, ids in files.items() for i in ids}
        unknown = known.unknown(delta)
        fresh = known.absorb(delta)
        assert unknown == fresh
        assert {(d, f, i) for d, files in fresh.items() for f, ids in files.items() for i in ids} == flat - plain
        assert all(ids and ids == sorted(ids) for files in fresh.values() for ids in files.values())
        plain |= flat
    assert sum(known.totals.values()) == len(plain)
    assert count(known.as_delta()) == known.totals
    copy = KnownCoverage.from_map(known.to_map())
    assert copy.to_map() == known.to_map() and copy.totals == known.totals
    assert copy.absorb(known.as_delta()) == {}


def test_map_is_delta_encoded() -> None:
    known = KnownCoverage()
    known.absorb({"native": {"lib.so": [1_000_007, 1_000_000, 1_000_001]}})
    assert known.to_map() == {"native": {"lib.so": [1_000_000, 1, 6]}}
    assert known.files("native") == {"lib.so": 3}
