"""Programs that a person hands to a campaign: read from files, to be mutated and spliced like seeds it found itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fuzzer.exits import UserError
from fuzzer.features.detect import detect
from fuzzer.policy.corpus import Seed
from fuzzer.program import Program, ProgramError
from fuzzer.seeds.shipped import NAME, SHIPPED

#: As if it had been the first to reach so much: a given seed is tried early, and the bonus fades as it is chosen.
_FIRST = 32


def read_programs(path: Path) -> tuple[list[Program], list[str]]:
    """The programs of a file, or of a folder and those below it; and a line for each file that holds none.

    The name ``shipped``, where nothing in the current folder is called so, stands for the seeds that ship.

    Raises:
        UserError: there is no such path, or no program in it.
    """
    if str(path) == NAME and not path.exists():
        path = SHIPPED
    if not path.exists():
        raise UserError(
            f"--seeds {path}: no such file or folder; `eddy seeds import` and `trace` make some, `{NAME}` is what ships"
        )
    programs, skipped = [], []
    for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
        try:
            programs.append(Program.parse(file.read_text("utf-8"), str(file)))
        except (ProgramError, OSError, UnicodeDecodeError) as error:
            skipped.append(str(error))
    if not programs:
        raise UserError(
            f"--seeds {path}: no program in it; a program defines META, build_inputs and fn (docs/glossary.md)"
        )
    return programs, skipped


def seeds_of(programs: Iterable[Program]) -> list[tuple[Program, Seed]]:
    """What a corpus keeps of them; features are those that the text shows, for nothing has run yet."""
    return [
        (program, Seed(program.id, engine="given", features=detect(program, None, lambda _operator: ""), first=_FIRST))
        for program in programs
    ]
