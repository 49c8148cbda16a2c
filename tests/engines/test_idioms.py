"""Idioms: what fits, what is written, and that every one that ships brings its feature about."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.engines.draft import Candidate, Draft
from fuzzer.engines.idioms import Idiom, Idioms, default_idioms, write
from fuzzer.engines.tensors import Fresh
from fuzzer.exits import UserError
from fuzzer.features.detect import default_space, detect
from fuzzer.knowledge.operators import Operators
from fuzzer.program import Program
from fuzzer.worker import Target, Worker, WorkerOptions

OWN = Idioms.load()  # without the entries of the knowledge base, which have a linter of their own
ALL = [
    (key, idiom) for key in sorted(OWN.features | {f"group={group}" for group in OWN.groups}) for idiom in OWN.of(key)
]
#: Seen only where results are compared (alias), or only by what a compiled run adds.
_UNSEEN_EAGERLY = frozenset({"topology=alias"})


def program_of(idiom: Idiom, seed: int = 0) -> Program:
    """A program that consists of the idiom on a fresh tensor."""
    rng, draft = random.Random(seed), Draft()
    dtype, shape = idiom.subject(rng)
    x, y = draft.fresh_names(2)
    inputs = [(name, Fresh(shape, dtype, low=-3, high=9).text(rng)) for name in (x, y)[: 1 + idiom.needs_twin]]
    piece = write(idiom, x, dtype, shape, rng, lambda: draft.fresh_names(1)[0], y)
    target = piece.results[0] if piece.results else ""
    binds = (*(name for name, _ in (*inputs, *piece.inputs)), *piece.binds)
    lines = ["\n".join(piece.lines)] if idiom.code else [f"{x}.clone()"]
    draft.accept(
        Candidate([*inputs, *piece.inputs], lines, target, (), binds, "", written=piece.written, helper=piece.helper),
        {name: {"kind": "tensor"} for name in (*binds, piece.written)},
    )
    draft.merge(dict(idiom.meta))
    draft.as_dict = idiom.returns == "dict"
    return Program.parse(draft.text({"mode": "forward", **draft.meta}, draft.results()))


def test_every_feature_that_has_idioms_exists() -> None:
    space = default_space()
    assert default_idioms().features <= set(space.features)
    assert default_idioms().groups - {"net", "smooth"} <= set(space.group_of.values())


@given(st.sampled_from(ALL), st.integers(0, 99))
def test_every_idiom_is_sound_text(entry: tuple[str, Idiom], seed: int) -> None:
    program = program_of(entry[1], seed)
    assert Program.parse(program.text) == program
    assert "_1_" not in program.text and "DTYPE" not in program.text and "SHAPE" not in program.text
    assert max(map(len, program.text.splitlines())) <= 120


@given(st.sampled_from(ALL), st.integers(0, 99))
def test_a_subject_fits(entry: tuple[str, Idiom], seed: int) -> None:
    dtype, shape = entry[1].subject(random.Random(seed))
    assert entry[1].fits(dtype, shape, made="made" in entry[1].on)


@given(st.sampled_from(ALL), st.sampled_from(["float32", "bfloat16", "int64", "bool"]), st.lists(st.integers(1, 5)))
def test_what_an_adapter_makes_fits(entry: tuple[str, Idiom], dtype: str, shape: list[int]) -> None:
    adapter = entry[1].adapter(dtype, shape)
    if adapter is not None:
        assert entry[1].fits(*adapter[1:], made=True)


def test_placeholders_are_filled() -> None:
    idiom = Idiom(frozenset({"float", "rank1"}), "s = x.sum(DIM)\nr = torch.zeros(SIZES) + y", {"k": "torch.arange(N)"})
    names = iter("abc")
    piece = write(idiom, "u", "float32", (4,), random.Random(0), lambda: next(names), "v")
    assert piece.lines == ("a = u.sum(0)", "b = torch.zeros(4) + v")
    assert piece.results == ("b", "a") and piece.inputs == (), "k is not used; a is bound and never read"


def test_a_bad_table_is_explained(tmp_path: Path) -> None:
    file = tmp_path / "idioms.toml"
    for text, message in (
        ('"a=b" = [{ on = "round" }]', "no word 'round'"),
        ('"a=b" = [{ code = ["r = ("] }]', "not Python"),
        ('"a=b" = [{ colour = 1 }]', "an idiom is a table of"),
        ("a = ", "not valid TOML"),
    ):
        file.write_text(text)
        with pytest.raises(UserError, match=message):
            Idioms.load(file)


@pytest.mark.torch
def test_every_idiom_brings_its_feature_about(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    operators = Operators.load_extract()

    async def missing() -> list[str]:
        worker = Worker(Target(), tmp_path / "worker", WorkerOptions(coverage=(), warm=False))
        await worker.start()
        found = []
        try:
            for key, idiom in ALL:
                program = program_of(idiom)
                seen = await worker.execute(program, options={"only_eager": True}, coverage=False)
                faults = [stage.fault.message for stage in seen.stages if stage.fault]
                if faults or seen.end.how != "done":
                    found.append(f"{key} {idiom.code!r} fails: {faults or seen.end}")
                realised = _UNSEEN_EAGERLY | detect(program, seen, operators.family_of_aten)
                if key not in realised and not key.startswith("group="):
                    found.append(f"{key} {idiom.code!r} is not recognised: {seen.operators}")
        finally:
            await worker.stop()
        return found

    found = asyncio.run(missing())
    assert not found, "\n".join(found)
