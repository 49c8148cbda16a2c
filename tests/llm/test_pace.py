"""What an endpoint is asked for, by the pace at which it answers."""

from __future__ import annotations

import pytest

from fuzzer.llm import steps
from fuzzer.llm.pace import Pace


def test_nothing_is_cut_before_anything_is_known() -> None:
    pace = Pace(lambda: 300.0)
    assert pace.affordable(1200) == 1200 and not pace.is_slow(1200)


def test_a_slow_endpoint_is_asked_for_what_fits_and_a_fast_one_for_all() -> None:
    slow, fast = Pace(lambda: 300.0), Pace(lambda: 300.0)
    slow.answered(20, 7.0)
    fast.answered(20, 0.5)
    assert 300 < slow.affordable(1200) < 400 and slow.is_slow(1200)
    assert fast.affordable(1200) == 1200 and not fast.is_slow(1200)


def test_however_slow_a_small_program_is_still_asked_for() -> None:
    pace = Pace(lambda: 300.0)
    pace.answered(1, 60.0)
    assert pace.affordable(1200) == 300 and pace.affordable(80) == 80


def test_a_time_out_shortens_what_is_asked_for_and_answers_lengthen_it_again() -> None:
    pace = Pace(lambda: 100.0)
    pace.timed_out(2000)
    assert pace.affordable(2000) == pytest.approx(400, abs=1)
    for _ in range(8):
        pace.answered(400, 10.0)
    assert pace.affordable(1200) == 1200


def test_answers_without_a_count_tell_nothing() -> None:
    pace = Pace(lambda: 300.0)
    pace.answered(0, 5.0)
    pace.answered(5, 0.0)
    assert pace.tokens_per_second is None


def test_a_short_question_asks_for_few_calls() -> None:
    def most(brief: bool) -> int:
        return int(steps.schema(("sin",), (), brief)["properties"]["steps"]["maxItems"])

    assert (most(False), most(True)) == (6, 3)
