"""The exec child: one program, stage by stage, reporting facts as it goes so that a crash loses only its own stage."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from harness import compare, execution, observe, reference, ties
from harness.coverage.events import on_sources
from harness.execution import Program, Result
from harness.faults import fault_of
from harness.rounding import RandomRounding
from harness.toolchain import Toolchain

Report = Callable[[dict[str, Any]], None]


class StageFailed(Exception):
    """The stage's fault is already reported; unwinds to the caller that knows whether to go on."""


class ExecChild:
    """Runs one request. ``report`` sends a message to the fork server; ``domains`` are the coverage domains."""

    def __init__(
        self,
        request: dict[str, Any],
        report: Report,
        domains: dict[str, Any],
        path: str,
        toolchain: Toolchain | None = None,
    ) -> None:
        self.request = request
        self.options: dict[str, Any] = request.get("options", {})
        self.report = report
        self.domains = domains
        self.path = path
        self.toolchain = toolchain
        self.program: Program
        self.current = "build"
        self.moved: dict[bool, list[dict[str, Any]]] = {False: [], True: []}  # eager on nudged inputs, by "second"
        self.second_result: Result | None = None  # of eager on the second inputs
        self.index_sources: dict[str, observe.IndexSource] = {}

    # -- stages ---------------------------------------------------------------------------------------------

    def run(self) -> None:
        try:
            self._run()
        except StageFailed:
            pass

    def _run(self) -> None:
        with self.stage("build"):
            self.program = Program(self.request["text"], self.path)
            inputs = self.program.inputs()
            self.facts(values=[observe.value_words(item) for _path, item in compare.flatten("in", inputs)])
        meta = self.program.meta
        if self.options.get("bisect"):
            self.bisect(meta)
            return
        gradients = self.program.wants_gradients
        only = set(meta.get("only", ()))
        eager = None
        if not self.options.get("skip_eager") and (not only or "eager" in only):
            eager = self.eager(inputs, meta, gradients)
            # Before anything is compiled: torch.cond and its like ask Dynamo even when they run eagerly.
            if self.program.has_second and not self.options.get("only_eager"):
                with contextlib.suppress(StageFailed), self.stage("second_eager"):
                    inputs = self.program.inputs(second=True)
                    self.second_result = execution.call(self.program.fn, inputs, meta, gradients)
            if self.options.get("perturb"):
                for second, result in ((False, eager), (True, self.second_result)):
                    if result is not None:
                        self.moved[second] = self.perturbed(result, meta, gradients, second)
            if self.options.get("rounding") and eager is not None:
                self.facts(rounded_leaves=self.rounded(eager, meta, gradients))
            if self.options.get("recompute") and eager is not None:
                self.facts(recomputed_leaves=self.rounded(eager, meta, gradients, anew=True))
            if self.options.get("ties") and eager is not None:
                self.facts(tied_leaves=self.other_ties(eager, meta, gradients))
            if self.options.get("only_eager") and eager is not None:
                self.facts(aliases={"eager": compare.aliases(eager.outputs + eager.inputs)})
        if self.options.get("only_eager") or only == {"eager"}:
            return
        with self.interpreting():
            self._compiled_sides(eager, meta, gradients)

    def _compiled_sides(self, eager: Result | None, meta: dict[str, Any], gradients: bool) -> None:
        if self.options.get("sources"):  # told at once: running them may kill the process
            on_sources(lambda sources: self.facts(sources=sources))
        with contextlib.suppress(StageFailed):
            self.compiled(eager, meta, gradients)
        if self.draws_differently(meta):
            self.default_random_path(eager, meta, gradients)

    def eager(self, inputs: tuple[Any, ...], meta: dict[str, Any], gradients: bool) -> Result | None:
        fn = self.program.fn
        try:
            with self.stage("eager"):
                result = execution.call(fn, inputs, meta, gradients, lambda: self.beat("eager_backward"))
        except StageFailed:
            return None
        if meta.get("expect_zero"):
            self.facts(eager_zero=compare.largest(result.outputs))
        with contextlib.suppress(StageFailed), self.stage("eager_again"):
            again = execution.call(fn, self.program.inputs(), meta, gradients)
            differing = compare_results(result, again, None)
            self.facts(self_leaves=differing)
        if self.options.get("observe", True):
            with contextlib.suppress(StageFailed), self.stage("observe"):
                self.observe(meta)
        return result

    def observe(self, meta: dict[str, Any]) -> None:
        inputs = self.program.inputs()
        tensors = [leaf for _path, leaf in compare.flatten("in", inputs) if isinstance(leaf, torch.Tensor)]
        trace = observe.OperatorTrace(tensors)
        try:
            torch.manual_seed(execution.SEED)
            with trace, torch.set_grad_enabled(not meta.get("no_grad")):
                value = self.program.fn(*inputs)
            for path, leaf in compare.flatten("out", value):
                if id(leaf) in trace.index_sources:
                    self.index_sources[path] = trace.index_sources[id(leaf)]
        finally:
            self.facts(ops=trace.ops)
            # torch.cond and its like compile something even when they run eagerly; what was traced under the mode that
            # watches operators would serve the calls after it, and refuse them.
            torch._dynamo.reset()

    def compiled(self, eager: Result | None, meta: dict[str, Any], gradients: bool) -> None:
        inductor = dict(self.options.get("inductor_config", {}))
        kwargs = self.compile_arguments(meta)
        with execution.patched(meta, inductor):
            fn: Any = None
            try:
                with self.measuring(), self.stage("compile"):
                    fn = self.compile(kwargs)
                    inputs = self.program.inputs()
                    execution.mark_dynamic(inputs, meta)
                    result = execution.call(fn, inputs, meta, gradients, lambda: self.beat("backward"))
            finally:
                self.events()
            if eager is not None:
                with self.stage("compare"):
                    self.compare(eager, result, meta, gradients, "leaves", second=False)
            if self.program.has_second:
                self.second(fn, meta, gradients)

    def draws_differently(self, meta: dict[str, Any]) -> bool:
        """Is there a second random path to try? A plain run of a program whose generators are reseeded has one."""
        forced = "fallback_random" in meta.get("inductor_config", {}) or meta.get("only")
        variant = any(self.options.get(name) for name in ("inductor_config", "backend", "perturb"))
        return bool(meta.get("random")) and not forced and not variant

    def default_random_path(self, eager: Result | None, meta: dict[str, Any], gradients: bool) -> None:
        """Once more with Inductor's own generator, as users run it: other numbers, but the same shapes and checks.

        Some faults exist only here (``randint`` with an empty range killed the process on 2.5.1).
        """
        torch._dynamo.reset()
        with execution.patched(meta, {"fallback_random": False}), self.stage("random_path"):
            fn = self.compile(self.compile_arguments(meta))
            result = execution.call(fn, self.program.inputs(), meta, gradients, lambda: self.beat("backward"))
        if eager is not None:
            self.facts(random_leaves=[leaf for leaf in compare_results(eager, result, None) if _other_kind(leaf)])

    def compile(self, kwargs: dict[str, Any]) -> Any:
        if self.program.mode == "jit_trace":
            return torch.jit.trace(self.program.fn, self.program.inputs(), check_trace=False)
        return torch.compile(self.program.fn, **kwargs)

    def second(self, fn: Any, meta: dict[str, Any], gradients: bool) -> None:
        """The same compiled callable on other inputs: guards, recompiles, dynamic shapes."""
        eager = self.second_result
        try:
            with self.measuring(), self.stage("second"):
                result = execution.call(fn, self.program.inputs(second=True), meta, gradients)
        finally:
            self.events()
        if eager is not None:
            with self.stage("second_compare"):
                self.compare(eager, result, meta, gradients, "second_leaves", second=True)

    def compare(
        self, eager: Result, result: Result, meta: dict[str, Any], gradients: bool, key: str, second: bool
    ) -> None:
        leaves = compare_results(eager, result, None)
        # The reference is run only when something differs: programs that agree at once pay nothing for it.
        if any(leaf.get("differing") for leaf in leaves):
            wide = self.float64(meta, gradients, second)
            leaves = compare_results(eager, result, wide)
        self.note_ties(leaves, eager, result)
        self.facts(
            **{key: leaves},
            perturbed_leaves=self.moved[second],
            aliases={"eager": compare.aliases(eager.outputs + eager.inputs),
                     "compiled": compare.aliases(result.outputs + result.inputs)},
            rng={"equal": eager.rng == result.rng},
        )  # fmt: skip

    def note_ties(self, leaves: list[dict[str, Any]], eager: Result, result: Result) -> None:
        """For results that are indices of an extremum or a sort: do both sides point at equal values?"""
        left, right = dict(eager.outputs), dict(result.outputs)
        for leaf in leaves:
            source = self.index_sources.get(leaf["path"])
            if source is not None and leaf.get("differing", 0) > 0:
                path = leaf["path"]
                leaf["gathered_equal"] = observe.gathered_equal(source, left[path], right[path])

    def bisect(self, meta: dict[str, Any]) -> None:
        from harness.bisecting import bisect

        with self.stage("compile"), execution.patched(meta, {}):
            found = bisect(self.program, self.options["bisect"], meta, lambda a, b: compare_results(a, b, None))
            self.facts(bisect=found)

    def float64(self, meta: dict[str, Any], gradients: bool, second: bool) -> Result | str:
        """The reference, or one line why there is none."""
        self.beat("float64")
        started = time.perf_counter(), _cpu()
        fault = None
        try:
            inputs = reference.widen(self.program.inputs(second))
            with reference.widened():
                return execution.call(self.program.fn, inputs, meta, gradients)
        except Exception as error:
            fault = fault_of(error, self.path)
            return f"{fault['type']}: {fault['message'][:160]}"
        finally:
            self.staged("float64", started, fault)
            self.beat("compare")

    def perturbed(self, eager: Result, meta: dict[str, Any], gradients: bool, second: bool) -> list[dict[str, Any]]:
        """How far eager itself moves when its inputs move by one ULP (twice, with other directions)."""
        self.beat("perturbed")
        found: list[dict[str, Any]] = []
        for seed in (1, 2):
            with contextlib.suppress(Exception):  # a program that refuses nudged inputs tells nothing
                inputs = reference.nudged(self.program.inputs(second), seed)
                found += compare_results(eager, execution.call(self.program.fn, inputs, meta, gradients), None)
        return found

    def rounded(self, eager: Result, meta: dict[str, Any], gradients: bool, anew: bool = False) -> list[dict[str, Any]]:
        """How far eager itself moves when every operator that rounds does so at random (three times).

        With ``anew``: when every use of such a result rounds it for itself.
        """
        self.beat("perturbed")
        found: list[dict[str, Any]] = []
        for seed in (1, 2, 3):
            with contextlib.suppress(Exception):  # a program that does not run under a mode tells nothing
                with RandomRounding(seed, anew):
                    other = execution.call(self.program.fn, self.program.inputs(), meta, gradients)
                found += compare_results(eager, other, None)
        torch._dynamo.reset()  # see ``observe``
        return found

    def other_ties(self, eager: Result, meta: dict[str, Any], gradients: bool) -> list[dict[str, Any]]:
        """What of eager's own results changes when every index among ties is another one."""
        self.beat("perturbed")
        try:
            with ties.OtherTies():
                other = execution.call(self.program.fn, self.program.inputs(), meta, gradients)
            return compare_results(eager, other, None)
        except Exception:  # a program that refuses other indices tells nothing
            return []
        finally:
            torch._dynamo.reset()  # see ``observe``

    # -- reporting ------------------------------------------------------------------------------------------

    def beat(self, stage: str) -> None:
        """Tell the server which stage is running, so that it knows where a crash struck."""
        self.current = stage
        self.report({"type": "beat", "stage": stage})

    def facts(self, **facts: Any) -> None:
        self.report({"type": "facts", "facts": facts})

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self.beat(name)
        started = time.perf_counter(), _cpu()
        fault = None
        try:
            yield
        except StageFailed:
            raise
        except BaseException as error:
            fault = fault_of(error, self.path)
            raise StageFailed from None
        finally:
            self.staged(name if fault is None else self.failing(name), started, fault)

    def failing(self, name: str) -> str:
        """Where the fault struck: ``run`` and ``backward`` are parts of the call that compiles as well."""
        return self.current if self.current in ("run", "backward") else name

    def staged(self, name: str, started: tuple[float, float], fault: dict[str, Any] | None) -> None:
        seconds, cpu = time.perf_counter() - started[0], _cpu() - started[1]
        self.report({"type": "staged", "stage": {"name": name, "seconds": seconds, "cpu": cpu, "fault": fault}})

    def events(self) -> None:
        if self.toolchain is not None:
            self.facts(**self.toolchain.facts())
        domain = self.domains.get("events")
        if domain is not None:
            self.facts(counters=domain.collect(), kernels=domain.kernel_classes(domain.captured()))

    @contextlib.contextmanager
    def interpreting(self) -> Iterator[None]:
        """Where the request asks for it, and this torch is one that the interpreter knows: no C++ is compiled."""
        if not self.options.get("interpret"):
            yield
            return
        try:
            from harness.interpreter import Interpreter
        except ImportError as error:
            self.facts(interpreted={"kernels": 0, "cpu": 0.0, "refused": [], "unavailable": str(error)[:200]})
            yield
            return
        interpreter = Interpreter(self.unseen)
        try:
            with interpreter.installed():
                yield
        finally:
            self.facts(interpreted=dict(interpreter.counts.__dict__))

    @contextlib.contextmanager
    def unseen(self) -> Iterator[None]:
        """What runs meanwhile is no coverage of torch's compiler."""
        with contextlib.ExitStack() as stack:
            for name in ("python", "native"):
                if name in self.domains:
                    stack.enter_context(self.domains[name].paused())
            yield

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        python = self.domains.get("python")
        if python is None or not self.request.get("coverage", True):
            yield
            return
        with python.measuring():
            yield

    def compile_arguments(self, meta: dict[str, Any]) -> dict[str, Any]:
        """Keyword arguments of torch.compile: the program's own, its mode, and the variant's backend."""
        kwargs = dict(meta.get("compile", meta.get("compile_kwargs", {})))
        if "options" in meta:
            kwargs.setdefault("options", meta["options"])
        if self.program.mode == "dynamic":
            kwargs.setdefault("dynamic", True)
        backend = self.options.get("backend")
        if backend:
            kwargs["backend"] = backend
            if backend != "inductor":
                kwargs.pop("options", None)
                kwargs.pop("mode", None)
        return kwargs


def compare_results(eager: Result, other: Result, wide: Result | str | None) -> list[dict[str, Any]]:
    """Facts of all pairs of leaves that differ, in value or in metadata."""
    left, right = eager.leaves(), other.leaves()
    if [path for path, _ in left] != [path for path, _ in right]:
        paths = {path for path, _ in left} ^ {path for path, _ in right}
        return [{"path": "out", "eager": None, "compiled": None, "differing": 1, "numel": 1,
                 "eager_text": f"{len(left)} leaves", "compiled_text": f"{len(right)} leaves",
                 "reference": "none: other structure", "structure": sorted(paths)[:8]}]  # fmt: skip
    if isinstance(wide, Result):
        reference_leaves = dict(wide.leaves())
        fallback: Any = "other structure"
    else:
        reference_leaves, fallback = {}, wide
    found = []
    for (path, a), (_path, b) in zip(left, right):
        leaf = compare.compare(path, a, b, reference_leaves.get(path, fallback))
        if leaf is not None:
            found.append(leaf)
    return found


def _other_kind(leaf: dict[str, Any]) -> bool:
    """Do the two values differ in more than numbers?"""
    eager, compiled = leaf.get("eager"), leaf.get("compiled")
    if eager is None or compiled is None:
        return "structure" in leaf or eager is not compiled
    return any(eager[name] != compiled[name] for name in ("shape", "dtype", "device"))


def mark_running(child: ExecChild) -> None:
    """Let compiled graphs say when they run, so that a crash in a kernel is told from one in the compiler."""
    try:
        from torch._inductor.output_code import CompiledFxGraph
    except ImportError:  # torch before 2.6 keeps the class elsewhere: then "compile" covers both
        return
    original = CompiledFxGraph.__call__

    def calling(self: Any, inputs: Any) -> Any:
        before = child.current
        child.beat("backward" if before == "backward" else "run")
        value = original(self, inputs)
        child.beat(before)
        return value

    CompiledFxGraph.__call__ = calling  # type: ignore[method-assign]


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + usage.ru_utime + usage.ru_stime
