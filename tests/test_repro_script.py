import ast
import os
import subprocess
import sys

import pytest

from fuzzer.repro_script import repro_script
from fuzzer.verdict import Kind

PROGRAM = """import torch

META = {meta}

def fn(x):
    {check}return torch.relu(x)

def build_inputs():
    torch.manual_seed(0)
    return (torch.randn(8, requires_grad=True),)
"""

LEAF = {
    "path": "out", "differing": 8, "max_abs": 1.0, "reference": "float64",
    "eager": {"dtype": "float32", "shape": [8], "stride": [1]},
    "compiled": {"dtype": "float32", "shape": [8], "stride": [1]},
    "worst": [{"index": [0], "eager": 0.0, "compiled": 1.0, "reference": 0.0}],
}  # fmt: skip

FAULTS = [kind for kind in Kind if kind.is_fault]


def program(meta=None, check=""):
    return PROGRAM.format(meta=meta or {}, check=check)


def script(kind, meta=None, leaf=None, **options):
    facts = {"leaves": [{**LEAF, **(leaf or {})}]}
    return repro_script(program(meta), kind, facts=facts, **options)


def run(folder, text):
    """Exit status and output of a script, run as a stranger would."""
    path = folder / "repro.py"
    path.write_text(text)
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, cwd=folder, env=environment, timeout=300
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("kind", FAULTS)
def test_every_kind_gives_valid_short_python_after_the_very_text(kind):
    for mode in ("forward", "backward", "dynamic", "train", "eval", "jit_trace"):
        text = program({"mode": mode, "random": True, "no_grad": mode == "eval"})
        made = repro_script(
            text, kind, stage="second", facts={"leaves": [LEAF]}, options={"threads": 1, "torch": "2.13"}
        )
        ast.parse(made)
        assert made.startswith(text)
        assert "did not reproduce" in made and "AssertionError" in made
        assert sum(1 for line in made[len(text) :].splitlines() if line.strip()) <= 32


def test_kinds_without_a_fault_have_nothing_to_show():
    with pytest.raises(ValueError, match="no failure"):
        repro_script(program(), Kind.PASS)


@pytest.mark.parametrize("meta, expected", [
    ({"mode": "dynamic", "compile": {"fullgraph": True}}, "torch.compile(fn, fullgraph=True, dynamic=True)"),
    ({"mode": "jit_trace"}, "torch.jit.trace(fn, build_inputs(), check_trace=False)"),
    ({"options": {"max_autotune": True}}, "torch.compile(fn, options={'max_autotune': True})"),
    ({"random": True}, "torch._inductor.config.fallback_random = True"),
    ({"dynamo_config": {"capture_scalar_outputs": True}}, "torch._dynamo.config.capture_scalar_outputs = True"),
    ({"functorch_config": {"donated_buffer": False}}, "torch._functorch.config.donated_buffer = False"),
    ({"no_grad": True}, "@torch.no_grad()"),
    ({"exact": True}, "equal_nan=True, rtol=0, atol=0"),
])  # fmt: skip
def test_meta_becomes_code(meta, expected):
    assert expected in script(Kind.WRONG_VALUE, meta)


@pytest.mark.parametrize("kind, leaf, expected", [
    (Kind.WRONG_VALUE, {"path": "out['k'][1]"}, "return out['k'][1]"),
    (Kind.WRONG_VALUE, {"nan_mismatch": 1}, "assert_close(compiled, eager, equal_nan=True)"),
    (Kind.WRONG_VALUE, {"max_abs": 1e-6}, "rtol=0, atol=5.0e-07"),
    (Kind.WRONG_VALUE, {"differing": 0, "sign_of_zero": 2}, "torch.signbit(out)"),
    (Kind.WRONG_GRADIENT, {"path": "grad.in[0].weight"}, "return args[0].weight.grad"),
    (Kind.WRONG_MUTATION, {"path": "in[0].running_mean"}, "return args[0].running_mean"),
    (Kind.METADATA, {"compiled": {**LEAF["compiled"], "stride": [2]}}, "return (out.stride(),)"),
    (Kind.METADATA, {"compiled": {"dtype": "float64", "shape": [8], "stride": [2]}}, "return (out.dtype,)"),
])  # fmt: skip
def test_the_worst_value_is_what_is_compared(kind, leaf, expected):
    assert expected in script(kind, {"mode": "backward"}, leaf)


def test_shared_memory_is_compared_where_metadata_agrees():
    facts = {"leaves": [], "aliases": {"eager": [["in[0]", "out"]], "compiled": []}}
    assert "untyped_storage().data_ptr()" in repro_script(program(), Kind.METADATA, facts=facts)


def test_the_generators_state_is_compared_where_no_result_differs():
    made = repro_script(program({"random": True}), Kind.WRONG_VALUE, facts={"generator": True})
    assert "return torch.random.get_rng_state()" in made and "rtol=0, atol=0" in made


def test_second_inputs_are_used_only_where_the_failure_needs_them():
    text = program() + "\ndef build_inputs2():\n    return (torch.ones(3),)\n"
    second = repro_script(text, Kind.COMPILE_ERROR, stage="second")
    assert "args = build_inputs2()" in second[len(text) :]
    assert "build_inputs2" not in repro_script(text, Kind.COMPILE_ERROR, stage="compile")[len(text) :]


def test_a_process_that_dies_or_hangs_is_seen_from_outside(tmp_path):
    fake = "class torch:\n    compile = staticmethod(lambda f: COMPILED)\n"
    fake += "def build_inputs():\n    return (1,)\ndef fn(x):\n    return x\n"
    dies = fake + "def COMPILED(x):\n    import os\n    os.kill(os.getpid(), 11)\n# manual_seed\n"
    status, output = run(tmp_path, repro_script(dies, Kind.CRASH))
    assert status == 1 and "compiled run died with SIGSEGV" in output and "eager run ended with 0" in output
    status, output = run(tmp_path, repro_script(dies.replace("11", "0"), Kind.CRASH))
    assert status == 0 and "did not reproduce" in output
    hangs = fake + "def COMPILED(x):\n    import signal\n    signal.pause()\n# manual_seed\n"
    made = repro_script(hangs, Kind.HANG, options={"timeout": 1})
    made = "\n".join(line for line in made.splitlines() if "_inductor" not in line)  # the fake has no compiler
    status, output = run(tmp_path, made)
    assert status == 1 and "compiled run did not end within 1 s" in output


@pytest.mark.torch
@pytest.mark.parametrize("kind, meta, check, status, words", [
    (Kind.WRONG_VALUE, {"mode": "backward"}, "", 0, "did not reproduce"),
    (Kind.WRONG_VALUE, {"inductor_config": {"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}}, "", 1,
     "compiled (actual) and eager (expected) differ"),
    (Kind.COMPILE_ERROR, {"inductor_config": {"cpp.inject_relu_bug_TESTING_ONLY": "compile_error"}}, "", 1,
     "compiled execution refuses what eager accepts"),
    (Kind.MISSING_CHECK, {"mode": "backward"}, "assert torch.compiler.is_compiling()\n    ", 1,
     "compiled execution accepts what eager refuses"),
])  # fmt: skip
def test_scripts_show_their_failure_on_a_real_torch(tmp_path, kind, meta, check, status, words):
    made = repro_script(program(meta, check), kind, facts={"leaves": [LEAF]})
    seen, output = run(tmp_path, made)
    assert words in output
    assert seen == status
    if kind is Kind.WRONG_VALUE:
        assert "largest error against float64: eager" in output
