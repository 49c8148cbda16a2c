"""The template engine against a prober that answers from a script, and once against a real one."""

from __future__ import annotations

import ast
import asyncio
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fuzzer.engines import template
from fuzzer.engines.candidates import Proposer
from fuzzer.engines.draft import Candidate, Draft
from fuzzer.engines.second import second_inputs
from fuzzer.engines.template import CannotWrite, TemplateEngine, Written
from fuzzer.engines.wishes import Wishes, askable
from fuzzer.features.detect import default_space, detect
from fuzzer.knowledge.operators import Call, Form, Literal, Operator, Operators, Tensor
from fuzzer.knowledge.patterns import default_entries
from fuzzer.policy.corpus import Corpus
from fuzzer.policy.plan import Plan
from fuzzer.policy.schedule import Schedule
from fuzzer.worker import Target, Worker, WorkerOptions


def tensor(*shape: int, dtype: str = "float32", **facts: Any) -> dict[str, Any]:
    return {"kind": "tensor", "dtype": dtype, "shape": list(shape), "stride": [], "offset": 0, "values": [], **facts}


def operator(name: str, *forms: Form, tensors: tuple[Tensor, ...] = (Tensor((2, 3), "float32"),)) -> Operator:
    forms = forms or (Form("function", f"torch.{name}"),)
    call = Call(tensors, {})
    family = "pointwise_unary"
    return Operator(name, "", family, (f"aten.{name}",), forms, ("float32",), True, False, (), (call,), "lowered")


def catalogue(*operators: Operator) -> Operators:
    return Operators(operators, Operators.load_extract().families, {})


class FakeProber:
    """Refuses what ``refuses`` says; every name that a statement binds holds what ``makes`` says of its line."""

    def __init__(
        self,
        refuses: Callable[[str], bool] = lambda text: False,
        makes: Callable[[str], dict[str, Any]] = lambda line: tensor(2, 3),
        kills: Callable[[str], bool] = lambda text: False,
    ) -> None:
        self.refuses, self.makes, self.kills = refuses, makes, kills
        self.seen: list[str] = []

    async def probe(
        self, groups: list[list[str]], names: list[list[str]] | None = None, reset: bool = False
    ) -> dict[str, Any]:
        results = []
        for number, candidates in enumerate(groups):
            errors: list[str] = []
            chosen, facts = -1, {}
            for index, text in enumerate(candidates):
                self.seen.append(text)
                ast.parse(text)
                if self.kills(text):
                    return {"died": {"group": number, "candidate": index, "name": "SIGSEGV", "how": "signal"}}
                if self.refuses(text):
                    errors.append("RuntimeError: refused")
                    continue
                chosen = index
                for name, line in re.findall(r"^(_\d+_) = (.*)$", text, re.MULTILINE):
                    facts[name] = self.makes(line)
                for name in (names or [[]] * len(groups))[number]:
                    facts[name] = tensor(2, 3)
                break
            results.append({"chosen": chosen, "errors": errors, "facts": facts, "seconds": 0.0})
        return {"results": results}


def write(
    prober: FakeProber, *operators: Operator, features: tuple[str, ...] = (), seed: int = 1, engine: Any = None
) -> Written:
    known = engine or TemplateEngine(catalogue(*operators))
    plan = Plan(number=1, engine="template", features=features, families=("pointwise_unary",), random=seed)
    return asyncio.run(known.write(plan, lambda family, rng, k: [op.name for op in operators], prober))


def body_of(text: str) -> list[str]:
    return text.split("def fn(")[1].splitlines()[1:]


def test_the_same_plan_gives_the_same_program() -> None:
    one, other = (write(FakeProber(), operator("sin"), operator("cos"), seed=7) for _ in range(2))
    assert one.program.text == other.program.text
    assert len({write(FakeProber(), operator("sin"), seed=seed).program.text for seed in range(12)}) > 2


def test_names_are_letters_in_the_order_of_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "_SUBGRAPH", 0.0)  # their lambdas have letters of their own
    for seed in range(20):
        text = write(FakeProber(), operator("sin"), operator("cos"), seed=seed).program.text
        names = list(dict.fromkeys(re.findall(r"^    ([a-z]+)(?= = )", text, re.MULTILINE)))
        assert names == list("abcdefghijkmnopqrstuvwxyz")[: len(names)]
        assert "_1_" not in text


def test_an_input_that_only_refused_candidates_wanted_is_not_there() -> None:
    prober = FakeProber(refuses=lambda text: "torch.cos" in text)
    written = write(prober, operator("cos"), operator("sin"), seed=3)
    assert "torch.cos" in " ".join(prober.seen) and "torch.cos" not in written.program.text
    build, function = written.program.text.split("def fn(")
    for name in re.findall(r"^    ([a-z]) = ", build, re.MULTILINE):
        assert re.search(rf"\b{name}\b", function.split("\n", 1)[1]), "every input is read"
    assert written.refused > 0 and set(written.operators) == {"sin"}


def test_statements_hang_together() -> None:
    linked = total = 0
    for seed in range(30):
        lines = body_of(write(FakeProber(), operator("sin"), operator("cos"), seed=seed).program.text)[:-1]
        bound: set[str] = set()
        for line in lines:
            target, _, value = line.strip().partition(" = ")
            linked += bool(bound & set(re.findall(r"\b[a-z]\b", value)))
            total += 1
            bound.add(target)
        total -= 1  # the first statement has nothing to read
    assert linked / total > 0.8


def test_a_tuple_is_unpacked_under_names_of_its_parts() -> None:
    pair = {"kind": "tuple", "items": [tensor(2), tensor(2, dtype="int64")]}
    prober = FakeProber(makes=lambda line: pair if "sort(" in line else tensor(2, 3))
    for seed in range(8):
        text = write(prober, operator("sort"), seed=seed).program.text
        assert re.search(r"^    \w+, \w+ = torch.sort\(", text, re.MULTILINE), text


def test_what_is_written_in_place_is_returned() -> None:
    clamp = operator("clamp", Form("inplace", "clamp_"))
    for seed in range(12):
        lines = body_of(write(FakeProber(), clamp, seed=seed).program.text)
        changed = {line.strip().split(".")[0] for line in lines if re.match(r"    \w+\.clamp_\(", line)}
        read = " ".join(lines)
        assert all(len(re.findall(rf"\b{name}\b", read)) > 1 for name in changed)


def test_a_probe_that_dies_leaves_the_guilty_statement() -> None:
    written = write(FakeProber(kills=lambda text: "torch.cos" in text), operator("cos"), operator("sin"))
    assert written.died == "cos: SIGSEGV"
    assert "torch.cos(" in written.program.text and written.operators[-1] == "cos"


def test_nothing_that_holds_is_said_so() -> None:
    with pytest.raises(CannotWrite, match="no statement held"):
        write(FakeProber(refuses=lambda text: "_differentiate" not in text or "torch" in text), operator("sin"))


def test_an_operator_that_is_always_refused_is_proposed_as_recorded_only() -> None:
    known = catalogue(operator("sin"))
    proposer, op = Proposer(known), known.by_key["sin"]
    draft = Draft()
    draft.accept(Candidate([("_9_", "torch.randn(4)")], ["_8_ = _9_ * 2"], "_8_", ("_9_",), ("_9_", "_8_"), ""), {
        "_8_": tensor(4), "_9_": tensor(4)
    })  # fmt: skip
    bold = proposer.propose(op, draft, Wishes(), random.Random(0))
    assert bold[0].connected and bold[0].reads == ("_8_",) and not bold[-1].connected
    for _ in range(10):
        proposer.learn(bold, len(bold) - 1)  # only the recorded call held
    shy = proposer.propose(op, draft, Wishes(), random.Random(0))
    assert sum(candidate.connected for candidate in shy) < sum(candidate.connected for candidate in bold)
    for _ in range(3):
        proposer.learn(bold, 0)
    assert len(proposer.propose(op, draft, Wishes(), random.Random(0))) == len(bold)


def test_uninitialised_memory_is_never_proposed() -> None:
    proposer = Proposer(catalogue())
    for name, form in (("new_empty", "new_empty"), ("empty_like", "torch.empty_like"), ("resize_", "resize_")):
        assert not proposer.allowed(operator(name, Form("method", form)), Wishes())
    assert proposer.allowed(operator("item"), Wishes())
    assert not proposer.allowed(operator("item"), Wishes.of(["config=fullgraph"]))


def test_a_wish_for_options_needs_no_statement() -> None:
    written = write(FakeProber(), operator("sin"), features=("config=scalar", "python=dict_result"))
    assert written.program.meta["inductor_config"] == {"cpp.simdlen": 0}
    assert re.search(r'return \{"\w+": ', written.program.text)


def test_words_of_the_text_are_realised() -> None:
    known = Operators.load_extract()
    for feature in ("control=try", "python=lambda", "mutation=setitem", "boundary=negative_index", "config=fullgraph"):
        text = write(FakeProber(), operator("sin"), features=(feature,)).program
        assert feature in detect(text, None, known.family_of_aten), text.text


def roll() -> Operator:
    call = Call((Tensor((2, 3), "float32"),), {"shifts": Literal("1"), "dims": Literal("0")})
    schema = ("aten::roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",)
    form = Form("function", "torch.roll")
    return Operator(
        "roll", "", "pointwise_unary", ("aten.roll",), (form,), ("float32",), True, False, schema, (call,), ""
    )


def test_some_programs_end_in_what_eager_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "_REFUSED", 1.0)
    prober = FakeProber(refuses=lambda text: "dims=2" in text or "dims=-3" in text)
    refused = [write(prober, roll(), seed=seed).program for seed in range(40)]
    refused = [program for program in refused if program.meta.get("refused")]
    assert refused, "at a limit that eager refuses"
    for program in refused:
        (line,) = [line for line in body_of(program.text) if "dims=2" in line or "dims=-3" in line]
        name = line.strip().partition(" = ")[0]
        assert re.search(rf"\b{name}\b", program.text.rpartition("return")[2]), "no compiler may drop it"


def test_other_refusals_are_no_purpose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "_REFUSED", 1.0)
    programs = [write(FakeProber(), roll(), seed=seed).program for seed in range(8)]
    assert not any(program.meta.get("refused") for program in programs), "what holds is not refused"


def test_a_subgraph_is_taken_whole_and_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(template, "_SUBGRAPH", 1.0)
    metas = [write(FakeProber(), operator("sin"), seed=seed).program.meta for seed in range(12)]
    known = {entry.id for entry in default_entries() if entry.kind == "subgraph"}
    assert {name for meta in metas for name in meta.get("knowledge", ())} & known


def test_a_pattern_that_joined_by_its_feature_is_named() -> None:
    programs = [write(FakeProber(), operator("sin"), features=("boundary=alpha",), seed=s).program for s in range(24)]
    named = {name for program in programs for name in program.meta.get("knowledge", ())}
    assert named & {entry.id for entry in default_entries() if "boundary=alpha" in entry.brings}


def test_a_statement_with_thousands_of_results_is_not_taken() -> None:
    many = {"kind": "tuple", "length": 4107, "items": [tensor(2)] * 8}
    prober = FakeProber(makes=lambda line: many if "unbind(" in line else tensor(2, 3))
    for seed in range(8):
        text = write(prober, operator("unbind"), operator("sin"), seed=seed).program.text
        assert "torch.unbind(" not in text.replace("torch.unbind(0)[:4]", "")


def test_a_second_call_changes_one_size_everywhere() -> None:
    inputs = [("a", "torch.randn(4, 6)"), ("b", "torch.randint(0, 4, (4,))"), ("m", "torch.nn.Linear(6, 4)")]
    live = {"a": tensor(4, 6), "b": tensor(4), "m": {"kind": "module"}}
    proposals = second_inputs(inputs, live, random.Random(0))
    assert proposals[-1] == inputs and len(proposals) > 3
    for proposal in proposals[:-1]:
        assert proposal != inputs and proposal[2] == inputs[2], "parameters are shared by both calls"
        if "4, " not in proposal[0][1]:
            assert ", 4" not in proposal[1][1], "bounds of positions follow"


def test_whatever_can_be_asked_is_a_feature() -> None:
    assert askable() <= set(default_space().features)
    assert len(askable()) > 180


@pytest.mark.torch
def test_most_programs_run_and_have_what_was_asked(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    known = Operators.load_extract()
    families = {family: [op.key for op in ops] for family, ops in known.by_family.items()}

    async def run() -> tuple[int, int, int, int]:
        schedule = Schedule(default_space(), list(families), families, [], 5, askable=askable())
        engine, corpus = TemplateEngine(known), Corpus()
        worker = Worker(Target(), tmp_path / "worker", WorkerOptions(coverage=(), warm=False))
        await worker.start()
        valid = asked = realised = count = 0
        try:
            for _ in range(60):
                plan = schedule.next(corpus)
                count += 1
                try:
                    written = await engine.write(plan, schedule.choose_operators, worker)
                except CannotWrite:
                    continue
                seen = await worker.execute(written.program, options={"only_eager": True}, coverage=False)
                valid += seen.end.how == "done" and not any(stage.fault for stage in seen.stages)
                found = detect(written.program, seen, known.family_of_aten)
                asked += len(plan.features)
                realised += len(found & set(plan.features))
        finally:
            await worker.stop()
        return valid, count, realised, asked

    valid, count, realised, asked = asyncio.run(run())
    assert valid >= 0.9 * count
    assert realised >= 0.85 * asked
