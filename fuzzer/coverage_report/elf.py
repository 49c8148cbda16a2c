"""What an ELF file tells about its functions without running it: starts, extents, symbols, bytes.

64-bit little-endian files only. Offsets are virtual addresses of the file, which for a shared object are offsets from
its load base: the ids of native coverage.
"""

from __future__ import annotations

import mmap
import struct
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from fuzzer.exits import UserError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_PROGRAM = struct.Struct("<IIQQQQQQ")  # Elf64_Phdr
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_PT_LOAD, _PT_GNU_EH_FRAME = 1, 0x6474E550
_EXECUTABLE = 1  # PF_X
_SYMTAB, _DYNSYM = 2, 11  # SHT_SYMTAB, SHT_DYNSYM
_FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
#: Encodings of `.eh_frame_hdr` and of a CIE's pointers that compilers use on x86-64 (DW_EH_PE_*).
_UDATA4, _DATAREL_SDATA4, _PCREL_SDATA4 = 0x03, 0x3B, 0x1B


class ElfFile:
    """One shared object, mapped. Use as a context manager.

    Raises:
        UserError: the file cannot be read, or is no ELF file of this kind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with open(path, "rb") as file:
                self._image = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise UserError(f"{path}: cannot be read ({error}); name a shared object") from None
        if len(self._image) < _HEADER.size or self._image[:6] != b"\x7fELF\x02\x01":
            self._image.close()
            raise UserError(f"{path}: not a little-endian 64-bit ELF file; name a shared object")
        header = _HEADER.unpack_from(self._image, 0)
        self.machine = int(header[2])
        segments = [_PROGRAM.unpack_from(self._image, header[5] + k * _PROGRAM.size) for k in range(header[10])]
        #: (virtual address, file offset, bytes in the file, executable), by address
        self._loads = sorted((s[3], s[2], s[5], bool(s[1] & _EXECUTABLE)) for s in segments if s[0] == _PT_LOAD)
        self._frame_header = next((s[3] for s in segments if s[0] == _PT_GNU_EH_FRAME), None)
        self._sections: list[tuple[int, ...]] = []
        if header[6] and header[11] == _SECTION.size and header[6] + header[12] * header[11] <= len(self._image):
            self._sections = [_SECTION.unpack_from(self._image, header[6] + k * header[11]) for k in range(header[12])]

    def __enter__(self) -> ElfFile:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._image.close()

    def read(self, address: int, size: int) -> bytes:
        """Bytes at a virtual address; fewer than ``size`` at the end of what the file holds."""
        at = self._file_offset(address)
        if at is None:
            return b""
        offset, rest, _ = at
        return self._image[offset : offset + min(size, rest)]

    def _file_offset(self, address: int) -> tuple[int, int, bool] | None:
        """(file offset, bytes left in the segment, executable)."""
        index = bisect_right(self._loads, (address, 1 << 64, 0, True)) - 1
        if index < 0:
            return None
        base, offset, size, executable = self._loads[index]
        return (offset + address - base, base + size - address, executable) if address < base + size else None

    def function_starts(self) -> list[int]:
        """Every function start that ``.eh_frame_hdr`` lists in executable memory, ascending: what native coverage arms.

        Empty where the table is missing or of another encoding.
        """
        return [start for start, _ in self._frame_table()]

    def _frame_table(self) -> list[tuple[int, int]]:
        """(function start, address of its FDE), ascending by start, one a start."""
        if self._frame_header is None:
            return []
        base = self._frame_header
        head = self.read(base, 12)
        if len(head) < 12 or head[0] != 1 or head[2] != _UDATA4 or head[3] != _DATAREL_SDATA4:
            return []
        if head[1] & 0x0F not in (0x0B, 0x03):
            return []
        count = int.from_bytes(head[8:], "little")
        rows = self.read(base + 12, count * 8)
        table: list[tuple[int, int]] = []
        last = -1
        spans = [(low, low + size) for low, _, size, executable in self._loads if executable]
        for start, frame in struct.iter_unpack("<ii", rows[: len(rows) - len(rows) % 8]):
            at = base + start
            if at != last and any(low <= at < high for low, high in spans):
                table.append((at, base + frame))
                last = at
        return table

    def extents(self) -> dict[int, int]:
        """Function start → length in bytes, by its frame description; absent where that is not understood."""
        found = {}
        encodings: dict[int, int | None] = {}
        for start, frame in self._frame_table():
            head = self.read(frame, 16)
            if len(head) < 16:
                continue
            length, back, relative, size = struct.unpack("<IIiI", head)
            if length in (0, 0xFFFFFFFF):  # a terminator, or the 64-bit form, which no linker writes
                continue
            common = frame + 4 - back
            if common not in encodings:
                encodings[common] = self._pointer_encoding(common)
            if encodings[common] == _PCREL_SDATA4 and frame + 8 + relative == start and size:
                found[start] = size
        return found

    def _pointer_encoding(self, common: int) -> int | None:
        """How a CIE says that its FDEs write addresses; None where that is not understood (LSB Core, "CIE Format")."""
        data = self.read(common, 64)
        if len(data) < 16 or data[8] not in (1, 3):
            return None
        end = data.find(b"\0", 9)
        letters = data[9:end]
        if not letters.startswith(b"z"):
            return None
        at = end + 1
        for _ in range(4):  # code alignment, data alignment, return register, length of what follows
            while at < len(data) and data[at] & 0x80:
                at += 1
            at += 1
        for letter in letters[1:]:
            if at >= len(data):
                return None
            if letter == ord("R"):
                return data[at]
            if letter == ord("P"):
                if data[at] & 0x0F not in (0x03, 0x0B):
                    return None
                at += 5
            elif letter == ord("L"):
                at += 1
            elif letter not in b"SB":
                return None
        return None

    def function_symbols(self) -> dict[int, bytes]:
        """Address → mangled name of the functions that the symbol tables name; ``.symtab`` is preferred."""
        names: dict[int, bytes] = {}
        for kind in (_SYMTAB, _DYNSYM):
            for offset, size, strings in self._tables(kind):
                for address, at in self._functions(offset, size):
                    if address not in names:
                        begin = strings + at
                        names[address] = self._image[begin : self._image.find(b"\0", begin)]
        return names

    def _tables(self, kind: int) -> list[tuple[int, int, int]]:
        sections = self._sections
        return [(s[4], s[5], sections[s[6]][4]) for s in sections if s[1] == kind and s[6] < len(sections)]

    def _functions(self, offset: int, size: int) -> Iterator[tuple[int, int]]:
        rows = self._image[offset : offset + size - size % _SYMBOL.size]
        for name, info, _, section, value, _ in _SYMBOL.iter_unpack(rows):
            if section and info & 0xF in _FUNCTIONS:
                yield value, name
