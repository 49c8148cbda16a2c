"""Native coverage of a release build: which C++ functions ran, by one-shot breakpoints.

Nothing is rebuilt: see ``breakpoints.c``. Ids are a function's offset from its library's load base, stable for one
build of the library; so are those of basic blocks, where ``arm`` added them.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import platform
import sys
from array import array
from collections.abc import Iterable, Iterator

from harness.coverage import symbols
from harness.coverage.helper import Unavailable, build

_REASONS = {
    -1: "not loaded",
    -2: "has no .eh_frame_hdr",
    -3: "has an .eh_frame_hdr of a format that is not understood",
    -4: "is one library too many",
    -5: "found no memory",
}


class NativeCoverage:
    """One-shot function coverage. Made once in the fork server; children inherit it by ``fork``.

    Disarmed at a plain exit of the interpreter; children had better leave by ``os._exit``, which costs nothing.
    """

    name = "native"

    def __init__(
        self, scratch: str, libraries: tuple[str, ...] = ("libtorch_cpu", "libtorch_python", "libc10")
    ) -> None:
        self.total: dict[str, int] = {}  # library -> number of function starts
        self.missing: dict[str, str] = {}  # library -> why it is not covered
        self.rss_added = 0  # bytes of resident memory that arming took
        self._scratch = scratch
        self._libraries = libraries
        self._modules: dict[str, int] = {}
        self._paths: dict[str, str] = {}
        self._buffers: dict[str, ctypes.Array[ctypes.c_uint64]] = {}
        self._helper: ctypes.CDLL | None = None

    def start(self) -> None:
        """Arm every function start of the libraries, which must be loaded (import torch first).

        Raises:
            Unavailable: another platform, no compiler, none of the libraries, or text that may not be written to.
        """
        if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
            raise Unavailable(f"breakpoints need Linux on x86-64, this is {sys.platform} on {platform.machine()}")
        if self._helper is not None:
            raise Unavailable("native coverage is already started in this process")
        helper = _load(build("breakpoints.c", self._scratch))
        before = _resident()
        path = ctypes.create_string_buffer(4096)
        for library in self._libraries:
            module = helper.bp_open(library.encode(), path, len(path))
            if module < 0:
                self.missing[library] = f"{library} {_REASONS.get(module, 'failed')}"
                continue
            self._modules[library] = module
            self._paths[library] = os.fsdecode(path.value)
            self.total[library] = helper.bp_count(module)
            self._buffers[library] = (ctypes.c_uint64 * self.total[library])()
        if not self._modules:
            raise Unavailable("; ".join(self.missing.values()) or "no libraries asked for")
        error = helper.bp_arm()
        if error:
            raise Unavailable(f"the libraries' code may not be written to: {os.strerror(error)}")
        self._helper = helper
        # Finalisation gives signals back to their default before the libraries' destructors have run.
        atexit.register(self.stop)
        self.rss_added = max(0, _resident() - before)

    def mark_known(self, ids: dict[str, Iterable[int]]) -> None:
        """Disarm these here and in children forked later; never report them. Unknown ids are ignored."""
        helper = self._started()
        for library, values in ids.items():
            if library not in self._modules:
                continue
            packed = array("Q", (value for value in values if 0 <= value < 1 << 64))
            if packed:
                address, count = packed.buffer_info()
                helper.bp_known(self._modules[library], ctypes.cast(address, _IDS), count)

    def arm(self, addresses: dict[str, Iterable[int]]) -> dict[str, int]:
        """Arm further addresses, by library, in the server between two children; the number added, by library.

        For starts of basic blocks: each must be the first byte of an instruction. They are reported as ids beside the
        functions'. Addresses that are armed already, outside the code, or of other libraries are ignored.

        Raises:
            MemoryError: no room for the larger tables; nothing of that library was added.
        """
        helper = self._started()
        added = {}
        for library, values in addresses.items():
            if library not in self._modules:
                continue
            packed = array("Q", sorted({value for value in values if 0 <= value < 1 << 32}))
            address, count = packed.buffer_info()
            module = self._modules[library]
            number = int(helper.bp_extend(module, ctypes.cast(address, _IDS), count))
            if number < 0:
                raise MemoryError("no memory for further breakpoints")
            self._buffers[library] = (ctypes.c_uint64 * helper.bp_count(module))()
            added[library] = number
        return added

    def reset(self) -> None:
        """In the server, before each fork: forget all marks (about 0.1 ms)."""
        self._started().bp_reset()

    def child_start(self) -> None:
        """In the child that is measured: nothing to do, breakpoints and marks were inherited."""

    def child_detach(self) -> None:
        """In a child whose hits must not be reported: mark private memory from here on.

        Raises:
            MemoryError: no room for the private marks.
        """
        if self._started().bp_detach() != 0:
            raise MemoryError("no memory for private coverage marks")

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """In a child: what runs meanwhile is not reported, nor are the functions that it reaches first, later on."""
        helper = self._started()
        helper.bp_pause(1)
        try:
            yield
        finally:
            helper.bp_pause(0)

    def harvest(self, keep: bool = False) -> dict[str, list[int]]:
        """Ids reached since ``reset`` and never known before, by library, ascending; libraries without any are absent.

        They become known, as by ``mark_known``. With ``keep`` they do not, and the next child reports them again.
        """
        helper = self._started()
        found = {}
        for library, module in self._modules.items():
            buffer = self._buffers[library]
            count = helper.bp_harvest(module, buffer, int(keep))
            if count:
                found[library] = buffer[:count]
        return found

    def symbols(self, library: str, ids: Iterable[int]) -> list[str]:
        """Demangled names in the order of ``ids``; ``libc10+0x1f30`` where the symbol tables have none.

        Reads the library's file anew at each call (about 0.3 s for libtorch_cpu) and keeps nothing.
        """
        wanted = list(ids)
        names = symbols.function_names(self._paths[library], wanted) if library in self._paths else {}
        return [names.get(value, f"{library}+{value:#x}") for value in wanted]

    def stop(self) -> None:
        """Disarm everything and give SIGTRAP back to its former handler. May be called twice."""
        if self._helper is not None:
            self._helper.bp_stop()

    def _started(self) -> ctypes.CDLL:
        if self._helper is None:
            raise RuntimeError("native coverage is not started")
        return self._helper


_IDS = ctypes.POINTER(ctypes.c_uint64)


def _load(path: str) -> ctypes.CDLL:
    try:
        helper = ctypes.CDLL(path)
    except OSError as error:
        raise Unavailable(f"the breakpoint helper does not load: {error}") from None
    helper.bp_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    helper.bp_count.argtypes = [ctypes.c_int]
    helper.bp_count.restype = ctypes.c_uint32
    helper.bp_known.argtypes = [ctypes.c_int, _IDS, ctypes.c_size_t]
    helper.bp_known.restype = None
    helper.bp_harvest.argtypes = [ctypes.c_int, _IDS, ctypes.c_int]
    helper.bp_harvest.restype = ctypes.c_size_t
    helper.bp_extend.argtypes = [ctypes.c_int, _IDS, ctypes.c_size_t]
    helper.bp_extend.restype = ctypes.c_int64
    helper.bp_reset.restype = None
    helper.bp_stop.restype = None
    helper.bp_pause.argtypes = [ctypes.c_int]
    helper.bp_pause.restype = None
    return helper


def _resident() -> int:
    """Resident bytes of this process."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
