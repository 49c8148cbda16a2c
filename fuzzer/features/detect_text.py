"""Facts read from a program's syntax tree: control flow, Python constructs, mode, options, casts, literals.

One walk over the tree fills named groups with words; a feature names one (group, word) pair as its detector.
Nothing is executed. The tree says what was *written*: what really ran is read in ``detect_run``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from fuzzer.features.detect_meta import CONFIG_WORDS, Words, read_meta, vocabulary
from fuzzer.program import MODES, Program

#: Functions whose positional integers name dimensions; a negative literal elsewhere is only a number.
_DIM_FUNCTIONS = vocabulary(
    "all amax amin any argmax argmin argsort cat chunk concat count_nonzero cummax cummin cumprod cumsum diff flatten "
    "flip gather glu index_add index_copy index_fill index_reduce index_select kthvalue log_softmax logcumsumexp "
    "logsumexp max mean median min mode movedim moveaxis narrow nansum norm permute prod roll scatter scatter_add "
    "scatter_reduce select softmax sort split squeeze stack std sum swapaxes swapdims take_along_dim topk transpose "
    "unbind unflatten unfold unique_consecutive unsqueeze var"
)
_SHAPE_FUNCTIONS = vocabulary(
    "empty expand full new_empty new_full new_ones new_zeros ones rand randint randn repeat reshape tile view zeros"
)
#: Of these, a bare number is a bound or a value, never a size.
_SHAPE_IN_TUPLE = frozenset({"full", "new_full", "randint"})
_FLOAT_CASTS = {"half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64"}
_INT_CASTS = {"int": "int32", "long": "int64", "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool"}
_CASTS = {**_FLOAT_CASTS, **_INT_CASTS}
_DTYPES = vocabulary(
    "float16 bfloat16 float32 float64 complex64 complex128 uint8 uint16 uint32 uint64 int8 int16 int32 int64 bool "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"
)
_DTYPE_ALIASES = {
    "half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32", "long": "int64",
    "cfloat": "complex64", "cdouble": "complex128",
}  # fmt: skip
#: From here on an integer is an extreme: doubled, it no longer fits 64 bits.
_INT64_EXTREME = 2**62
#: No tensor of a program has so many dimensions.
_FAR_DIM = 7
#: Functions whose lists hold sizes, of which -1 stands for the one that is left over.
_LEFT_OVER = frozenset({"view", "reshape", "expand", "unflatten", "split", "tensor", "as_tensor"})
#: From here on a float literal is an extreme: its square overflows float32.
_FLOAT_EXTREME = 2.0e19

_CONTROL_OPERATORS = {
    "cond": "cond", "while_loop": "while_loop", "map": "map", "associative_scan": "scan", "scan": "scan",
    "checkpoint": "checkpoint",
}  # fmt: skip
_CALL_WORDS = {
    "item": "item", "tolist": "item", "numpy": "numpy", "from_numpy": "numpy", "graph_break": "graph_break",
    "print": "graph_break", "append": "list_mutation", "extend": "list_mutation", "partial": "partial",
    "enumerate": "iterator", "zip": "iterator", "reversed": "iterator", "isinstance": "isinstance",
    "register_hook": "hook", "register_forward_hook": "hook", "custom_op": "custom_op", "namedtuple": "container",
    "OrderedDict": "container", "defaultdict": "container", "dict": "container", "setattr": "attribute_mutation",
    "size": "shape_arithmetic", "numel": "shape_arithmetic", "detach": "detach", "vmap": "transform",
    "grad": "transform", "jacrev": "transform", "functional_call": "transform", "jvp": "transform",
}  # fmt: skip
_READS_DATA = frozenset({"item", "any", "all", "sum", "max", "min", "mean", "equal", "allclose", "tolist"})

#: Groups that this module fills, each with every word it can report.
TEXT_DETECTORS: Mapping[str, frozenset[str]] = {
    "mode": frozenset(MODES),
    "context": vocabulary("no_grad inference_mode autocast random second_call set_grad strict_stride"),
    "config": CONFIG_WORDS,
    "control": vocabulary(
        "cond while_loop map scan checkpoint if_data if_static for_loop while try early_return assert break with "
        "recursion"
    ),
    "python": frozenset(_CALL_WORDS.values())
    | vocabulary(
        "closure lambda module nested_module variadic keyword_only comprehension generator dict_result list_result "
        "global_state decorator custom_autograd dataclass fstring walrus unpacking buffer_mutation data_attribute "
        "dict_subscript number_input"
    ),
    "mutation": vocabulary("inplace_method setitem augmented out_argument masked_setitem fill_scalar"),
    "text_cast": _DTYPES | {"any"},
    "text_dtype": _DTYPES,
    "boundary": vocabulary(
        "negative_dim int64_extreme int32_extreme float_extreme zero_size slice_step slice_bound negative_index "
        "ceil_mode negative_padding dilation stride keepdim alpha rounding_mode tuple_dim empty_dim correction "
        "descending boolean_mask none_index zero_argument large_shift groups asymmetric_padding far_dim negative_list "
        "zero_list"
    ),
    "text_mechanism": frozenset({"item_fill"}),
    "results": frozenset({"several"}),
}


def read_text(program: Program) -> Words:
    """Words per group of ``TEXT_DETECTORS`` for one program. Linear in the size of its text."""
    words: Words = {group: set() for group in TEXT_DETECTORS}
    read_meta(program.meta, words)
    _Reader(words).read(ast.parse(program.text))
    return words


def read_statement(node: ast.stmt) -> Words:
    """The same for one statement of ``fn``."""
    words: Words = {group: set() for group in TEXT_DETECTORS}
    reader = _Reader(words)
    reader.functions.append("fn")
    reader.visit(node)
    return words


# --- the tree -----------------------------------------------------------------------------------------------------


def _number(node: ast.AST | None) -> int | float | None:
    """The value of a literal number, with its sign; None for anything else (a bool is not a number here)."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
        return None
    return sign * node.value if isinstance(node.value, (int, float)) else None


def _negative(node: ast.AST) -> bool:
    value = _number(node)
    return isinstance(value, int) and value < 0


def _elements(node: ast.AST | None) -> list[ast.expr]:
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List)) else []


def _called_name(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


class _Reader:
    """One walk over a module, without recursion per node type; keeps the stack of enclosing functions."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.functions: list[str] = []
        self.in_module_class = False
        self.numbers: set[str] = set()  # names in build_inputs that stand for a literal number
        self.handlers: dict[type, Callable[[Any], None]] = {
            ast.Call: self.call, ast.FunctionDef: self.function, ast.Lambda: self.lambda_, ast.ClassDef: self.class_,
            ast.If: self.if_, ast.IfExp: self.if_, ast.For: self.for_, ast.While: self.while_, ast.Try: self.try_,
            ast.Assert: self.assert_, ast.Break: self.break_, ast.Continue: self.break_, ast.With: self.with_,
            ast.Return: self.return_, ast.Assign: self.assign, ast.AugAssign: self.augmented, ast.Global: self.global_,
            ast.Nonlocal: self.global_, ast.ListComp: self.comprehension, ast.DictComp: self.comprehension,
            ast.SetComp: self.comprehension, ast.GeneratorExp: self.comprehension, ast.Yield: self.generator,
            ast.JoinedStr: self.fstring, ast.NamedExpr: self.walrus, ast.Starred: self.starred,
            ast.Subscript: self.subscript, ast.Attribute: self.attribute, ast.Constant: self.constant,
        }  # fmt: skip

    def add(self, group: str, word: str) -> None:
        self.words[group].add(word)

    def read(self, tree: ast.Module) -> None:
        for node in tree.body:
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "META" for t in node.targets):
                continue  # read as literals already; its strings and numbers are no part of the program
            if isinstance(node, ast.FunctionDef) and node.name == "build_inputs2":
                self.add("context", "second_call")
            self.visit(node)

    def visit(self, node: ast.AST) -> None:
        handler = self.handlers.get(type(node))
        if handler is not None:
            handler(node)
        scope = isinstance(node, (ast.FunctionDef, ast.Lambda))
        if scope:
            self.functions.append(getattr(node, "name", "<lambda>"))
        for field in node._fields:  # by hand: ast.iter_child_nodes costs twice as much
            value = getattr(node, field, None)
            if isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.AST):
                        self.visit(item)
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                self.visit(value)
        if scope:
            self.functions.pop()

    # definitions

    def function(self, node: ast.FunctionDef) -> None:
        if self.functions:
            self.add("python", "closure")
        if node.args.kwarg or (node.args.vararg and node.name != "fn"):  # the contract itself writes fn(*args)
            self.add("python", "variadic")
        if node.args.kwonlyargs:
            self.add("python", "keyword_only")
        for decorator in node.decorator_list:
            self.add("python", "decorator")
            self._context(decorator)
        for statement in node.body:
            for branch in (getattr(statement, "body", ()), getattr(statement, "orelse", ())):
                if isinstance(branch, list) and any(isinstance(inner, ast.Return) for inner in branch):
                    self.add("control", "early_return")

    def lambda_(self, node: ast.Lambda) -> None:
        self.add("python", "lambda")

    def class_(self, node: ast.ClassDef) -> None:
        bases = {base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases}
        if "Module" in bases:
            self.add("python", "module")
        if bases & {"Function", "SingleLevelFunction"}:
            self.add("python", "custom_autograd")
        if "NamedTuple" in bases:
            self.add("python", "container")
        for decorator in node.decorator_list:
            name = _called_name(decorator) if isinstance(decorator, ast.Call) else getattr(decorator, "id", "")
            self.add("python", "dataclass" if name == "dataclass" else "decorator")

    # statements

    def if_(self, node: ast.If | ast.IfExp) -> None:
        reads = any(isinstance(n, ast.Call) and _called_name(n) in _READS_DATA for n in ast.walk(node.test))
        self.add("control", "if_data" if reads else "if_static")

    def for_(self, node: ast.For) -> None:
        self.add("control", "for_loop")

    def while_(self, node: ast.While) -> None:
        self.add("control", "while")

    def try_(self, node: ast.Try) -> None:
        self.add("control", "try")

    def assert_(self, node: ast.Assert) -> None:
        self.add("control", "assert")

    def break_(self, node: ast.AST) -> None:
        self.add("control", "break")

    def with_(self, node: ast.With) -> None:
        self.add("control", "with")
        for item in node.items:
            self._context(item.context_expr)

    def _context(self, node: ast.AST) -> None:
        name = _called_name(node) if isinstance(node, ast.Call) else getattr(node, "attr", "")
        word = {"enable_grad": "set_grad", "set_grad_enabled": "set_grad"}.get(name, name)
        if word in TEXT_DETECTORS["context"]:
            self.add("context", word)

    def return_(self, node: ast.Return) -> None:
        if self.functions[-1:] == ["fn"] or self.functions[-1:] == ["forward"]:
            if isinstance(node.value, ast.Dict):
                self.add("python", "dict_result")
            elif isinstance(node.value, ast.List):
                self.add("python", "list_result")
        items = _elements(node.value)
        numbers = any(_number(item) is not None or getattr(item, "id", "") in self.numbers for item in items)
        if numbers and self.functions[-1:] == ["build_inputs"]:
            self.add("python", "number_input")
        if self.functions == ["fn"] and len(_elements(node.value) or getattr(node.value, "keys", ())) > 1:
            self.add("results", "several")

    def assign(self, node: ast.Assign) -> None:
        if self.functions[-1:] == ["build_inputs"] and _number(node.value) is not None:
            self.numbers.update(target.id for target in node.targets if isinstance(target, ast.Name))
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                masked = isinstance(target.slice, (ast.Compare, ast.Name))
                self.add("mutation", "masked_setitem" if masked else "setitem")
            elif isinstance(target, ast.Attribute) and self.functions and self.functions[-1] != "__init__":
                self.add("python", "attribute_mutation")

    def augmented(self, node: ast.AugAssign) -> None:
        self.add("mutation", "augmented")
        if isinstance(node.target, ast.Attribute):
            self.add("python", "buffer_mutation")

    def global_(self, node: ast.AST) -> None:
        self.add("python", "global_state")

    def comprehension(self, node: ast.AST) -> None:
        self.add("python", "comprehension")

    def generator(self, node: ast.AST) -> None:
        self.add("python", "generator")

    def fstring(self, node: ast.AST) -> None:
        self.add("python", "fstring")

    def walrus(self, node: ast.AST) -> None:
        self.add("python", "walrus")

    def starred(self, node: ast.AST) -> None:
        self.add("python", "unpacking")

    # expressions

    def attribute(self, node: ast.Attribute) -> None:
        name = node.attr
        if name == "data":
            self.add("python", "data_attribute")
        elif name == "shape":
            self.add("python", "shape_arithmetic")
        elif isinstance(node.value, ast.Name) and node.value.id == "torch":
            dtype = _DTYPE_ALIASES.get(name, name)
            if dtype in _DTYPES:
                self.add("text_dtype", dtype)

    def constant(self, node: ast.Constant) -> None:
        value = node.value
        if type(value) is int:
            if value >= _INT64_EXTREME:
                self.add("boundary", "int64_extreme")
            elif value >= 2**31 - 1:
                self.add("boundary", "int32_extreme")
        elif type(value) is float:
            if abs(value) >= _FLOAT_EXTREME:
                self.add("boundary", "float_extreme")
        elif type(value) is str and value.lower().lstrip("+-") in ("inf", "nan", "infinity"):
            self.add("boundary", "float_extreme")

    def subscript(self, node: ast.Subscript) -> None:
        for part in _elements(node.slice) or [node.slice]:
            if isinstance(part, ast.Slice):
                step = _number(part.step)
                if step is not None and step > 1:
                    self.add("boundary", "slice_step")
                if any(isinstance(v, int) and (v < 0 or v > 4096) for v in map(_number, (part.lower, part.upper))):
                    self.add("boundary", "slice_bound")
            elif _negative(part):
                self.add("boundary", "negative_index")
            elif isinstance(part, ast.Constant) and part.value is None:
                self.add("boundary", "none_index")
            elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                self.add("python", "dict_subscript")
            elif isinstance(part, ast.Compare):
                self.add("boundary", "boolean_mask")

    def call(self, node: ast.Call) -> None:
        name = _called_name(node)
        if isinstance(node.func, ast.Attribute):
            self._method(name, node)
        word = _CALL_WORDS.get(name)
        if word is not None:
            self.add("python", word)
        if name in self.functions:
            self.add("control", "recursion")
        if name in _SHAPE_FUNCTIONS:
            tuples_only = name in _SHAPE_IN_TUPLE
            sizes = [size for argument in node.args for size in (_elements(argument) or [argument] * (not tuples_only))]
            if any(_number(size) == 0 for size in sizes):
                self.add("boundary", "zero_size")
        if name == "pad" and any(_negative(size) for argument in node.args[1:] for size in _elements(argument)):
            self.add("boundary", "negative_padding")
        if "shift" in name and any((_number(argument) or 0) >= 31 for argument in node.args):
            self.add("boundary", "large_shift")
        for keyword in node.keywords:
            self._keyword(keyword.arg or "", keyword.value)
        if name not in _DIM_FUNCTIONS | _LEFT_OVER | _SHAPE_FUNCTIONS and self.functions[-1:] != ["build_inputs"]:
            values = [_number(item) for argument in node.args for item in _elements(argument)]
            integers = [value for value in values if type(value) is int]
            if len(integers) > 1 and name != "pad":
                self.words["boundary"] |= {"zero_list"} if 0 in integers else set()
                self.words["boundary"] |= {"negative_list"} if min(integers) < 0 else set()
        if name in _DIM_FUNCTIONS:
            numbers = (_number(item) for argument in node.args for item in (_elements(argument) or [argument]))
            if any(type(number) is int and abs(number) >= _FAR_DIM for number in numbers):
                self.add("boundary", "far_dim")
            if any(_negative(item) for argument in node.args for item in (_elements(argument) or [argument])):
                self.add("boundary", "negative_dim")
            if any(isinstance(argument, ast.Tuple) and len(argument.elts) > 1 for argument in node.args):
                self.add("boundary", "tuple_dim")
        self._context(node)

    def _method(self, name: str, node: ast.Call) -> None:
        receiver = node.func.value  # type: ignore[attr-defined]
        if name in _CASTS and not (isinstance(receiver, ast.Name) and receiver.id in ("torch", "np")):
            self._cast(_CASTS[name])
        elif name in ("to", "type", "type_as", "astype"):
            if name == "type_as":
                self.add("text_cast", "any")
            for value in (*node.args, *(k.value for k in node.keywords if k.arg == "dtype")):
                attribute = getattr(value, "attr", "")
                self._cast(_DTYPE_ALIASES.get(attribute, attribute))
        if name in _CONTROL_OPERATORS and isinstance(receiver, (ast.Name, ast.Attribute)):
            self.add("control", _CONTROL_OPERATORS[name])
        if name.endswith("_") and not name.endswith("__"):
            if name != "requires_grad_":
                self.add("mutation", "inplace_method")
            if name in ("fill_", "add_", "mul_", "copy_") and node.args:
                inner = node.args[0]
                if isinstance(inner, ast.Call) and _called_name(inner) == "item":
                    self.add("text_mechanism", "item_fill")
                elif name == "fill_":
                    self.add("mutation", "fill_scalar")
            if isinstance(receiver, ast.Attribute) and getattr(receiver.value, "id", "") == "self":
                self.add("python", "buffer_mutation")
        if name in ("Sequential", "ModuleList", "ModuleDict"):
            self.add("python", "nested_module")

    def _cast(self, dtype: str) -> None:
        if dtype in _DTYPES:
            self.add("text_cast", dtype)
            self.add("text_cast", "any")

    def _keyword(self, name: str, value: ast.expr) -> None:
        true = isinstance(value, ast.Constant) and value.value is True
        number = _number(value)
        items = _elements(value)
        if name in ("dim", "axis", "dims", "dim0", "dim1", "start_dim", "end_dim"):
            if any(_negative(item) for item in items or [value]):
                self.add("boundary", "negative_dim")
            if any(type(number) is int and abs(number) >= _FAR_DIM for number in map(_number, items or [value])):
                self.add("boundary", "far_dim")
            if len(items) > 1:
                self.add("boundary", "tuple_dim")
            elif isinstance(value, (ast.Tuple, ast.List)) and not items:
                self.add("boundary", "empty_dim")
        elif name in ("ceil_mode", "keepdim", "descending"):
            if true:
                self.add("boundary", name)
        elif name in ("dilation", "stride", "groups"):
            if any(isinstance(n, int) and n > 1 for n in map(_number, items or [value])):
                self.add("boundary", name)
        elif name == "padding":
            if len({ast.dump(item) for item in items}) > 1:
                self.add("boundary", "asymmetric_padding")
        elif name in ("alpha", "beta", "rounding_mode", "correction", "unbiased"):
            self.add("boundary", {"beta": "alpha", "unbiased": "correction"}.get(name, name))
        elif name == "out":
            self.add("mutation", "out_argument")
        if number == 0 and name not in ("dim", "axis", "dim0", "dim1", "start_dim", "seed"):
            self.add("boundary", "zero_argument")
