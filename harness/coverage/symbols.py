"""Names of functions from the symbol tables of an ELF file, demangled."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Iterable

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")  # Elf64_Ehdr
_SECTION = struct.Struct("<IIQQQQIIQQ")  # Elf64_Shdr
_SYMBOL = struct.Struct("<IBBHQQ")  # Elf64_Sym
_SYMTAB, _DYNSYM = 2, 11  # SHT_SYMTAB, SHT_DYNSYM
_FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC


def function_names(path: str, offsets: Iterable[int]) -> dict[int, str]:
    """offset from the load base -> demangled name, for those of ``offsets`` that a symbol table names.

    The full table (``.symtab``) is preferred; a file without symbols, or that is no ELF file, names nothing.
    """
    wanted = set(offsets)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
        names: dict[int, bytes] = {}
        for kind in (_SYMTAB, _DYNSYM):
            for table, strings in _tables(image, kind):
                _collect(image, table, strings, wanted, names)
    return _demangle(names)


def find_function(path: str, names: Iterable[bytes]) -> int:
    """Offset from the load base of the first of ``names`` (as linkers spell them) that a file defines; 0 for none.

    Hidden functions are found where the file was not stripped. Files that cannot be read define nothing.
    """
    try:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
            for kind in (_SYMTAB, _DYNSYM):
                for table, strings in _tables(image, kind):
                    for name in names:
                        offset = _offset_of(image, table, strings, name)
                        if offset:
                            return offset
    except (OSError, ValueError):
        pass
    return 0


def _offset_of(image: mmap.mmap, table: tuple[int, int], strings: int, wanted: bytes) -> int:
    at = image.find(b"\0" + wanted + b"\0", strings)
    if at < 0:  # almost every library: its symbols need not be read
        return 0
    offset, size = table
    rows = image[offset : offset + size - size % _SYMBOL.size]
    for name, info, _, section, value, _ in _SYMBOL.iter_unpack(rows):
        if name == at + 1 - strings and section and info & 0xF in _FUNCTIONS:
            return int(value)
    return 0


def _tables(image: mmap.mmap, kind: int) -> list[tuple[tuple[int, int], int]]:
    """((offset, size) of a symbol table, offset of its strings) for each section of ``kind``."""
    if len(image) < _HEADER.size or image[:5] != b"\x7fELF\x02":
        return []
    header = _HEADER.unpack_from(image, 0)
    start, entry, count = header[6], header[11], header[12]
    if entry != _SECTION.size or start + entry * count > len(image):
        return []
    sections = [_SECTION.unpack_from(image, start + entry * k) for k in range(count)]
    return [((s[4], s[5]), sections[s[6]][4]) for s in sections if s[1] == kind and s[6] < count]


def _collect(image: mmap.mmap, table: tuple[int, int], strings: int, wanted: set[int], names: dict[int, bytes]) -> None:
    offset, size = table
    rows = memoryview(image)[offset : offset + size - size % _SYMBOL.size]
    try:
        for name, info, _, section, value, _ in _SYMBOL.iter_unpack(rows):
            if value in wanted and section and info & 0xF in _FUNCTIONS and value not in names:
                end = image.find(b"\0", strings + name)
                names[value] = image[strings + name : end]
    finally:
        rows.release()


def _demangle(names: dict[int, bytes]) -> dict[int, str]:
    """C++ names through the runtime library's ``__cxa_demangle``; as they are where it is absent."""
    try:
        runtime = ctypes.CDLL("libstdc++.so.6")
        demangle, free = runtime.__cxa_demangle, ctypes.CDLL(None).free
    except (OSError, AttributeError):
        return {offset: name.decode(errors="replace") for offset, name in names.items()}
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    demangle.restype = ctypes.c_void_p
    free.argtypes = [ctypes.c_void_p]
    free.restype = None
    plain = {}
    for offset, name in names.items():
        status = ctypes.c_int(-1)
        text = demangle(name, None, None, ctypes.byref(status)) if name.startswith(b"_Z") else None
        if text:
            name = ctypes.cast(text, ctypes.c_char_p).value or name
            free(text)
        plain[offset] = name.decode(errors="replace")
    return plain
