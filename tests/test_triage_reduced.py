"""The dear gates have the last word on a reduction."""

import asyncio
import itertools
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fuzzer import triage
from fuzzer.examine import execute
from fuzzer.program import Program
from fuzzer.verdict import Kind
from fuzzer.worker import Target, Worker, WorkerOptions

TEXT = """import torch

META = {"fake": {"do": "wrong_value"}}


def build_inputs():
    return (torch.ones(2),)


def fn(a):
    b = a.cos()
    c = b.sin()
    d = c.exp()
    e = d.abs()
    f = e.neg()
    return f
"""


def reduced(tmp_path, monkeypatch, kept, text=TEXT, around=lambda worker: None, raw=None, **options):
    """Reduce where the gates dismiss every program that ``kept`` does not hold for; with the texts that they saw.

    ``around`` may change the worker before anything runs; ``raw`` adds to what the program shows.
    """
    asked = []

    async def gates(worker, program, observation, verdict):
        asked.append(program.text)
        return verdict if kept(program.text) else replace(verdict, kind=Kind.PASS)

    monkeypatch.setattr(triage, "pass_gates", gates)

    async def run():
        worker = Worker(Target(fake=True), tmp_path / "worker", WorkerOptions(coverage=()))
        program = Program.parse(text)
        around(worker)
        try:
            await worker.start()
            observation, verdict = await execute(worker, program, coverage=False)
            shown = replace(observation, raw={**observation.raw, **(raw or {})}), verdict
            return await triage.reduced(worker, program, *shown, budget=200, **options)
        finally:
            await worker.stop()

    return asyncio.run(run()), asked


def test_the_smallest_is_asked_first(tmp_path, monkeypatch):
    made, asked = reduced(tmp_path, monkeypatch, lambda text: True)
    assert asked == [made.program.text] and "cos" not in made.program.text and made.complete


@pytest.mark.parametrize("word", ["cos", "b = a.cos()\n    c = b.sin()"])
def test_where_the_smallest_is_dismissed_an_earlier_step_is_taken(tmp_path, monkeypatch, word):
    made, asked = reduced(tmp_path, monkeypatch, lambda text: word in text)
    assert word in made.program.text and made.verdict.kind is Kind.WRONG_VALUE
    assert 1 < len(asked) <= 4 and made.program.text != TEXT


def test_the_program_itself_stays_where_every_step_is_dismissed(tmp_path, monkeypatch):
    made, asked = reduced(tmp_path, monkeypatch, lambda text: False)
    assert made.program.text == TEXT and len(asked) <= 4


def test_when_time_is_up_the_smallest_so_far_is_kept(tmp_path, monkeypatch):
    full, _ = reduced(tmp_path / "full", monkeypatch, lambda text: True)
    monkeypatch.setattr(triage, "time", SimpleNamespace(monotonic=itertools.count(0.0).__next__))
    made, _ = reduced(tmp_path / "cut", monkeypatch, lambda text: True, seconds=2.0)
    assert not made.complete and full.complete and made.executions < full.executions
    assert made.verdict.kind is Kind.WRONG_VALUE and len(full.program.text) < len(made.program.text) < len(TEXT)


class Counted:
    """A worker's executions, by whether kernels were interpreted; compiled, ``passes`` says which programs pass."""

    def __init__(self, passes=lambda text: False):
        self.interpreted = self.compiled = 0
        self.passes = passes

    def __call__(self, worker):
        execute = worker.execute

        async def counted(program, variant="", options=None, **more):
            if (options or {}).get("interpret"):
                self.interpreted += 1
            else:
                self.compiled += 1
                if self.passes(program.text):
                    program = replace(program, text=program.text.replace("wrong_value", "pass"))
            return await execute(program, variant, options, **more)

        worker.execute = counted


def test_a_fault_that_shows_with_interpreted_kernels_is_reduced_with_them(tmp_path, monkeypatch):
    counted = Counted()
    made, asked = reduced(tmp_path, monkeypatch, lambda text: True, around=counted)
    assert made.complete and "cos" not in made.program.text and asked == [made.program.text]
    assert counted.compiled == 2, "the program itself, and what is kept"
    assert counted.interpreted == made.executions + 1


def test_one_that_needs_compiled_kernels_is_reduced_with_those(tmp_path, monkeypatch):
    counted = Counted()
    text = TEXT.replace('"do": "wrong_value"', '"do": "wrong_value", "compiled_only": True')
    made, _asked = reduced(tmp_path, monkeypatch, lambda text: True, text=text, around=counted)
    assert "cos" not in made.program.text and counted.interpreted == 1 and counted.compiled > 2


def test_where_nothing_was_compiled_nothing_is_interpreted(tmp_path, monkeypatch):
    counted = Counted()
    raw = {"cxx": {"kernels": 0}}
    made, _asked = reduced(tmp_path, monkeypatch, lambda text: True, around=counted, raw=raw)
    assert "cos" not in made.program.text and counted.interpreted == 0


def test_what_interpreted_kernels_alone_show_is_not_believed(tmp_path, monkeypatch):
    counted = Counted(passes=lambda text: "cos" not in text)
    made, asked = reduced(tmp_path, monkeypatch, lambda text: True, around=counted)
    assert "cos" in made.program.text and all("cos" in text for text in asked)
