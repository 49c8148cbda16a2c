"""Every kind of outcome on the real torch: one small program a kind, and one for each META key that the judge honours.

Most of them behave in another way when they are compiled (``torch.compiler.is_compiling``), which is what a fault of
the compiler looks like from outside.
"""

import asyncio
from pathlib import Path

import pytest

from fuzzer.examine import Examined, examine
from fuzzer.program import Program
from fuzzer.verdict import Kind
from fuzzer.worker import Target, Worker, WorkerOptions

pytestmark = pytest.mark.torch

ONES = "return (torch.arange(1.0, 9.0).reshape(2, 4),)"
GRAD = "return (torch.arange(1.0, 9.0).reshape(2, 4).requires_grad_(),)"
COMPILING = "torch.compiler.is_compiling()"


def program(fn: str, build: str = ONES, meta: str = "{}", prelude: str = "") -> str:
    body = "\n".join(f"    {line}" for line in fn.splitlines())
    lines = "\n".join(f"    {line}" for line in build.splitlines())
    return f"import torch\n\nMETA = {meta}\n{prelude}\n\ndef build_inputs():\n{lines}\n\n\ndef fn(a):\n{body}\n"


def backend(body: str) -> str:
    """A compiler of our own, for faults that strike while compiling."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    register = "torch._dynamo.register_backend(own, name='own')"
    return f"\n\ndef own(graph, inputs):\n{lines}\n    return graph\n\n\n{register}\n"


def recompiled(marks: str) -> str:
    second = "\n\ndef build_inputs2():\n    return (torch.ones(3, 4),)\n"
    return program("return a + 1", meta=f'{{{marks}"dynamo_config": {{"error_on_recompile": True}}}}', prelude=second)


OWN = '{"compile": {"backend": "own"}}'
DIES = '__import__("os").abort()'

#: name → (kind, stage, program). The stage is checked where it is not empty.
PROGRAMS: dict[str, tuple[Kind, str, str]] = {
    "pass": (Kind.PASS, "", program("return a.sin()")),
    "invalid": (Kind.INVALID, "eager", program("return a.reshape(3, 3)")),
    "invalid build": (Kind.INVALID, "build", program("return a", build="return (torch.ones(2).reshape(3),)")),
    "wrong value": (Kind.WRONG_VALUE, "run", program(f"return a + 1 if {COMPILING} else a + 2")),
    "wrong gradient": (
        Kind.WRONG_GRADIENT,
        "run",
        program(f"return a * a.detach() if {COMPILING} else a * a", GRAD, '{"mode": "backward"}'),
    ),
    "wrong mutation": (
        Kind.WRONG_MUTATION,
        "run",
        program(f"b = a.clone()\n(a if {COMPILING} else b).add_(1)\nreturn b.sum() * 0"),
    ),
    "dtype": (Kind.METADATA, "run", program(f"return a.double() if {COMPILING} else a + 0")),
    "shape": (Kind.METADATA, "run", program(f"return a[None] * 1 if {COMPILING} else a * 1")),
    "requires_grad": (
        Kind.METADATA,
        "run",
        program(f"return (a * 1).detach() if {COMPILING} else a * 1", GRAD, '{"check_rg": True}'),
    ),
    "stride": (
        Kind.METADATA,
        "run",
        program(f"return (a.t() * 1).contiguous().t() if {COMPILING} else a * 1", meta='{"check_stride": True}'),
    ),
    "alias of an input": (Kind.METADATA, "run", program(f"return a.view(8) if {COMPILING} else a.clone().view(8)")),
    "alias of an output": (
        Kind.METADATA,
        "run",
        program(f"b = a + 1\nreturn b, (b.view(8) if {COMPILING} else b.clone().view(8))"),
    ),
    "compile error": (
        Kind.COMPILE_ERROR,
        "compile",
        program("return a.relu()", meta='{"inductor_config": {"cpp.inject_relu_bug_TESTING_ONLY": "compile_error"}}'),
    ),
    "missing check": (
        Kind.MISSING_CHECK,
        "run",
        program(f"if not {COMPILING}:\n    raise ValueError('no')\nreturn a + 1"),
    ),
    "extra check": (
        Kind.EXTRA_CHECK,
        "run",
        program("return a.relu()", meta='{"inductor_config": {"cpp.inject_relu_bug_TESTING_ONLY": "runtime_error"}}'),
    ),
    "crash in eager": (
        Kind.EAGER_CRASH,
        "eager",
        program(f"if not {COMPILING}:\n    {DIES}\nreturn a + 1"),
    ),
    "crash in compile": (Kind.CRASH, "compile", program("return a + 1", meta=OWN, prelude=backend(DIES))),
    "crash in backward": (
        Kind.CRASH,
        "backward",
        program(
            "return a.sin()",
            GRAD,
            '{"mode": "backward", "compile": {"backend": "own"}}',
            "\n\ndef own(graph, inputs):\n"
            "    def run(*args):\n"
            "        outputs = graph(*args)\n"
            f"        outputs[0].register_hook(lambda _grad: {DIES})\n"
            "        return outputs\n\n"
            "    return run\n\n\ntorch._dynamo.register_backend(own, name='own')\n",
        ),
    ),
    "internal assert": (
        Kind.EAGER_INTERNAL_ASSERT,
        "eager",
        program(f"if not {COMPILING}:\n    raise RuntimeError('x INTERNAL ASSERT FAILED at y')\nreturn a + 1"),
    ),
    "hang": (
        Kind.HANG,
        "compile",
        program(
            "return a + 1",
            meta='{"compile": {"backend": "own"}, "timeout": 2}',
            prelude=backend("while True:\n    pass"),
        ),
    ),
    "unsupported": (
        Kind.UNSUPPORTED,
        "compile",
        program("torch._dynamo.graph_break()\nreturn a + 1", meta='{"compile": {"fullgraph": True}}'),
    ),
    "flaky": (Kind.FLAKY, "eager", program("return a + __import__('random').random()")),
    "second call": (
        Kind.WRONG_VALUE,
        "second",
        program(
            f"return a + 1 if {COMPILING} and a.shape[0] == 3 else a + 2",
            prelude="\n\ndef build_inputs2():\n    return (torch.ones(3, 4),)\n",
        ),
    ),
    "expect_eager": (Kind.MISSING_CHECK, "eager", program("return a + 1", meta='{"expect_eager": "error"}')),
    "expect_zero": (Kind.WRONG_VALUE, "eager", program("return a - 1", meta='{"expect_zero": True}')),
    "expect_zero kept": (Kind.PASS, "", program("return a - a", meta='{"expect_zero": True}')),
    "other exception": (
        Kind.INVALID,
        "eager",
        program(f"if {COMPILING}:\n    return a.reshape(3, 3)\nraise ValueError('no')"),
    ),
    "same_exc": (
        Kind.COMPILE_ERROR,
        "compile",
        program(f"if {COMPILING}:\n    return a.reshape(3, 3)\nraise KeyError('no')", meta='{"same_exc": True}'),
    ),
    "only eager": (Kind.PASS, "", program(f"return a + 1 if {COMPILING} else a + 2", meta='{"only": ["eager"]}')),
    "only compile": (Kind.PASS, "", program(f"return a + 1 if {COMPILING} else a + 2", meta='{"only": ["compile"]}')),
    "recompile": (Kind.COMPILE_ERROR, "second", recompiled("")),
    "mark_dynamic": (Kind.PASS, "", recompiled('"mark_dynamic": [[0, 0]], ')),
    "random numbers agree": (Kind.PASS, "", program("return torch.rand_like(a) + a", meta='{"random": True}')),
    "default random path": (
        Kind.METADATA,
        "run",
        program(
            f"b = a + torch.rand(4)\n"
            f"return b[:1] * 1 if {COMPILING} and not torch._inductor.config.fallback_random else b",
            meta='{"random": True}',
        ),
    ),
}


async def examine_all(folder: Path) -> dict[str, Examined]:
    worker = Worker(Target(), folder, WorkerOptions(coverage=()))
    await worker.start()
    try:
        return {name: await examine(worker, Program.parse(text, name)) for name, (_, _, text) in PROGRAMS.items()}
    finally:
        await worker.stop()


def test_every_kind_is_told(tmp_path: Path) -> None:
    seen = asyncio.run(examine_all(tmp_path))
    wrong = {
        name: f"{seen[name].verdict.kind.value} at {seen[name].verdict.stage!r}: {seen[name].verdict.reason}"
        for name, (kind, stage, _text) in PROGRAMS.items()
        if seen[name].verdict.kind is not kind or (stage and seen[name].verdict.stage != stage)
    }
    assert not wrong
    settled = seen["default random path"].program
    assert settled.meta["inductor_config"] == {"fallback_random": False}, "the finding must ask for its random path"
