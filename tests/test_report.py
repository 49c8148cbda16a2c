import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.finding import Finding, State
from fuzzer.report import code, escape, fence, plain_title, report, title
from fuzzer.signature import Signature
from fuzzer.verdict import Kind

LEAF = {
    "path": "out[0]", "numel": 12, "differing": 3, "max_abs": 4.0, "max_rel": 0.5, "max_ulp": 4e6, "same": False,
    "reference": "float64", "eager_err": 0.5, "compiled_err": 4e6, "eager_rmse": 1e-8, "compiled_rmse": 0.25,
    "eager": {"dtype": "float32", "shape": [3, 4], "stride": [4, 1]},
    "compiled": {"dtype": "float32", "shape": [3, 4], "stride": [1, 3]},
    "worst": [{"index": [1, 2], "eager": 1.5, "compiled": -2.5, "reference": 1.50000001}],
}  # fmt: skip


def finding(**changes):
    values = {
        "signature": Signature("run|wrong_value|amin", ""),
        "kind": Kind.WRONG_VALUE,
        "text": "def fn(x):\n    return x\n",
        "stage": "run",
        "state": State.CONFIRMED,
        "confirmations": 3,
        "attempts": 3,
        "target": {"torch": "2.13.0+cpu", "device": "cpu", "cpu": "AVX512", "executable": "/home/me"},
        "gates": (("self-determinism", "kept"), ("perturbation", "dismissed: eager moves too")),
        "facts": {"leaves": [LEAF], "operators": ["aten.amin.default", "aten.relu.default", "aten.amin.default"]},
        "triage": {"backend": "inductor", "versions": {"2.5.1": "pass", "2.14.1": "wrong_value"}},
    }
    return Finding(**{**values, **changes})


def test_a_report_has_what_the_template_asks_for():
    text = report(finding(duplicates=4), repro="THE SCRIPT")
    assert text.startswith("# \\[inductor\\]\\[cpu\\] amin, relu: wrong result\n")
    for expected in (
        "```python\nTHE SCRIPT\n```",
        "| `[1, 2]` | `1.50000001` | `1.5` | `-2.5` |",
        "| `stride` | `[4, 1]` | `[1, 3]` |",
        "3 of 12 elements differ",
        "eager 0.5, compiled 4000000",
        "`torch._dynamo.utils.same` (default tolerances) rejects",
        "3 of 3 fresh processes",
        "- perturbation: dismissed: eager moves too",
        "First failing backend: `inductor`",
        "| `2.5.1` | `pass` |",
        "| `cpu` | `AVX512` |",
        "4 more programs",
        "`python repro.py`",
    ):
        assert expected in text
    assert "/home/me" not in text
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == [
        "Script", "Expected and got", "Oracle", "Checks", "Where it fails", "Environment", "How to run"
    ]  # fmt: skip


@pytest.mark.parametrize("changes, expected", [
    ({"kind": Kind.CRASH, "facts": {"end": {"how": "signal", "signal": 11, "stage": "run"}}}, "SIGSEGV in stage `run`"),
    ({"kind": Kind.COMPILE_ERROR, "facts": {"faults": {"compile": {"type": "E", "message": "no *way*"}}}}, "no *way*"),
    ({"debatable": "sign of zero"}, "**Debatable**: sign of zero"),
    ({"state": State.KNOWN, "known_issue": "pytorch#191499"}, "looks like pytorch\\#191499"),
    ({"engine": "llm"}, "written by a language model"),
    ({"triage": {"hypothesis": "x"}}, "*unverified*"),
    ({"reduced": "def fn(): pass"}, "`python reduced.py`"),
    ({"facts": {"leaves": [{"path": "out", "reference": "none: RuntimeError"}]}}, "No float64 reference"),
])  # fmt: skip
def test_a_report_says_what_is_special(changes, expected):
    assert expected in report(finding(**changes))


@pytest.mark.parametrize("backend, component", [
    ("eager", "eager"), ("dynamo", "dynamo"), ("aot_eager", "aot"), ("decomp", "decomp"), ("inductor", "inductor"),
    ("", "inductor"),
])  # fmt: skip
def test_a_title_begins_with_the_first_failing_part(backend, component):
    assert title(finding(triage={"backend": backend})).startswith(f"\\[{component}\\]")


def test_a_report_tells_features_variants_releases_and_group():
    seen = {"kind": "pass", "reason": "", "date": "2031-01-02"}
    text = report(
        finding(
            triage={
                "essential_features": ["dtype=uint8"], "free_features": ["layout=offset", "shape=odd"],
                "variants": {"decomp": "pass", "inductor": "wrong_value"}, "versions": {"2.5.1": "pass"},
                "replays": {"2.5.1": seen}, "group": ["0123abcd-wrong-value"],
            }
        )
    )  # fmt: skip
    assert "- Needs: `dtype=uint8`; does not need: `layout=offset`, `shape=odd`." in text
    assert "| `decomp` | `pass` |" in text and "Probably the same bug: `0123abcd-wrong-value`" in text
    assert re.search(r"Releases tried:\n\n.*\n.*\n\| `2.5.1` \| `pass` \| .* \| `2031-01-02` \|", text)


def test_generated_code_and_the_environment_are_shown_fenced():
    text = report(finding(triage={"kernel": "extern ```x", "environment": "PyTorch version: 2.13.0\n``` <b>"}))
    assert "## Generated code\n\n````cpp\nextern ```x\n````" in text
    assert "<details><summary>collect_env</summary>\n\n````text\nPyTorch version" in text
    assert "Generated code" not in report(finding(triage={"kernel": "", "environment": ""}))


CALLS = """import torch

META = {}


def build_inputs():
    return torch.ones(3), torch.nn.Identity()


def fn(a, c):
    return torch.randn_like(c(a))
"""


def test_a_generator_left_in_another_state_is_no_wrong_result():
    made = finding(facts={"generator": True, "operators": []}, text=CALLS)
    assert plain_title(made) == "[inductor][cpu] Identity, randn_like: random generator left in another state"


def test_messages_name_the_program_without_its_folder():
    fault = {"type": "Error", "message": 'File "/tmp/x/scratch/run/program.py", line 4, in fn'}
    text = report(finding(facts={"faults": {"compile": fault}}))
    assert 'File "program.py", line 4' in text


def test_the_log_is_folded_and_names_no_folder_of_this_machine():
    stamp = "E1130 08:12:36.895000 5315 torch/_subclasses/fake_tensor.py:3090] [0/0] "
    log = f'{stamp}Traceback\n{stamp}  File "/home/me/v/lib/python3.11/site-packages/torch/_ops.py", line 8, in f'
    log += "\n/tmp/c/tmp/0/scratch/run/program.py:12: Warning\n/tmp/c/tmp/0/stage/harness/reference.py:67: Warning"
    text = report(finding(facts={"log": log}))
    assert '```text\nTraceback\n  File "torch/_ops.py", line 8, in f\nprogram.py:12: Warning\n' in text
    assert "\nharness/reference.py:67: Warning\n```\n\n</details>" in text
    assert "## Log" not in report(finding(facts={"log": "\n  \n"}))


CLASS = {
    "symptom": "mutation", "task": "memory_layout", "cause": "unknown", "by": "rules", "verified": False,
    "reasons": {"task": ["`x` is written", "needs <layout>"], "cause": []},
}  # fmt: skip


def test_a_class_is_marked_as_machine_made_and_says_why():
    text = report(finding(triage={"class": CLASS}))
    told = "- Class (unverified, by rules): symptom `mutation`, task `memory_layout`, cause `unknown`."
    assert told in text and "  - Task: \\`x\\` is written; needs &lt;layout&gt;." in text
    assert "Cause:" not in text and "Similar issues" not in text


def test_similar_issues_are_listed_and_link_only_to_plain_addresses():
    link = "https://github.com/pytorch/pytorch/issues/7"
    similar = [
        {"number": 7, "title": "argmax <b>wrong</b> @someone", "link": link, "score": 0.875},
        {"number": 8, "title": "other", "link": "javascript:alert(1)", "score": 0.5},
    ]
    text = report(finding(triage={"similar": similar}))
    assert "## Similar issues" in text and "read them before you file" in text
    assert f"- [`#7`]({link}) argmax &lt;b&gt;wrong&lt;/b&gt; @\u200bsomeone (score 0.875)" in text
    assert "- `#8` other (score 0.5)" in text and "javascript" not in text


@pytest.mark.parametrize("triage", [{"class": "shape inference", "similar": ["#7"]}, {"class": {}, "similar": []}])
def test_what_an_older_eddy_wrote_is_no_hindrance(triage):
    text = report(finding(triage=triage))
    assert "Class (" not in text and "Similar issues" not in text


def test_a_lost_check_is_named_by_the_refused_call():
    text = "import torch\n\n\ndef fn(a):\n    n = torch.normal(a, a)\n    return n\n"
    facts = {"faults": {"eager": {"type": "RuntimeError", "message": "std", "line": 5}}, "operators": []}
    found = finding(kind=Kind.MISSING_CHECK, text=text, facts=facts)
    assert "normal: accepts what eager refuses" in title(found) and found.slug == "missing-check-normal"


def test_of_a_cpp_compiler_the_output_is_shown_and_not_the_command():
    said = "C++ error\n\nCommand:\ng++ /home/me/x.main.cpp -O3\n\nOutput:\n/home/me/x.main.cpp:9:5: error: no match"
    text = report(finding(facts={"faults": {"compile": {"type": "InductorError", "message": said}}}))
    assert "x.main.cpp:9:5: error: no match" in text and "-O3" not in text and "/home/me" not in text


def test_a_title_of_eager():
    assert title(finding(kind=Kind.EAGER_CRASH, facts={})) == "\\[eager\\]\\[cpu\\] program: process dies (eager)"


@given(st.text(st.sampled_from("`~\n a#"), max_size=40))
def test_nothing_leaves_a_fence(text):
    first, *inside, last = fence(text, "python").split("\n")
    marks = first.removesuffix("python")
    assert last == marks and set(marks) == {"`"}
    assert not any(re.match(rf" {{0,3}}`{{{len(marks)},}}\s*$", line) for line in inside)


@given(st.text(st.sampled_from("`|\n a"), max_size=20))
def test_nothing_leaves_a_code_span(text):
    span = code(text)
    marks = re.match("`+", span).group()
    assert span.endswith(marks) and "\n" not in span
    assert marks not in re.findall("`+", span[len(marks) : -len(marks)])


def test_escaped_text_has_no_markup_and_mentions_nobody():
    assert escape("<img src=x> @someone\n# *bold* [a](b)") == (
        "&lt;img src=x&gt; @\u200bsomeone \\# \\*bold\\* \\[a\\](b)"
    )
