"""How generated C++ becomes a library, faster: the same code and the same optimisations, only less waiting.

Three things, all undone by ``plain`` (a sampled share of programs and every suspect run so):

- a kernel built before is taken from a store of libraries, by its text, its flags and its compiler;
- torch's libraries, which the process has loaded, are named to the linker by empty stand-ins of the same name, so that
  it need not read their half a million symbols: the result names the same libraries and lacks the same symbols;
- where clang is at hand it compiles in place of g++, with a precompiled header whose templates are instantiated (g++
  instantiates them anew in every kernel, which is most of its time), without debug information (which changes no
  instruction), and the linker is called without the driver between. Not kernels with OpenMP: with clang's runtime
  beside the one that torch has loaded, parallel reductions were seen to go wrong.

Vector-ISA probes are never touched: they run before ``begin``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import resource
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

#: The plain name first, then the newest. Tried with 19; what is older than 16 is left alone.
_CLANGS = ("clang++", *(f"clang++-{version}" for version in range(22, 15, -1)))
_OLDEST_CLANG = 16
_STANDINS = ("torch", "torch_cpu", "torch_python")
#: What Inductor tells g++ and clang does not know.
_GCC_ONLY = frozenset({"-fno-tree-loop-vectorize", "-fexcess-precision=fast", "-fno-use-linker-plugin"})
_OPENMP = b"#pragma omp"
#: Names that stand for object file and library where clang's driver is asked how it would link.
_UNLINKED, _LINKED = "eddy-unlinked.o", "eddy-linked.so"
_BUILD_SECONDS = 60.0

#: Bytes of libraries kept; at about 40 kB each, some 12,000 kernels.
_STORE_BYTES = 512 << 20
_LARGEST = 8 << 20

_COMMENT = re.compile(rb"^\s*//.*\n", re.M)
_NUMBER = re.compile(rb"\b\d(?:[\w.]|(?<=[eE])[+-])*")
#: Kernels of one program whose forms are told.
_MOST_FORMS = 64


@dataclass
class Cost:
    """What the C++ step of one child took. Seconds are wall time, ``cpu`` processor time of the compilers."""

    kernels: int = 0
    reused: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    fallbacks: int = 0  # the fast command failed, the plain one was run
    clang: int = 0  # of those built
    clang_cpu: float = 0.0  # of ``cpu``
    #: Each kernel's text without its numbers (sizes, strides, constants), hashed: what kernels of one shape share.
    forms: list[str] = field(default_factory=list)


class Toolchain:
    """Made once in the fork server; children inherit it by ``fork``.

    Attributes:
        told: one line for a person: compilers, linker, what is shared.
    """

    def __init__(self, folder: str) -> None:
        """``folder`` is shared by all servers of a target; libraries are kept in ``folder/kernels``."""
        self.told = "plain"
        self.built: dict[str, str] = {}  # in a child: key -> library built in its own folder
        self.cost = Cost()
        self._store = os.path.join(folder, "kernels")
        self._standins = os.path.join(folder, "standins")
        self._headers = ""
        self._clang = ""
        self._fuse = ""
        self._identity = b""
        self._active = False
        self._kept = 0

    def install(self) -> None:
        """Choose compiler and linker and wrap Inductor's call of the compiler. Does nothing on a torch without one."""
        import torch._inductor.codecache as codecache
        import torch._inductor.cpp_builder as cpp_builder

        if not hasattr(cpp_builder, "run_compile_cmd"):
            return
        os.makedirs(self._store, exist_ok=True)
        compiler = str(cpp_builder.get_cpp_compiler())
        version = _run([compiler, "--version"])
        self._headers = getattr(codecache, "_HEADER_DIR", "")
        if "clang" not in version and self._headers:
            self._clang = _find_clang(self._store)
        if shutil.which("ld.lld") and "LLD" in _run([compiler, "-fuse-ld=lld", "-Wl,--version"]):
            self._fuse = "-fuse-ld=lld"
        if not _make_standins(self._standins, compiler):
            self._standins = ""
        self._identity = "\0".join([version, _run([self._clang, "--version"]) if self._clang else ""]).encode()
        words = [compiler, *([f"{self._clang} where no OpenMP is"] if self._clang else []), "kernels kept"]
        words += ["ld.lld"] if self._fuse else []
        words += [] if self._standins else ["no stand-ins for the linker"]
        self.told = ", ".join(words)
        self._wrap(cpp_builder)

    def _wrap(self, cpp_builder: Any) -> None:
        original: Callable[..., Any] = cpp_builder.run_compile_cmd

        def run_compile_cmd(cmd_line: str, cwd: str) -> Any:
            return self._build(original, cmd_line, cwd) if self._active else original(cmd_line, cwd)

        cpp_builder.run_compile_cmd = run_compile_cmd

    # -- in the child -----------------------------------------------------------------------------------------------

    def begin(self, plain: bool) -> None:
        """In a child, before it compiles."""
        self._active = True
        self.cost = Cost()
        self.built = {}
        if plain:
            self._store = self._standins = self._clang = ""

    def facts(self) -> dict[str, Any]:
        """For the observation: what the C++ step cost so far, and which libraries may be kept."""
        return {"cxx": dict(self.cost.__dict__), "built": dict(self.built)}

    def _build(self, original: Callable[..., Any], line: str, cwd: str) -> Any:
        call = _Call.parse(line)
        if call is None:
            return original(line, cwd)
        started, before = time.perf_counter(), _children_cpu()
        try:
            self.cost.kernels += 1
            self.cost.forms = [*self.cost.forms, call.form()][:_MOST_FORMS]
            key = call.key(self._identity) if self._store else ""
            if key and self._take(key, call.output):
                self.cost.reused += 1
                return b""
            result = self._compile(original, call, line, cwd)
            if key:
                self.built[key] = call.output
            return result
        finally:
            self.cost.seconds += time.perf_counter() - started
            self.cost.cpu += _children_cpu() - before

    def _compile(self, original: Callable[..., Any], call: _Call, line: str, cwd: str) -> Any:
        if not self._standins:
            return original(line, cwd)
        try:
            if self._by_clang(call):
                return b""
            return original(shlex.join(_linked_with(list(call.words), self._standins, self._fuse)), cwd)
        except Exception:  # whatever it was, the user's own command decides
            self.cost.fallbacks += 1
            return original(line, cwd)

    def _by_clang(self, call: _Call) -> bool:
        """Build with clang; False where g++ must do it (OpenMP) or no header is precompiled.

        Raises:
            subprocess.CalledProcessError: clang or the linker refuses.
        """
        words = self._with_clang(call)
        if not words:
            return False
        before = _children_cpu()
        unlinked = call.output + ".o"
        linking = [word for word in call.words[1:] if word.startswith(("-l", "-L"))]
        link = self._link_command(_linked_with(["-shared", *linking], self._standins, self._fuse))
        placed = {_UNLINKED: unlinked, _LINKED: call.output}
        for step in ([*words, "-o", unlinked], [placed.get(word, word) for word in link]):
            subprocess.run(step, check=True, capture_output=True, timeout=_BUILD_SECONDS)
        os.unlink(unlinked)
        self.cost.clang += 1
        self.cost.clang_cpu += _children_cpu() - before
        return True

    def _with_clang(self, call: _Call) -> list[str]:
        """Clang's command for the object file, its name left out."""
        words = call.words
        if not self._clang or "-include" not in words or _OPENMP in call.text:
            return []
        header = words[words.index("-include") + 1]
        flags = [word for word in words[1:] if word not in (call.source, *_GCC_ONLY)]
        for name in ("-include", "-o"):
            at = flags.index(name)
            del flags[at : at + 2]
        # What only linking wants would make another header of every program's folder.
        wanted = ["-g0" if word == "-g1" else word for word in flags if not word.startswith(("-l", "-L", "-shared"))]
        compiled = self._instantiated(header, wanted)
        return [self._clang, *wanted, "-c", call.source, "-include-pch", compiled] if compiled else []

    def _link_command(self, flags: list[str]) -> list[str]:
        """What clang's driver would run to link ``_UNLINKED`` to ``_LINKED``; asked once for each set of flags.

        Raises:
            OSError, IndexError: the driver tells nothing of use.
        """
        words = [self._clang, *flags, _UNLINKED, "-o", _LINKED, "-###"]
        name = hashlib.sha256(b"\0".join([self._identity, *(word.encode() for word in words)])).hexdigest()[:24]
        told = os.path.join(self._headers, f"{name}.link")
        if not os.path.exists(told):
            with tempfile.TemporaryDirectory(dir=self._headers) as folder:
                with open(os.path.join(folder, _UNLINKED), "w"):
                    pass  # the driver leaves out what is not there
                answer = subprocess.run(
                    words, cwd=folder, capture_output=True, text=True, timeout=_BUILD_SECONDS
                ).stderr
            commands = [line for line in answer.splitlines() if line.startswith(" ") and _UNLINKED in line]
            partial = f"{told}.{os.getpid()}.{time.monotonic_ns()}"
            with open(partial, "w") as file:
                file.write(commands[-1])
            os.replace(partial, told)
        with open(told) as file:
            return shlex.split(file.read())

    def _instantiated(self, header: str, flags: list[str]) -> str:
        """Clang's precompiled form of a header, its templates instantiated; built once for each set of flags."""
        words = [self._clang, "-x", "c++-header", header, *flags]
        name = hashlib.sha256(b"\0".join([self._identity, *(word.encode() for word in words)])).hexdigest()[:24]
        compiled = os.path.join(self._headers, f"{name}.pch")
        if not os.path.exists(compiled):
            partial = f"{compiled}.{os.getpid()}.{time.monotonic_ns()}"
            _run([*words, "-Xclang", "-fpch-instantiate-templates", "-o", partial])
            if not os.path.exists(partial):
                return ""
            os.replace(partial, compiled)
        return compiled

    def _take(self, key: str, output: str) -> bool:
        """A copy: the sandbox of a child lets it read the store, but link nothing out of it."""
        with contextlib.suppress(OSError):
            shutil.copyfile(os.path.join(self._store, key + ".so"), output)
            return True
        return False

    # -- in the server ----------------------------------------------------------------------------------------------

    def keep(self, built: dict[str, str], folder: str) -> None:
        """Take over the libraries that a child, which ended well, has built under ``folder``."""
        root = os.path.realpath(folder) + os.sep
        for key, path in built.items():
            whole = os.path.realpath(path)
            if not re.fullmatch(r"[0-9a-f]{40}", key) or not whole.startswith(root):
                continue
            with contextlib.suppress(OSError):
                size = os.path.getsize(whole)
                if os.path.isfile(whole) and 0 < size < _LARGEST:
                    os.link(whole, os.path.join(self._store, key + ".so"))
                    self._kept += size
        if self._kept > _STORE_BYTES:
            self._forget_half()

    def _forget_half(self) -> None:
        """Drop the older half. Another server of the same target may do so at the same time."""
        with contextlib.suppress(OSError):
            entries = sorted(os.scandir(self._store), key=lambda entry: entry.stat().st_mtime)
            for entry in entries[: len(entries) // 2]:
                os.unlink(entry.path)
        self._kept //= 2


@dataclass(frozen=True)
class _Call:
    """One compiler call that makes a library from one source."""

    words: tuple[str, ...]
    source: str
    output: str
    text: bytes

    @classmethod
    def parse(cls, line: str) -> _Call | None:
        """None for headers, objects, several sources: those are left as they are."""
        words = shlex.split(line)
        sources = [word for word in words[1:] if word.endswith(".cpp")]
        if "-shared" not in words or "-o" not in words[:-1] or len(sources) != 1:
            return None
        output = words[words.index("-o") + 1]
        if not output.endswith(".so"):
            return None
        with open(sources[0], "rb") as file:
            return cls(tuple(words), sources[0], output, file.read())

    def form(self) -> str:
        """Hash of the text with every number taken out; names of buffers and variables count up by themselves."""
        return hashlib.sha256(_NUMBER.sub(b"#", _COMMENT.sub(b"", self.text))).hexdigest()[:16]

    def key(self, identity: bytes) -> str:
        """Content address of the library: the text without comments, the flags without paths of this call."""
        text = _COMMENT.sub(b"", self.text)
        flags = [os.path.basename(word) if os.sep in word else word for word in self.words]
        for path in (self.source, self.output):
            flags.remove(os.path.basename(path))
        return hashlib.sha256(b"\0".join([identity, text, *(flag.encode() for flag in flags)])).hexdigest()[:40]


def _linked_with(words: list[str], standins: str, fuse: str) -> list[str]:
    """The same command, torch's libraries taken from ``standins`` and named whether they are needed or not."""
    names = [f"-l{name}" for name in _STANDINS]
    named = ["-Wl,--push-state,--no-as-needed", f"-L{standins}", *names, "-Wl,--pop-state"]
    return [*(word for word in words if word not in names), *named, *([fuse] if fuse else [])]


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _find_clang(scratch: str) -> str:
    """The newest clang that builds a library with OpenMP, or nothing."""
    for name in _CLANGS:
        if shutil.which(name) is None:
            continue
        found = re.search(r"clang version (\d+)", _run([name, "--version"]))
        if not found or int(found.group(1)) < _OLDEST_CLANG:
            continue
        with tempfile.TemporaryDirectory(dir=scratch) as folder:
            source, library = os.path.join(folder, "a.cpp"), os.path.join(folder, "a.so")
            with open(source, "w") as file:
                file.write("#include <omp.h>\n#include <vector>\nint threads() { return omp_get_max_threads(); }\n")
            _run([name, "-fopenmp", "-std=c++20", "-shared", "-fPIC", source, "-o", library])
            if os.path.exists(library):
                return name
    return ""


def _make_standins(folder: str, compiler: str) -> bool:
    """Empty libraries with the names of torch's. Two servers may make them at the same time."""
    for name in _STANDINS:
        library = os.path.join(folder, f"lib{name}.so")
        if os.path.exists(library):
            continue
        os.makedirs(folder, exist_ok=True)
        partial = f"{library}.{os.getpid()}"
        words = [compiler, "-shared", "-fPIC", "-x", "c++", os.devnull, f"-Wl,-soname,lib{name}.so", "-o", partial]
        _run(words)
        if not os.path.exists(partial):
            return False
        os.replace(partial, library)
    return True


def _run(words: list[str]) -> str:
    """Output of a command, empty when it cannot be run."""
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=_BUILD_SECONDS).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
