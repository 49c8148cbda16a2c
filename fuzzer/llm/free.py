"""Free programs: the code in an answer, checked on its syntax tree before anything runs.

Model text is untrusted. The sandbox holds what runs; this check keeps out what has no business in a test at all.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.features.detect import detect
from fuzzer.features.detect_text import TEXT_DETECTORS, vocabulary
from fuzzer.features.space import FeatureSpace
from fuzzer.program import Program, ProgramError

_LARGEST = 12_000  # characters
_MOST_LINES = 150

#: Built-in functions that reach outside, or run text.
_NAMES = vocabulary(
    "open exec eval compile input breakpoint globals locals vars memoryview exit quit help print "
    "__import__ __builtins__ __loader__ __spec__"
)
#: Attributes, of whatever object, that lead out of the program: modules that torch carries along, files, processes,
#: code loaded at run time, and knobs of the process that the harness relies on.
_ATTRIBUTES = vocabulary(
    "os sys subprocess shutil socket pathlib importlib builtins ctypes inspect glob tempfile threading multiprocessing "
    "pickle io signal platform urllib requests system popen fork kill spawn load save load_library load_inline "
    "cpp_extension hub classes serialization from_file tofile fromfile memmap loadtxt genfromtxt savetxt data_ptr "
    "open exec breakpoint globals exit quit bltns ctypeslib f2py distutils copyreg "
    "compile distributed package jit profiler _C _inductor _dynamo f_globals f_locals gi_frame tb_frame cr_frame"
)
#: What may follow ``torch.`` beside the operators of the catalogue.
_TORCH = vocabulary(
    "Tensor Size Generator dtype device nn fft linalg special ops func autograd amp utils sparse random cond vmap "
    "no_grad enable_grad inference_mode set_grad_enabled autocast manual_seed _higher_order_ops "
    "float float16 float32 float64 bfloat16 half double int int8 int16 int32 int64 short long uint8 uint16 uint32 "
    "uint64 bool complex64 complex128 cfloat cdouble float8_e4m3fn float8_e5m2 "
    "contiguous_format channels_last channels_last_3d preserve_format strided finfo iinfo nan inf pi e is_tensor "
    "is_grad_enabled is_floating_point is_complex get_default_dtype tensor as_tensor scalar_tensor from_numpy "
    "zeros ones full empty arange linspace logspace eye rand randn randint randperm zeros_like ones_like full_like "
    "rand_like randn_like randint_like complex polar sym_int sym_float sym_max sym_min _check quantize_per_tensor "
    "quantize_per_channel slice_copy quantization qint8 quint8 qint32 quint4x2 quint2x4"
)
#: Whose private attributes a program may touch: its modules' own, and those of torch that are listed above.
_OWN = (["self"], ["torch"])
_UTILS = vocabulary("checkpoint _pytree")
#: Special methods that programs write or call.
_SPECIAL = vocabulary(
    "__init__ __call__ __enter__ __exit__ __getitem__ __setitem__ __len__ __iter__ __next__ __post_init__ __name__ "
    "__add__ __mul__"
)
#: Entries of META that a model may choose. Not those that loosen the comparison or reach into the harness.
_META = frozenset({"mode", "title", "random", "no_grad", "check_stride", "compile", "inductor_config", "dynamo_config"})
_COMPILE = frozenset({"dynamic", "fullgraph"})
_FENCE = re.compile(r"```[ \t]*(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL)


class Unfit(Exception):
    """The text is no program that may run; the message says what to mend, in words for the model."""


def extract(answer: str) -> str:
    """The program in an answer: the fenced block that holds ``build_inputs``, the longest first; else all of it.

    Raises:
        Unfit: no such text.
    """
    blocks = sorted(_FENCE.findall(answer), key=len, reverse=True)
    for text in [*blocks, answer]:
        if "def build_inputs" in text and ("def fn" in text or "fn =" in text):
            return text.strip() + "\n"
    raise Unfit("the answer holds no Python code block with build_inputs and fn")


def check(text: str, operators: Collection[str], source: str = "<llm>") -> Program:
    """A program that may run in the sandbox. ``operators``: names that may follow ``torch.``, whole or up to a dot.

    Raises:
        Unfit: too long, not in the contract, or something in it is not allowed.
    """
    if len(text) > _LARGEST or text.count("\n") > _MOST_LINES:
        raise Unfit(f"the program is too long; write at most {_MOST_LINES} lines")
    text = _without_main(text)
    try:
        program = Program.parse(text, source)
    except ProgramError as error:
        raise Unfit(str(error).removeprefix(f"{source}: ")) from None
    tree = ast.parse(text)
    for statement in tree.body:
        _check_top(statement)
    parts = {part for name in operators for part in (name.partition(".")[0], name.rpartition(".")[2])}
    known = _TORCH | parts | {f"{part}_" for part in parts}
    within = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "torch" and id(node) not in within:
            raise Unfit(f"line {node.lineno}: torch under another name is not allowed in a program")
        _check_node(node)
        _check_torch(node, known)
    return program


def _without_main(text: str) -> str:
    """Models like to append a demonstration; it would not run, so it is cut off rather than judged."""
    try:
        guards = [node for node in ast.parse(text).body if isinstance(node, ast.If)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text  # the parse that follows tells why
    lines = text.splitlines(keepends=True)
    for guard in reversed(guards):
        if ast.unparse(guard.test) == "__name__ == '__main__'":
            del lines[guard.lineno - 1 : guard.end_lineno]
    return "".join(lines).rstrip() + "\n"


def _check_top(statement: ast.stmt) -> None:
    """At module level: imports, definitions, assignments. Nothing runs before the harness is ready."""
    kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)
    if isinstance(statement, kinds) or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
        return
    raise Unfit(f"line {statement.lineno}: only imports, definitions and assignments may stand at module level")


def _check_node(node: ast.AST) -> None:
    line = getattr(node, "lineno", 0)
    if isinstance(node, ast.Name) and (node.id in _NAMES or (_is_special(node.id) and node.id != "__name__")):
        raise Unfit(f"line {line}: {node.id} is not allowed in a program")
    if isinstance(node, ast.Attribute):
        special = _is_special(node.attr) and node.attr not in _SPECIAL
        private = node.attr.startswith("_") and not _is_special(node.attr) and _dotted(node)[:1] not in _OWN
        if special or private or node.attr in _ATTRIBUTES:
            raise Unfit(f"line {line}: .{node.attr} is not allowed in a program")
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = [alias.name for alias in node.names]
        module = getattr(node, "module", None) or ""
        for part in ".".join([module, *names]).split("."):
            if part in _ATTRIBUTES or part in ("warnings", "random"):
                raise Unfit(f"line {line}: import of {part} is not allowed in a program")
    if isinstance(node, (ast.AsyncFunctionDef, ast.Await, ast.Global)):
        raise Unfit(f"line {line}: no async code and no global statement")
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "setattr", "delattr"):
        name = node.args[1] if len(node.args) > 1 else None
        plain = isinstance(name, ast.Constant) and isinstance(name.value, str)
        if not plain or name.value.startswith("_") or name.value in _ATTRIBUTES:  # type: ignore[union-attr]
            raise Unfit(f"line {line}: getattr and setattr take a plain name only")


def _check_torch(node: ast.AST, known: Collection[str]) -> None:
    """Names below ``torch`` are those of the catalogue and a few more; everything else in it is machinery."""
    if isinstance(node, ast.Attribute):
        path = _dotted(node)
        if path[:1] == ["torch"]:
            allowed = path[1] in known and (path[1] != "utils" or len(path) < 3 or path[2] in _UTILS)
            if not allowed or (path[1] == "ops" and len(path) > 2 and path[2] not in ("aten", "prims", "higher_order")):
                raise Unfit(f"line {node.lineno}: {'.'.join(path)} is not allowed in a program")
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
        for alias in node.names:
            path = [*(node.module or "").split("."), alias.name]
            if path[1] not in known or (path[1] == "utils" and path[2] not in _UTILS):
                raise Unfit(f"line {node.lineno}: import of {'.'.join(path)} is not allowed in a program")
    if isinstance(node, ast.Import):
        for alias in node.names:
            path = alias.name.split(".")
            plain = len(path) == 1 and alias.asname in (None, "torch")
            if path[0] == "torch" and not plain and (len(path) == 1 or path[1] not in known or "utils" in path):
                raise Unfit(f"line {node.lineno}: import of {alias.name} is not allowed in a program")


def _dotted(node: ast.expr) -> list[str]:
    """``torch.nn.relu`` as its parts; [] for an attribute of anything but a name."""
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return [*inner, node.attr] if inner else []
    return [node.id] if isinstance(node, ast.Name) else []


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def finished(program: Program, features: Sequence[str], parents: Sequence[str] = ()) -> Program:
    """The program as it runs: META with what the model may choose, what was asked, and where it comes from.

    Raises:
        Unfit: its text cannot be taken apart.
    """
    meta: dict[str, Any] = {"mode": program.mode}
    for name in sorted(_META & program.meta.keys()):
        value = program.meta[name]
        if name == "compile":
            value = {key: value[key] for key in sorted(_COMPILE & set(value))} if isinstance(value, dict) else {}
        elif name.endswith("_config"):
            value = _numbers(value)
        if value not in ({}, "", None):
            meta[name] = value
    meta |= {"engine": "llm"} | ({"features": list(features)} if features else {})
    if parents:
        meta["parents"] = list(parents)
    try:
        view = ProgramView.of(program)
        return Program.parse(dataclasses.replace(view, meta=meta).to_text(), "<llm>")
    except (ViewError, ProgramError) as error:
        raise Unfit(f"write build_inputs and fn as plain functions ({error})") from None


def _numbers(value: Any) -> dict[str, Any]:
    """Options that are switches or numbers: a text could name a program or a file."""
    if not isinstance(value, dict):
        return {}
    return {key: item for key, item in value.items() if isinstance(key, str) and isinstance(item, (bool, int, float))}


def missing(
    program: Program, features: Sequence[str], space: FeatureSpace, family_of: Callable[[str], str]
) -> list[str]:
    """Asked features that the text would show and does not. What only a run shows is not judged here."""
    visible = [
        name
        for name in features
        if name in space.features and (space.features[name].detector in TEXT_DETECTORS or name.startswith("dtype="))
    ]
    return sorted(set(visible) - detect(program, None, family_of, space))
