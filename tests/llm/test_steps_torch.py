"""Step lists on live tensors: right ones are kept as written, wrong ones become programs all the same."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from llm_base import operators

from fuzzer.engines.template import CannotWrite
from fuzzer.llm import steps
from fuzzer.llm.free import check
from fuzzer.llm.steps import Built, StepList, StepWriter
from fuzzer.worker import Target, Worker, WorkerOptions

pytestmark = pytest.mark.torch
KEYS = ("sum", "sin", "cat", "matmul", "nn.functional.conv2d", "argmax", "linalg.eigh", "softmax.with_dtype")


def tensor(name: str, *shape: int, dtype: str = "float32", layout: str = "contiguous") -> dict[str, Any]:
    return {"name": name, "shape": list(shape), "dtype": dtype, "layout": layout, "values": "normal"}


def step(op: str, result: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    pairs = [{"name": name, "value": value} for name, value in kwargs.items()]
    return {"op": op, "args": list(args), "kwargs": pairs, "result": result}


RIGHT = {
    "inputs": [tensor("x", 3, 4, layout="transposed"), tensor("y", 4, 5), tensor("z", 9)],
    "steps": [
        step("matmul", "a", "x", "y"),
        step("sin", "b", "a"),
        step("sum", "c", "b", dim=-1, keepdim=True),
        step("argmax", "d", "c", dim=0),
    ],
}
WRONG = {
    "inputs": [tensor("x", 3, 4, dtype="int64"), tensor("x", 0, 7, layout="channels_last")],
    "steps": [
        step("nn.functional.conv2d", "a", "x", 5, True),
        step("linalg.eigh", "b", "h", "h", "h"),
        step("sum", "b", "b", dim=99),
        step("argmax", "b"),
    ],
}


def build(folder: Path, lists: list[dict[str, Any]], features: tuple[str, ...] = ()) -> list[Built]:
    form = steps.schema(KEYS, steps.keywords(operators(), KEYS))

    async def built() -> list[Built]:
        worker = Worker(Target(), folder / "w", WorkerOptions(coverage=(), warm=False))
        await worker.start()
        try:
            found = []
            for number, data in enumerate(lists):
                made = await StepWriter(operators()).write(
                    StepList.parse(json.dumps(data), form), features, number, worker
                )
                options = {"only_eager": True, "observe": False}
                observation = await worker.execute(made.program, "eager", options, coverage=False)
                assert observation.fault("eager") is None and observation.end.how == "done", made.program.text
                found.append(made)
            return found
        finally:
            await worker.stop()

    return asyncio.run(asyncio.wait_for(built(), 300.0))


def test_step_lists_become_programs(tmp_path: Path) -> None:
    right, wrong = build(tmp_path, [RIGHT, WRONG], ("control=early_return",))
    assert (right.steps, right.kept, right.as_written) == (4, 4, 4)
    text = right.program.text
    assert ".t()" in text or ".transpose" in text  # the layout that was asked for
    assert "torch.randn(9)" not in text  # nothing reads it
    assert "dim=-1, keepdim=True" in text and "if " in text  # as written; and the feature that steps have no words for
    assert right.operators == ("matmul", "sin", "sum", "argmax")
    assert wrong.kept >= 3 and wrong.as_written < wrong.kept
    assert {"sum", "argmax"} <= set(wrong.operators)
    assert check(text, operators().by_key).mode == "forward"


def test_operators_that_are_not_known_make_no_program(tmp_path: Path) -> None:
    class Holds:
        async def probe(self, groups: Any, names: Any = None, reset: bool = False) -> dict[str, Any]:
            return {"results": [{"chosen": -1, "errors": ["no"], "facts": {}} for _ in groups]}

    form = steps.schema(("stranger",), ())
    data = {"inputs": [tensor("x", 2)], "steps": [step("stranger", "a", "x"), step("stranger", "b", "a")]}
    with pytest.raises(CannotWrite, match="none of the steps held"):
        asyncio.run(StepWriter(operators()).write(StepList.parse(json.dumps(data), form), (), 1, Holds()))
