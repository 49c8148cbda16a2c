"""What the fork server needs of the target: import, warm-up, coverage domains, and the bodies of its children."""

from __future__ import annotations

import gc
import os
import platform
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from harness import wire

Progress = Callable[[str], None]


class Refused(Exception):
    """The target cannot serve. ``str()`` is one line: why, and what to do."""


class TorchRuntime:
    """The real thing: torch imported once, its compiler warmed, coverage armed."""

    def __init__(self) -> None:
        self.domains: dict[str, Any] = {}
        self.coverage_facts: dict[str, dict[str, Any]] = {}
        self._probe_progress: Any = None
        self._plant: dict[str, Any] = {}
        self._warmed = False
        self._toolchain: Any = None

    # -- in the server ----------------------------------------------------------------------------------------

    def start(self, hello: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Import, warm, arm. Returns the facts of ``ready``. Raises ``Refused``."""
        started = time.monotonic()
        progress("importing torch")
        torch = _import_torch()
        if hello.get("device", "cpu") == "cuda" and not torch.cuda.is_available():
            raise Refused("no CUDA device is visible to this torch; use --device cpu")
        self._configure(hello.get("plant"))
        wanted = hello.get("coverage", [])
        self._start_event_domain(wanted)
        if hello.get("fast"):
            self._hasten()
        if hello.get("warm", True):
            progress("warming the compiler (precompiled header, vector instructions)")
            self._warm(torch)
            self._warmed = True
        self._start_domains(wanted, hello["scratch"], progress)
        gc.collect()
        gc.freeze()
        threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
        return {
            "target": _target_facts(torch, hello.get("device", "cpu")),
            "coverage": self.coverage_facts,
            "toolchain": self._toolchain.told if self._toolchain else "plain",
            "threads": threads,
            "seconds": time.monotonic() - started,
        }

    def _configure(self, plant: str | None) -> None:
        """Caches off (a repeated program must meet the whole compiler), and the planted bug of self-tests."""
        import torch._inductor.config as inductor

        for name in ("fx_graph_cache", "fx_graph_remote_cache", "bundled_autotune_fx_graph_cache"):
            if hasattr(inductor, name):
                setattr(inductor, name, False)
        import torch._functorch.config as functorch

        for name in ("enable_autograd_cache", "enable_remote_autograd_cache"):
            if hasattr(functorch, name):
                setattr(functorch, name, False)
        if plant:
            self._plant = {f"inject_{plant}_bug_TESTING_ONLY": "accuracy"}
            if not all(hasattr(inductor.cpp, name) for name in self._plant):
                raise Refused(f"this torch has no planted bug named {plant!r}; use relu or log1p")

    def _hasten(self) -> None:
        """After the vector-ISA probes, which want the user's own compiler and linker."""
        from harness.toolchain import Toolchain

        _vector_isa()
        self._toolchain = Toolchain(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        self._toolchain.install()

    def _warm(self, torch: Any) -> None:
        """Compile twice in this process: builds the precompiled header and the vector-ISA answer that children share.

        Safe before a fork because one compile thread and one OpenMP thread leave no thread behind (checked below).
        """
        import torch._dynamo

        def warm(x: Any, y: Any) -> Any:
            return (torch.sin(x) + y).sum(dim=1), x.relu()

        try:
            for rows in (5, 6):
                torch._dynamo.reset()
                torch.compile(warm)(torch.randn(rows, 7), torch.randn(rows, 7))
            if not torch.backends.cuda.is_built():
                # A build with devices starts autograd's threads at the first backward: none after that may fork.
                x = torch.randn(5, 7, requires_grad=True)
                torch._dynamo.reset()
                torch.compile(warm)(x, x)[0].sum().backward()
        except Exception as error:
            from harness.faults import message_of, root_cause

            first = message_of(root_cause(error)).strip().splitlines()
            raise Refused(
                f"torch.compile cannot compile a trivial function: {first[0] if first else error!r}"
            ) from None
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()

    def _start_event_domain(self, wanted: list[str]) -> None:
        if "events" in wanted:
            from harness.coverage.events import CompilerEvents

            domain = CompilerEvents()
            domain.capture_kernels()
            self.domains["events"] = domain
            self.coverage_facts["events"] = {"available": True, "why": "", "total": 0}

    def _start_domains(self, wanted: list[str], scratch: str, progress: Progress) -> None:
        from harness.coverage import Unavailable
        from harness.coverage.native import NativeCoverage
        from harness.coverage.python_lines import PythonCoverage

        makers: dict[str, Callable[[], Any]] = {
            "python": lambda: PythonCoverage(scratch=scratch),
            "native": lambda: NativeCoverage(scratch),
        }
        for name, make in makers.items():
            if name not in wanted:
                continue
            progress(f"arming {name} coverage")
            try:
                domain = make()
                domain.start()
            except Unavailable as error:
                self.coverage_facts[name] = {"available": False, "why": str(error), "total": 0}
                continue
            self.domains[name] = domain
            self.coverage_facts[name] = {"available": True, "why": "", "total": sum(domain.total.values())}

    def known(self, coverage: dict[str, dict[str, list[int]]]) -> None:
        for name, ids in coverage.items():
            if name in self.domains and name != "events":
                self.domains[name].mark_known(ids)

    def before_exec(self, request: dict[str, Any]) -> None:
        for name in ("native", "python"):
            if name in self.domains:
                self.domains[name].reset()

    def harvest(self) -> dict[str, dict[str, list[int]]]:
        """New coverage of the child that just ended, whatever its end was."""
        found = {name: self.domains[name].harvest() for name in ("native", "python") if name in self.domains}
        return {name: files for name, files in found.items() if files}

    def after_exec(self, observation: dict[str, Any], folder: str) -> None:
        """While the child's folder is still there: keep the kernels of one that ended well."""
        built = observation.pop("built", {})
        if self._toolchain is not None and observation["end"].get("how") == "done":
            self._toolchain.keep(built, folder)

    def symbols(self, domain: str, file: str, ids: list[int]) -> list[str]:
        return list(self.domains[domain].symbols(file, ids)) if domain in self.domains else []

    def child_writable(self) -> list[str]:
        """Folders that a program's child must write to beside its own.

        Options that change the compiler's flags need a precompiled header of their own, which takes seconds to build:
        that folder is shared. A server that was not warmed leaves all of the cache to its children.
        """
        import torch._inductor.codecache as codecache

        header = getattr(codecache, "_HEADER_DIR", "")
        shared = [header] if self._warmed else [os.environ.get("TORCHINDUCTOR_CACHE_DIR", ""), tempfile.gettempdir()]
        return [folder for folder in shared if os.path.isdir(folder)]

    # -- in children --------------------------------------------------------------------------------------------

    def exec_child(self, request: dict[str, Any], report: Callable[[dict[str, Any]], None], folder: str) -> None:
        from harness.child import ExecChild, mark_running

        if self._plant:  # only here: the server's own warm-up must stay healthy
            import torch._inductor.config as inductor

            for name, value in self._plant.items():
                setattr(inductor.cpp, name, value)
        for name in ("native", "python", "events"):
            if name in self.domains:
                self.domains[name].child_start()
        if self._warmed:
            # Kernels of one program serve no other; the vector-ISA answer is in memory already.
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(folder, "cache")
        tempfile.tempdir = folder
        os.environ["TMPDIR"] = os.environ["HOME"] = folder
        path = os.path.join(folder, "program.py")
        with open(path, "w") as file:
            file.write(request["text"])
        if self._toolchain is not None:
            self._toolchain.begin(plain=bool(request.get("options", {}).get("plain")))
        child = ExecChild(request, report, self.domains, path, self._toolchain)
        mark_running(child)
        child.run()

    def probe_progress(self) -> Any:
        from harness.probe import Progress as ProbeProgress

        self._probe_progress = self._probe_progress or ProbeProgress()
        return self._probe_progress

    def probe_child(self, sock: socket.socket) -> None:
        from harness import probe

        for name in ("native", "python"):
            if name in self.domains:
                self.domains[name].child_detach()
        probe.serve(sock, self.probe_progress())

    def catalogue_child(self, request: dict[str, Any], report: Callable[[dict[str, Any]], None], folder: str) -> None:
        from harness import catalogue

        for name in ("native", "python"):
            if name in self.domains:
                self.domains[name].child_detach()

        def progress(line: str) -> None:
            report({"type": "progress", "what": line})

        report({"type": "beat", "stage": "catalogue"})
        for record in catalogue.operators(device=request.get("device", "cpu"), progress=progress):
            report({"type": "operator", "record": record})


def _import_torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise Refused(f"{sys.executable} cannot import torch ({error}); install it there, or pass --target") from None
    except Exception as error:  # a broken build raises anything: OSError on a missing library, …
        raise Refused(f"{sys.executable}: importing torch failed: {type(error).__name__}: {error}") from None
    try:
        version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    except (ValueError, AttributeError):
        raise Refused(f"{sys.executable}: `torch` is not PyTorch (no usable version); pass --target") from None
    if version < (2, 4):
        raise Refused(f"torch {torch.__version__} is too old; Eddy supports 2.4 and newer")
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    import torch._dynamo
    import torch._inductor.compile_fx
    import torch._inductor.lowering

    return torch


def _target_facts(torch: Any, device: str) -> dict[str, Any]:
    return {
        "executable": sys.executable,
        "torch": torch.__version__,
        "git": str(getattr(torch.version, "git_version", "")),
        "python": platform.python_version(),
        "device": device,
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "isa": _vector_isa(),
        "machine": platform.machine(),
        "system": platform.platform(),
        "compiler": _compiler_version(),
        "protocol": wire.PROTOCOL,
    }


def _vector_isa() -> str:
    """What Inductor vectorises for; it asks the compiler once and remembers. Empty for nothing, or kept elsewhere."""
    try:
        from torch._inductor.cpu_vec_isa import pick_vec_isa
    except ImportError:
        return ""
    isa = pick_vec_isa()
    return str(isa) if isa else ""


def _compiler_version() -> str:
    import subprocess

    try:
        from torch._inductor.cpp_builder import get_cpp_compiler

        found = subprocess.run([get_cpp_compiler(), "--version"], capture_output=True, text=True, timeout=20)
        return found.stdout.splitlines()[0]
    except Exception:  # any failure only means that the report's environment table lacks a line
        return ""
