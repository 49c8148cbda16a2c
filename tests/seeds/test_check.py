"""Which programs count as runnable, how a refusal is classed, what is mended, how files are named."""

from pathlib import Path

import pytest

from fuzzer.observation import End, Fault, Observation, Stage
from fuzzer.program import Program
from fuzzer.seeds.check import Checked, file_name, refusal, repaired, write_programs


def seen(*stages: tuple[str, Fault | None], end: End | None = None) -> Observation:
    return Observation("x", "", tuple(Stage(name, 0.1, 0.1, fault) for name, fault in stages), end or End())


def program(meta: str = "{}", source: str = "test_a.py::T.test_x (2)") -> Program:
    build = "def build_inputs():\n    return (torch.ones(2),)\n"
    text = f"import torch\n\nMETA = {meta}\n\n\n{build}\n\ndef fn(a):\n    return a\n"
    return Program.parse(text, source)


@pytest.mark.parametrize(
    ("observation", "why"),
    [
        (
            seen(("build", Fault("builtins.NameError", "name 'q' is not defined"))),
            "its inputs cannot be made: NameError",
        ),
        (seen(("build", None), ("eager", Fault("builtins.RuntimeError", "no"))), "eager refuses it: RuntimeError"),
        (seen(("build", None), end=End("timeout", stage="eager")), "eager is too slow"),
        (seen(("build", None), end=End("signal", 11, stage="eager")), "eager dies"),
        (seen(("build", None), ("eager", None), ("compile", Fault("x.E", "bad"))), ""),
        (seen(("build", None), ("eager", None), end=End("signal", 11, stage="run")), ""),
    ],
)
def test_only_what_eager_refuses_is_not_runnable(observation: Observation, why: str) -> None:
    assert refusal(observation)[0] == why
    assert Checked(program(), why).runnable is (not why)


def test_gradients_that_eager_lacks_are_given_up() -> None:
    refused = seen(
        ("build", None), ("eager", None), ("eager_backward", Fault("builtins.RuntimeError", "no derivative"))
    )
    mended = repaired(program('{"mode": "backward"}'), refused)
    assert mended is not None and mended.mode == "forward"
    assert repaired(program('{"mode": "forward"}'), refused) is None


def test_options_that_the_target_lacks_are_given_up() -> None:
    fault = Fault("builtins.AttributeError", "torch._inductor.config.unheard_of does not exist")
    mended = repaired(program('{"inductor_config": {"unheard_of": 1}}'), seen(("eager", None), ("compile", fault)))
    assert mended is not None and not mended.meta.get("inductor_config")
    broken = "AttributeError: torch._dynamo.config.gone does not exist"
    assert repaired(program('{"dynamo_config": {"gone": 1}}'), seen(("eager", None)), broken) is not None
    other = Fault("torch._inductor.exc.InductorError", "assertion failed")
    assert repaired(program('{"inductor_config": {"a": 1}}'), seen(("compile", other))) is None


def test_files_are_named_after_their_tests_and_never_overwrite_one_another(tmp_path: Path) -> None:
    assert file_name(program()) == "test_a__T_test_x_2.py"
    paths = write_programs([program(), program('{"mode": "eval"}')], tmp_path / "new")
    assert [path.name for path in paths] == ["test_a__T_test_x_2.py", "test_a__T_test_x_2_2.py"]
    assert Program.parse(paths[1].read_text("utf-8")).mode == "eval"
