"""Starts of basic blocks of native functions, for coverage one level below functions. Needs the package capstone.

Only functions that are fully understood have blocks: what is armed must be the first byte of an instruction, or the
program would execute garbage. Landing pads of exceptions are reached by no branch, and are not among the blocks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzer.coverage_report.elf import ElfFile
from fuzzer.exits import UserError

_X86_64 = 62  # EM_X86_64
#: A function beyond this is unrolled numerics, whose blocks say little and cost a trap each.
_LONGEST = 64 << 10
_IMMEDIATE = re.compile(r"0x[0-9a-f]+|\d+")
#: Control does not go on behind these.
_ENDS = frozenset({"ret", "retf", "iret", "iretd", "iretq", "hlt", "ud0", "ud1", "ud2", "int3", "sysret", "sysexit"})
_LOOPS = frozenset({"loop", "loope", "loopne"})
#: Jumps that this module does not follow.
_UNKNOWN = frozenset({"ljmp", "lcall", "xbegin", "syscall", "sysenter"})

Instruction = tuple[int, int, str, str]  # address, size, mnemonic, operands


class NotUnderstood(Exception):
    """A function has no blocks here. ``str()`` is the reason, one of a few."""


@dataclass
class Blocks:
    """Blocks of some functions of one library: function start → starts of its further blocks, ascending.

    ``skipped`` counts functions by the reason why they have none.
    """

    starts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def addresses(self) -> list[int]:
        """All block starts, ascending: what ``Worker.arm`` takes for the library."""
        return sorted(address for starts in self.starts.values() for address in starts)


def find_blocks(path: Path, functions: Iterable[int]) -> Blocks:
    """Blocks of the functions that start at these offsets in a shared object (x86-64).

    Raises:
        UserError: capstone is not installed, or the file is no such library.
    """
    try:
        import capstone
    except ImportError:
        raise UserError("basic blocks need the package capstone; pip install 'eddyfuzz[blocks]'") from None
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    blocks = Blocks()
    with ElfFile(path) as file:
        if file.machine != _X86_64:
            raise UserError(f"{path}: not code for x86-64; basic blocks are found there only")
        extents = file.extents()
        every = file.function_starts()
        for start in sorted(set(functions)):
            try:
                blocks.starts[start] = _blocks(file, decoder, start, extents.get(start, 0), every)
            except NotUnderstood as reason:
                blocks.skipped[str(reason)] += 1
    return blocks


def _blocks(file: ElfFile, decoder: Any, start: int, size: int, every: list[int]) -> tuple[int, ...]:
    if not size:
        raise NotUnderstood("extent unknown")
    if size > _LONGEST:
        raise NotUnderstood("too long")
    following = bisect_right(every, start)
    if following < len(every) and every[following] < start + size:
        raise NotUnderstood("overlaps another function")
    code = file.read(start, size)
    instructions = list(decoder.disasm_lite(code, start))
    return leaders(instructions, start, size)


def leaders(instructions: list[Instruction], start: int, size: int) -> tuple[int, ...]:
    """Starts of the basic blocks of one function, its own start apart, from its linear disassembly.

    Blocks begin at the targets of branches and behind conditional ones, as far as control gets there from the start;
    of one that begins with padding, the first real instruction counts.

    Raises:
        NotUnderstood: bytes that are no instruction, an indirect jump, a branch into an instruction.
    """
    index = {instruction[0]: number for number, instruction in enumerate(instructions)}
    if not instructions or instructions[0][0] != start or sum(item[1] for item in instructions) != size:
        raise NotUnderstood("undecodable bytes")
    found: set[int] = set()
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        address = waiting.pop()
        while address not in seen:
            seen.add(address)
            number = index[address]
            _, length, mnemonic, operands = instructions[number]
            name = mnemonic.rpartition(" ")[2]  # "bnd jmp", "lock add"
            if name in _UNKNOWN:
                raise NotUnderstood("unusual control flow")
            following = address + length
            if name.startswith("j") or name in _LOOPS:
                target = _target(operands)
                if start <= target < start + size:
                    if target not in index:
                        raise NotUnderstood("branch into an instruction")
                    found.add(target)
                    waiting.append(target)
                if name == "jmp":
                    break
                if following in index:
                    found.add(following)
            elif name in _ENDS:
                break
            if following not in index:
                break  # the last call does not return, or control leaves the function
            address = following
    return tuple(sorted({_real(instructions, index[address]) for address in found} - {start, 0}))


def _target(operands: str) -> int:
    if not _IMMEDIATE.fullmatch(operands):
        raise NotUnderstood("indirect jump")
    return int(operands, 0)


def _real(instructions: list[Instruction], number: int) -> int:
    """Address of the first instruction from here on that is no padding; 0 where there is none."""
    while number < len(instructions) and instructions[number][2].rpartition(" ")[2] == "nop":
        number += 1
    if number == len(instructions) or instructions[number][2] == "int3":
        return 0
    return instructions[number][0]
