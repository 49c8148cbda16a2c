from __future__ import annotations

from pathlib import Path

import pytest
from small_library import build_library, needs_compiler, symbols

from fuzzer.coverage_report.elf import ElfFile
from fuzzer.exits import UserError


@needs_compiler
def test_starts_extents_symbols_and_bytes_are_those_of_binutils(tmp_path: Path) -> None:
    path = build_library(tmp_path / "libsmall.so")
    named = symbols(path)
    assert "plain" in named
    with ElfFile(path) as file:
        starts, extents, names = file.function_starts(), file.extents(), file.function_symbols()
        first = {name: file.read(address, 1) for name, (address, _) in named.items()}
    assert starts == sorted(set(starts))
    own = {name: place for name, place in named.items() if "native" in name or name == "plain"}
    assert len(own) >= 5
    for name, (address, size) in own.items():
        assert address in starts and extents[address] == size and names[address] == name.encode()
        assert len(first[name]) == 1
    whole = path.read_bytes()
    assert all(first[name] in whole for name in own)


@needs_compiler
def test_a_stripped_library_still_lists_its_functions(tmp_path: Path) -> None:
    path = build_library(tmp_path / "libsmall.so")
    stripped = build_library(tmp_path / "libstripped.so", path.with_suffix(".cpp").read_text(), "-s")
    address = symbols(path)["plain"][0]
    with ElfFile(path) as full, ElfFile(stripped) as bare:
        assert bare.function_starts() == full.function_starts() and address in bare.function_starts()
        assert b"plain" in bare.function_symbols().values()  # from .dynsym


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n" + b" " * 100])
def test_other_files_are_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "text.so"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"text\.so: .*shared object"):
        ElfFile(path)
