"""The text of ``repro.py``: the very program that ran, and a short main block that shows its failure by itself.

Only the code that the kind of failure needs is written, as a person would for a bug report: nothing but torch is
imported, the exit status is 1 when the failure shows and 0 ("did not reproduce") when it does not.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from fuzzer.verdict import Kind

#: What the harness seeds with before it builds inputs and before each call.
SEED = 20260101

#: Seconds after which a run counts as hanging, where the caller knows no better limit.
DEFAULT_TIMEOUT = 120

#: Default (rtol, atol) of torch.testing.assert_close, from its documentation.
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}

#: A program with casts of its own is not evaluated in float64 by widening its inputs.
_OWN_CASTS = re.compile(r"\bdtype\b|\.(half|float|bfloat16|to|type|type_as)\(|autocast")

_HAS_MODULES = re.compile(r"\bnn\.[A-Z]\w*\(|\bModule\b")

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")

_METADATA = {
    "dtype": ".dtype",
    "shape": ".shape",
    "stride": ".stride()",
    "offset": ".storage_offset()",
    "requires_grad": ".requires_grad",
    "device": ".device",
}

#: Uneven cotangents, the same as the harness uses: equal ones hide permuted gradients.
_BACKWARD = """\
outs = [t for t in torch.utils._pytree.tree_leaves(out) if torch.is_tensor(t) and t.requires_grad]
if outs:
    uneven = [0.5 + torch.arange(t.numel()).view(t.shape) * 7 % 16 / 16 for t in outs]
    torch.autograd.backward(outs, [weights.to(t) for weights, t in zip(uneven, outs)])
"""

_DOUBLE = """\
def double(x):
    return x.double() if isinstance(x, torch.nn.Module) or torch.is_tensor(x) and x.is_floating_point() else x
"""

_DOUBLE_WITH_GRADIENT = """\
def double(x):
    if torch.is_tensor(x) and x.is_floating_point():
        return x.detach().double().requires_grad_(x.requires_grad)
    return x.double() if isinstance(x, torch.nn.Module) else x
"""

_IN_CHILDREN = (Kind.CRASH, Kind.EAGER_CRASH, Kind.HANG, Kind.SLOW_COMPILE)
_COMPARED = (Kind.WRONG_VALUE, Kind.WRONG_GRADIENT, Kind.WRONG_MUTATION)

_TENSOR_INPUTS = "[t for t in args if torch.is_tensor(t)]"
_ALL_GRADIENTS = (
    "[t.grad for a in args for t in (a.parameters() if isinstance(a, torch.nn.Module) else [a]) if torch.is_tensor(t)]"
)


def repro_script(
    text: str,
    kind: Kind,
    *,
    stage: str = "",
    facts: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> str:
    """A self-contained script that starts with ``text``, unchanged.

    Args:
        text: a program of the contract (``META``, ``build_inputs``, ``fn``).
        kind: what went wrong; one of the kinds that are faults.
        stage: where it went wrong (``second`` and ``backward`` make the script go that far).
        facts: ``fuzzer.finding.essential_facts``; the worst leaf decides which value is compared and how strictly.
        options: ``threads`` (int) and ``timeout`` (seconds) of the run that failed, ``torch`` (its version, shown).

    Raises ``ValueError`` for a kind that is no fault, ``SyntaxError`` for a text that is not Python.
    """
    if not kind.is_fault:
        raise ValueError(f"kind {kind.value!r} is no failure, there is nothing to reproduce")
    writer = _Writer(text, kind, stage, facts or {}, options or {})
    return text + ("" if text.endswith("\n") else "\n") + "\n\n" + writer.main()


class _Writer:
    """What the main block depends on, read once."""

    def __init__(self, text: str, kind: Kind, stage: str, facts: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self.text, self.kind, self.stage, self.options = text, kind, stage, options
        tree = ast.parse(text)
        self.meta = _meta(tree)
        self.mode = str(self.meta.get("mode", "forward"))
        self.functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.aliases = facts.get("aliases", {})
        self.generator = bool(facts.get("generator"))
        self.leaf: Mapping[str, Any] = next(iter(self._leaves(facts)), {})
        self.timeout = int(options.get("timeout") or self.meta.get("timeout") or DEFAULT_TIMEOUT)

    def _leaves(self, facts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Leaves of the kind of failure, worst first: the worst of all may belong to another kind."""
        begins = {
            Kind.WRONG_VALUE: ("out",),
            Kind.WRONG_GRADIENT: ("grad.",),
            Kind.WRONG_MUTATION: ("in", "buffer."),
        }
        leaves = facts.get("leaves", ())
        if self.kind is Kind.METADATA:
            return [leaf for leaf in leaves if leaf.get("eager") != leaf.get("compiled")]
        return [leaf for leaf in leaves if str(leaf.get("path", "")).startswith(begins.get(self.kind, ""))]

    def main(self) -> str:
        """The block, comment line first."""
        if self.kind in _IN_CHILDREN:
            body = self._in_children()
        elif self.kind in _COMPARED:
            body = self._values()
        elif self.kind is Kind.METADATA:
            body = self._metadata()
        else:
            body = self._refusals()
        modules = ["sys"]
        if self.kind in _IN_CHILDREN:
            modules += ["subprocess"] if self._slow else ["signal", "subprocess"]
        imports = "".join(f"import {name}\n" for name in sorted(modules))
        version = f" (seen with torch {self.options['torch']})" if self.options.get("torch") else ""
        head = f'if __name__ == "__main__":  # exits with 1 when the failure shows{version}\n'
        return head + textwrap.indent(imports + self._settings() + "\n" + body, "    ")

    @property
    def _slow(self) -> bool:
        return self.kind in (Kind.HANG, Kind.SLOW_COMPILE)

    @property
    def _goes_backward(self) -> bool:
        """Must the script call backward? Forward alone compiles the joint graph already."""
        if self.mode not in ("backward", "train") or self.kind in (Kind.WRONG_VALUE, Kind.METADATA):
            return False
        if self.kind in _COMPARED or self.kind is Kind.MISSING_CHECK:
            return True
        return not self.stage or self.stage.startswith("second") or "backward" in self.stage

    def _settings(self) -> str:
        inductor = dict(self.meta.get("inductor_config", {}))
        if self.meta.get("random"):
            inductor.setdefault("fallback_random", True)
        if self._slow:
            inductor.setdefault("force_disable_caches", True)  # a cached kernel would compile at once
        lines = []
        for module, patches in (
            ("torch._inductor", inductor),
            ("torch._dynamo", self.meta.get("dynamo_config", {})),
            ("torch._functorch", self.meta.get("functorch_config", {})),
        ):
            names = {name: value for name, value in patches.items() if _IDENTIFIER.match(str(name))}
            if names:
                lines.append(f"import {module}.config")
            lines += [f"{module}.config.{name} = {value!r}" for name, value in names.items()]
        if self.options.get("threads"):
            lines.append(f"torch.set_num_threads({int(self.options['threads'])})")
        return "".join(line + "\n" for line in lines)

    # -- pieces -------------------------------------------------------------------------------------------------

    def _compiled(self) -> str:
        if self.mode == "jit_trace":
            return "torch.jit.trace(fn, build_inputs(), check_trace=False)"
        arguments = dict(self.meta.get("compile", self.meta.get("compile_kwargs", {})))
        if "options" in self.meta:
            arguments.setdefault("options", self.meta["options"])
        if self.mode == "dynamic":
            arguments.setdefault("dynamic", True)
        return f"torch.compile({', '.join(['fn', *(f'{name}={value!r}' for name, value in arguments.items())])})"

    def _run(self, returned: str, double: bool = False) -> str:
        """``run(f)``: one side of the comparison. ``returned`` is an expression over ``args`` and ``out``."""
        second = (self.stage.startswith("second") or self.leaf.get("second")) and ("build_inputs2" in self.functions)
        lines = [f"def run(f{', convert=lambda x: x' if double else ''}):"]
        if self.meta.get("no_grad"):
            lines.insert(0, "@torch.no_grad()")
        lines += self._call("build_inputs")
        if second:
            lines += ["    f(*args)", *self._call("build_inputs2")]
        if double:
            lines.append("    args = tuple(torch.utils._pytree.tree_map(convert, args))")
        if self.meta.get("random"):
            lines.append(f"    torch.manual_seed({SEED})")
        lines.append("    out = f(*args)")
        if self._goes_backward:
            lines += ["    " + line for line in _BACKWARD.splitlines()]
        lines.append(f"    return {returned}")
        return "\n".join(lines) + "\n"

    def _call(self, build: str) -> list[str]:
        lines = [] if "manual_seed" in self.text else [f"    torch.manual_seed({SEED})"]
        lines.append(f"    args = {build}()")
        if self.mode != "backward" and _HAS_MODULES.search(self.text):  # what the harness does to modules
            lines.append("    for module in args:")
            lines.append("        if isinstance(module, torch.nn.Module):")
            lines.append(f"            module.{'train' if self.mode == 'train' else 'eval'}()")
        return lines

    def _leaf_expression(self) -> str:
        """``out[1]``, ``args[0].weight.grad``…: the value that is compared, as an expression."""
        path = str(self.leaf.get("path", ""))
        gradient = path.startswith("grad.")
        inner = path.removeprefix("grad.").removeprefix("buffer.")
        if self.leaf.get("structure") or not inner:
            return {Kind.WRONG_MUTATION: _TENSOR_INPUTS, Kind.WRONG_GRADIENT: _ALL_GRADIENTS}.get(self.kind, "out")
        if inner == "in" or inner.startswith(("in[", "in.")):
            inner = "args" + inner[2:]
        return inner + (".grad" if gradient else "")

    # -- blocks -------------------------------------------------------------------------------------------------

    def _refusals(self) -> str:
        """One side raises, the other does not; or eager fails one of its own assertions."""
        if self.kind is Kind.MISSING_CHECK:
            shows = 'eager[0] == "raised" and compiled[0] == "returned"'
            message = '"AssertionError: compiled execution accepts what eager refuses"'
        elif self.kind is Kind.EAGER_INTERNAL_ASSERT:
            shows = 'eager[0] == "raised" and "INTERNAL ASSERT" in eager[1]'
            message = '"AssertionError: eager execution fails an internal assertion"'
        else:
            shows = 'eager[0] == "returned" and compiled[0] == "raised"'
            message = '"AssertionError: compiled execution refuses what eager accepts"'
        return f"""\
{self._run("out")}
def attempt(f):
    try:
        return "returned", str(run(f))
    except Exception as error:
        return "raised", f"{{type(error).__name__}}: {{error}}"

eager, compiled = attempt(fn), attempt({self._compiled()})
print("eager   ", *eager)
print("compiled", *compiled)
if {shows}:
    sys.exit({message})
print("did not reproduce")
"""

    def _in_children(self) -> str:
        """Each side runs in a process of its own, because one of them dies or never ends."""
        guilty = "eager" if self.kind is Kind.EAGER_CRASH else "compiled"
        if self.kind is Kind.HANG and self.stage.startswith("eager"):
            guilty = "eager"
        report = (
            f"""\
    try:
        subprocess.run([sys.executable, __file__, side], timeout={self.timeout})
        print(side, "run ended")
    except subprocess.TimeoutExpired:
        print(side, "run did not end within {self.timeout} s")
        failed.append(side)
"""
            if self._slow
            else """\
    status = subprocess.run([sys.executable, "-X", "faulthandler", __file__, side]).returncode
    print(side, f"run died with {signal.Signals(-status).name}" if status < 0 else f"run ended with {status}")
    if status < 0:
        failed.append(side)
"""
        )
        verb = "did not end" if self._slow else "died"
        return f"""\
{self._run("out")}
if sys.argv[1:]:
    run(fn if sys.argv[1] == "eager" else {self._compiled()})
    sys.exit()
failed = []
for side in ("eager", "compiled"):
{report}if "{guilty}" in failed:
    sys.exit("AssertionError: the {guilty} run {verb}")
print("did not reproduce")
"""

    def _metadata(self) -> str:
        """The properties that differed, of the value whose they were; or which values share memory."""
        eager, compiled = self.leaf.get("eager"), self.leaf.get("compiled")
        different = [name for name in _METADATA if eager and compiled and eager.get(name) != compiled.get(name)]
        different = [name for name in different if self._promised(name)] or different
        if different:
            what = ", ".join(different)
            value = self._leaf_expression()
            returned = f"({', '.join(f'{value}{_METADATA[name]}' for name in different)},)"
        elif self.aliases.get("eager") != self.aliases.get("compiled"):
            what = "pairs of (inputs, results) that share memory"
            returned = (
                "[(i, j) for i, t in enumerate(leaves((args, out))) for j, u in enumerate(leaves((args, out)))\n"
                "            if i < j and t.untyped_storage().data_ptr() == u.untyped_storage().data_ptr()]"
            )
        else:
            what = "type, dtype, shape, stride, requires_grad"
            returned = "[(type(t), t.dtype, t.shape, t.stride(), t.requires_grad) for t in leaves(out)]"
        helper = ""
        if "leaves(" in returned:
            helper = (
                "def leaves(x):\n    return [t for t in torch.utils._pytree.tree_leaves(x) if torch.is_tensor(t)]\n\n"
            )
        return f"""\
{helper}{self._run(returned)}
eager, compiled = run(fn), run({self._compiled()})
print({f"eager:    {what}: "!r}, eager)
print({f"compiled: {what}: "!r}, compiled)
if eager != compiled:
    sys.exit("AssertionError: compiled and eager results differ in {what}")
print("did not reproduce")
"""

    def _promised(self, name: str) -> bool:
        if name == "requires_grad":
            return self.mode in ("backward", "train") or bool(self.meta.get("check_rg"))
        return name in ("dtype", "shape", "device") or (name == "stride" and bool(self.meta.get("check_stride")))

    def _values(self) -> str:
        leaf, value = self.leaf, self._leaf_expression()
        if self.generator:
            return self._compare("torch.random.get_rng_state()", ", rtol=0, atol=0")
        if leaf.get("sign_of_zero") and not leaf.get("differing"):
            return self._compare(f"torch.signbit({value})", "")
        if self._has_reference():
            return self._against_float64(value)
        return self._compare(value, self._tolerance())

    def _has_reference(self) -> bool:
        """Is the float64 run of use? Not for NaN or infinities on one side, nor for discrete results."""
        leaf = self.leaf
        odd = any(leaf.get(key) for key in ("nan_mismatch", "inf_mismatch", "compiled_class_wrong"))
        if self.meta.get("exact"):
            return False
        real = str((leaf.get("eager") or {}).get("dtype", "")) in ("float16", "bfloat16", "float32")
        return leaf.get("reference") == "float64" and real and not odd and not _OWN_CASTS.search(self.text)

    def _tolerance(self) -> str:
        """Arguments for assert_close where its defaults are too coarse for the difference that was seen."""
        if self.meta.get("exact"):
            return ", rtol=0, atol=0"
        dtype = str((self.leaf.get("eager") or {}).get("dtype", ""))
        gap, rows = self.leaf.get("max_abs"), self.leaf.get("worst") or [{}]
        if (
            dtype not in _TOLERANCES
            or not isinstance(gap, (int, float))
            or not gap
            or any(self.leaf.get(k) for k in ("nan_mismatch", "inf_mismatch"))
        ):
            return ""
        rtol, atol = _TOLERANCES[dtype]
        expected = rows[0].get("eager", 0.0)
        scale = abs(expected) if isinstance(expected, (int, float)) else 0.0
        return "" if gap > 2 * (atol + rtol * scale) else f", rtol=0, atol={gap / 2:.1e}"

    def _compare(self, value: str, tolerance: str) -> str:
        return f"""\
{self._run(value)}
eager, compiled = run(fn), run({self._compiled()})
try:
    torch.testing.assert_close(compiled, eager, equal_nan=True{tolerance})
except AssertionError as error:
    print("eager:   ", eager)
    print("compiled:", compiled)
    sys.exit(f"AssertionError: compiled (actual) and eager (expected) differ\\n{{error}}")
print("did not reproduce")
"""

    def _against_float64(self, value: str) -> str:
        # Eager itself may be far from float64; only what is clearly farther is the compiler's doing.
        return f"""\
{_DOUBLE_WITH_GRADIENT if self._goes_backward else _DOUBLE}
{self._run(value, double=True)}
eager, compiled, exact = run(fn), run({self._compiled()}), run(fn, double)
eager_error, compiled_error = [(x.double() - exact).abs().nan_to_num(0).flatten() for x in (eager, compiled)]
i = int((compiled_error - eager_error).argmax())
for name, x in ("float64 ", exact), ("eager   ", eager), ("compiled", compiled):
    print(name, "element", i, "is", x.flatten()[i].item())
print(f"largest error against float64: eager {{eager_error.max():.3g}}, compiled {{compiled_error.max():.3g}}")
try:
    torch.testing.assert_close(compiled, eager, equal_nan=True{self._tolerance()})
except AssertionError as error:
    if compiled_error[i] > 2 * eager_error[i]:
        sys.exit(f"AssertionError: compiled (actual) and eager (expected) differ\\n{{error}}")
print("did not reproduce")
"""


def _meta(tree: ast.Module) -> dict[str, Any]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "META" for t in node.targets):
            try:
                meta = ast.literal_eval(node.value)
            except ValueError:
                return {}
            return meta if isinstance(meta, dict) else {}
    return {}
