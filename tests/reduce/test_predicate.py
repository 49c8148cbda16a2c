"""What counts as the same fault, on the fake harness."""

import asyncio

import pytest

from fuzzer.examine import execute
from fuzzer.program import Program
from fuzzer.reduce import SameFault
from fuzzer.worker import Target, Worker, WorkerOptions

LIMITS = {"stage_seconds": 0.5, "eager_seconds": 0.5}


def program(do, **fake):
    meta = {"fake": {"do": do, **fake}}
    body = "def build_inputs():\n    return (torch.ones(2),)\n\n\ndef fn(a):\n    return a.relu()\n"
    return Program.parse(f"import torch\n\nMETA = {meta!r}\n\n\n{body}")


def asked(tmp_path, first, *others):
    """Answers for ``others`` where ``first`` is the program under reduction, and the predicate."""

    async def run():
        worker = Worker(Target(fake=True), tmp_path / "worker", WorkerOptions(coverage=(), limits=LIMITS))
        try:
            await worker.start()
            same = SameFault(worker, first, *await execute(worker, first, coverage=False))
            return [await same.ask(other) for other in others], same
        finally:
            await worker.stop()

    return asyncio.run(run())


@pytest.mark.parametrize("first, other, answer", [
    (program("wrong_value"), program("wrong_value", coverage=[1]), True),
    (program("wrong_value"), program("wrong_value", op="aten.sum.default"), True),  # silent: operators may change
    (program("wrong_value"), program("metadata"), False),
    (program("wrong_value"), program("pass"), False),
    (program("wrong_value"), program("invalid"), None),
    (program("compile_error", message="one"), program("compile_error", message="one", coverage=[1]), True),
    (program("compile_error", message="one"), program("compile_error", message="two"), False),
    (program("crash"), program("crash", stage="compile"), True),  # heap corruption moves
])  # fmt: skip
def test_same_fault(tmp_path, first, other, answer):
    answers, same = asked(tmp_path, first, other)
    assert answers == [answer] and same.executions == 1
    assert (same.failed == [other]) is (answer is True)


def test_other_faults_are_kept_once_a_signature(tmp_path):
    more = {"op": "aten.sum.default"}
    others = [program("metadata", **more), program("metadata", coverage=[1], **more), program("compile_error", **more)]
    others += [program("invalid"), program("missing_check", **more)]  # what reducing breaks is refused by either side
    _answers, same = asked(tmp_path, program("wrong_value"), *others)
    assert [slip.verdict.kind.value for slip in same.slips] == ["metadata", "compile_error"]
    assert same.slips[0].program is others[0] and "compile_error" in same.slips[1].signature.major
    with pytest.raises(KeyError):
        same.seen(others[0])


def test_what_the_faulty_operators_do_alone_is_no_other_fault(tmp_path):
    other = program("metadata", op="aten.sum.default")
    _answers, same = asked(tmp_path, program("wrong_value"), program("metadata"), other)
    assert [slip.program for slip in same.slips] == [other]
