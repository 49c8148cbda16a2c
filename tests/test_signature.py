"""Signatures: one bug, one major key; other bugs, other keys."""

from typing import Any

import pytest
from test_judge import fault, leaf, seen

from fuzzer.judge import judge
from fuzzer.signature import Signature, compiler_error, normalise, signature
from fuzzer.verdict import Kind, Verdict


def of(observation: Any, culprit: str = "") -> Signature:
    return signature(judge(observation), observation, culprit)


def compile_error(message: str, *frames: str) -> Any:
    error = {**fault(message, "torch._inductor.exc.InductorError", "AssertionError"), "frames": list(frames)}
    return seen({"build": None, "eager": None, "compile": error})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("size mismatch, got 3 and 17", "size mismatch, got 5 and 2"),
        ("mat_b must be col_major, got stride [15, 1]", "mat_b must be col_major, got stride [s79, 1]"),
        ("bad object at 0x7f00aa", "bad object at 0x1234"),
        ("cannot open /tmp/a/b/x.cpp", "cannot open /home/me/x.cpp"),
        ("buf12 is not buf3", "buf4 is not buf77"),
        ("KeyError: s3", "KeyError: u12"),
        ("bad index\n\nWhile executing %n : [num_users=1] = …", "bad index\n\nWhile executing %k : [num_users=2] = …"),
        ("no size\n\n\nCaused by: (a.py:3 in f)\nFor more", "no size"),
    ],
)
def test_what_varies_between_runs_is_normalised(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)


def test_the_place_of_a_compile_error_tells_bugs_apart() -> None:
    a = of(compile_error("boom", "torch/_inductor/graph.py:run_node", "torch/_inductor/lowering.py:cummin"))
    b = of(compile_error("boom", "torch/_inductor/graph.py:run_node", "torch/_inductor/lowering.py:pad"))
    assert a.major != b.major


def test_plumbing_frames_do_not() -> None:
    a = of(compile_error("boom", "torch/_inductor/lowering.py:cummin"))
    b = of(compile_error("boom", "torch/_dynamo/output_graph.py:call", "torch/_inductor/lowering.py:cummin"))
    assert a.major == b.major


def test_failures_on_fake_tensors_are_told_apart_by_what_was_raised() -> None:
    def failing(operator: str, what: str) -> Any:
        text = (
            "RuntimeError when making fake tensor call\n  Explanation: Dynamo failed to run FX node with fake tensors: "
        )
        return compile_error(
            f"{text}call_method {operator}(*(FakeTensor(..., size=(4, 5)),), **{{}}): got {what}\n  Hint: …"
        )

    reshape = of(failing("reshape", "RuntimeError(\"shape '[7, -1]' is invalid for input of size 20\")"))
    other = of(failing("reshape", "RuntimeError(\"shape '[3, 9]' is invalid for input of size 2\")"))
    copy = of(failing("copy_", "RuntimeError('unsupported operation')"))
    assert reshape.major == other.major
    assert reshape.major != copy.major


def test_one_check_refuses_many_dtypes() -> None:
    def refused(message: str) -> str:
        return of(seen({"build": None, "eager": fault(message), "compile": None, "run": None})).major

    assert refused("\"gelu\" not implemented for 'Short'") == refused("\"gelu\" not implemented for 'Long'")
    assert (
        refused("expected Float, not Bool") == refused("expected Double, not ComplexFloat") != refused("expected ints")
    )
    one, other = (compile_error(f"no promotion of Bool and UInt{bits}", "torch/a.py:lower") for bits in (16, 64))
    assert of(one).major == of(other).major


def test_a_cpp_error_is_known_by_its_first_message() -> None:
    text = "CppCompileError\n/x/y.cpp:12:3: error: cannot convert ‘int’ to ‘Half’\n/x/y.cpp:40: error: other"
    assert compiler_error(text) == "cannot convert ‘int’ to ‘Half’"
    assert of(compile_error(text)).major.endswith("cannot convert ‘int’ to ‘Half’")


def test_silent_faults_are_told_apart_by_their_culprit() -> None:
    wrong = seen(leaves=[leaf()])
    assert of(wrong, "argmin int64").major != of(wrong, "cumsum float32").major


def test_debatable_differences_of_one_reason_share_a_key() -> None:
    signs = leaf(differing=0, sign_of_zero=1)
    assert of(seen(leaves=[signs]), "minimum").major == of(seen(leaves=[signs]), "neg").major


def test_the_short_key_survives_odd_text() -> None:
    assert len(Signature("lone surrogate \udcff", "").sig8) == 8


def test_where_the_first_run_died_what_the_program_calls_tells_crashes_apart() -> None:
    died = seen({"build": None, "eager": None}, end={"how": "signal", "signal": 11, "stage": "eager"})
    verdict = Verdict(Kind.CRASH, "run", "SIGSEGV")
    one, other = (signature(verdict, died, called=[name, name]).major for name in ("as_strided", "flip"))
    assert one != other and one.endswith("|as_strided")
    assert signature(verdict, died, "flip int8", ["as_strided"]).major.endswith("|flip int8")
