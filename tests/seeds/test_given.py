"""Programs that a person hands to a campaign."""

from pathlib import Path

import pytest

from fuzzer.exits import UserError
from fuzzer.seeds.given import read_programs, seeds_of

TEXT = "import torch\n\n\ndef build_inputs():\n    return (torch.ones(2),)\n\n\ndef fn(a):\n    return a\n"


def test_programs_are_read_and_others_named(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "one.py").write_text(TEXT)
    (tmp_path / "other.py").write_text("print(1)\n")
    programs, skipped = read_programs(tmp_path)
    assert [program.text for program in programs] == [TEXT]
    assert len(skipped) == 1 and "other.py" in skipped[0]
    ((program, seed),) = seeds_of(programs)
    assert seed.id == program.id and seed.engine == "given" and seed.first > 0


def test_a_path_without_programs_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file or folder"):
        read_programs(tmp_path / "missing")
    (tmp_path / "other.py").write_text("print(1)\n")
    with pytest.raises(UserError, match="no program in it"):
        read_programs(tmp_path)
