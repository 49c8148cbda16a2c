"""A statement: its text, what it binds, reads and writes in place.

The analysis knows torch's conventions (a trailing underscore writes in place, ``out=`` is written) and is
conservative: where it cannot tell, it says that a value is written.
"""

from __future__ import annotations

import ast
import io
import textwrap
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache


def words(text: str) -> frozenset[str]:
    """A set of names, written as a line of text."""
    return frozenset(text.split())


#: Names that programs give to modules: never values that can be written in place.
MODULE_NAMES = words("torch nn F math functools itertools operator np numpy copy")

#: Last parts of calls that draw from the global generator: order among them is behaviour.
RANDOM_CALLS = words(
    "rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson binomial "
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout rrelu rrelu_ "
    "bernoulli_ normal_ uniform_ random_ exponential_ geometric_ cauchy_ log_normal_ manual_seed seed gumbel_softmax "
    "scaled_dot_product_attention fractional_max_pool2d fractional_max_pool3d"
)

#: First letters of torch's modules that draw from it.
_RANDOM_MODULES = ("Dropout", "AlphaDropout", "Feature", "RReLU", "FractionalMaxPool")

_PURE_BUILTINS = words(
    "len range tuple list dict set int float bool complex str min max sum abs isinstance getattr hasattr zip "
    "enumerate sorted reversed slice type divmod round all any repr id"
)
_MUTATING_METHODS = words("append extend insert pop update clear remove setdefault __setitem__")
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)


@dataclass(frozen=True)
class Statement:
    """One statement of a function body, compound ones (if, for, with) whole.

    ``text`` starts at column 0. ``targets`` are the names bound in the function's scope, ``reads`` every name
    that is loaded (module names included). ``writes`` are names whose value may be changed in place.
    ``node`` is the parse of ``text``, so its positions index into it; it is shared and never to be modified.
    """

    text: str
    targets: tuple[str, ...] = field(compare=False)
    reads: frozenset[str] = field(compare=False)
    writes: frozenset[str] = field(compare=False)
    random: bool = field(compare=False)
    node: ast.stmt = field(compare=False, repr=False)

    @staticmethod
    def of(text: str) -> Statement:
        """The statement that ``text`` spells. Raises ``SyntaxError`` when it is not exactly one."""
        return _statement(text)

    @property
    def value(self) -> ast.expr | None:
        """The right-hand side of a plain assignment, or the expression of an expression statement."""
        return self.node.value if isinstance(self.node, (ast.Assign, ast.AnnAssign, ast.Expr)) else None

    @property
    def simple(self) -> bool:
        """An assignment or a bare expression: no control flow, no definition."""
        return isinstance(self.node, _SIMPLE)

    @property
    def pure(self) -> bool:
        """Binding its targets is all it does, so it may be dropped, repeated or moved."""
        if isinstance(self.node, (ast.FunctionDef, ast.ClassDef, ast.Pass)):
            return True
        if not isinstance(self.node, (ast.Assign, ast.AnnAssign)) or self.writes or self.random:
            return False
        return not any(isinstance(n, (ast.NamedExpr, ast.Yield, ast.Await)) for n in ast.walk(self.node))

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node of this statement."""
        start, end = self._span(node)
        return self.text.encode()[start:end].decode()

    def edit(self, node: ast.expr | ast.keyword, replacement: str) -> Statement:
        """This statement with one node's text replaced; all other text stays as written."""
        start, end = self._span(node)
        raw = self.text.encode()
        return Statement.of((raw[:start] + replacement.encode() + raw[end:]).decode())

    def renamed(self, mapping: dict[str, str]) -> Statement:
        """Every occurrence of the identifiers replaced, in nested scopes too (new names must be fresh)."""
        spans = []
        for node in ast.walk(self.node):
            if isinstance(node, ast.Name) and node.id in mapping:
                spans.append((*self._span(node), mapping[node.id]))
            elif isinstance(node, ast.arg) and node.arg in mapping:
                start, _ = self._span(node)
                spans.append((start, start + len(node.arg.encode()), mapping[node.arg]))
        raw = self.text.encode()
        if any(isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name in mapping for n in ast.walk(self.node)):
            return Statement.of(tidy(_Renamer(mapping).visit(ast.parse(self.text)).body[0]))
        if any(isinstance(n, ast.JoinedStr) for n in ast.walk(self.node)):  # positions inside f-strings vary
            return Statement.of(tidy(_Renamer(mapping).visit(ast.parse(self.text)).body[0]))
        for start, end, name in sorted(spans, reverse=True):
            raw = raw[:start] + name.encode() + raw[end:]
        return Statement.of(raw.decode())

    def _span(self, node: ast.expr | ast.stmt | ast.keyword | ast.arg) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        starts = [0]
        for line in self.text.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset


class _Renamer(ast.NodeTransformer):
    def __init__(self, mapping: dict[str, str]) -> None:
        self.mapping = mapping

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.mapping.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.mapping.get(node.arg, node.arg)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.mapping.get(node.name, node.name)
        self.generic_visit(node)
        return node


@lru_cache(maxsize=16384)
def _statement(text: str) -> Statement:
    body = ast.parse(text).body
    if len(body) != 1:
        raise SyntaxError(f"not exactly one statement: {text!r}")
    facts = Facts()
    facts.visit(body[0])
    return Statement(
        text=text,
        targets=tuple(facts.binds),
        reads=frozenset(facts.reads),
        writes=frozenset(facts.writes) - MODULE_NAMES,
        random=facts.random,
        node=body[0],
    )


def loaded_names(text: str) -> frozenset[str]:
    """The free names that an expression reads."""
    facts = Facts()
    facts.visit(ast.parse(text, mode="eval").body)
    return frozenset(facts.reads)


class Facts(ast.NodeVisitor):
    """Names bound, read and written in place, in one function scope; nested scopes count by their free names."""

    def __init__(self) -> None:
        self.binds: dict[str, None] = {}
        self.reads: set[str] = set()
        self.writes: set[str] = set()
        self.random = False

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.reads.add(node.id)
        else:
            self.binds[node.id] = None

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._target(target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        names = _names(node.target)
        self.reads |= names
        self.writes |= names
        self._target(node.target)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self.reads |= _names(target)
            self.writes |= _names(target)

    def _target(self, target: ast.expr) -> None:
        for part in ast.walk(target):
            if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store):
                self.writes |= _names(part.value)
        self.visit(target)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        root, last = _callee(node.func)
        self.random |= last in RANDOM_CALLS
        library = root in MODULE_NAMES
        if isinstance(node.func, ast.Name):
            if node.func.id not in _PURE_BUILTINS:  # a helper or a module: may write whatever it is given
                self.writes |= _all_names(arguments) | {node.func.id}
        elif isinstance(node.func, ast.Call) and _is_torch_class(node.func.func):  # torch.nn.GELU()(x)
            self.random |= _callee(node.func.func)[1].startswith(_RANDOM_MODULES)
            if any(keyword.arg == "inplace" for keyword in node.func.keywords):
                self.writes |= _all_names(arguments)
        elif not isinstance(node.func, ast.Attribute):
            self.writes |= _all_names([node.func, *arguments])
        elif (last.endswith("_") and not last.endswith("__")) or last in _MUTATING_METHODS:
            self.writes |= _all_names(arguments) if library else _names(node.func.value)
        elif not library and root[:1].isupper() and "." not in root:
            self.writes |= _all_names(arguments)
        for keyword in node.keywords:
            if keyword.arg == "out":
                self.writes |= _names(keyword.value)
            elif keyword.arg == "inplace":
                self.writes |= _all_names(node.args)

    def _nested(self, bound: Iterable[str], parts: Iterable[ast.AST]) -> None:
        inner = Facts()
        for part in parts:
            inner.visit(part)
        hidden = set(bound) | set(inner.binds)
        self.reads |= inner.reads - hidden
        self.writes |= inner.writes - hidden
        self.random |= inner.random

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.binds[node.name] = None
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d), *node.decorator_list]:
            self.visit(default)
        self._nested(_parameters(node.args), node.body)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.binds[node.name] = None
        self._nested((), [*node.bases, *node.body])

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._nested(_parameters(node.args), [*node.args.defaults, node.body])

    def visit_comprehension_like(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        self._nested((), list(ast.iter_child_nodes(node)))

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_comprehension_like

    def visit_alias(self, node: ast.alias) -> None:
        self.binds[(node.asname or node.name).split(".")[0]] = None

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.binds[node.name] = None
        self.generic_visit(node)


def _parameters(arguments: ast.arguments) -> set[str]:
    return {node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)}


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - MODULE_NAMES


def _all_names(nodes: Iterable[ast.AST]) -> set[str]:
    return {name for node in nodes for name in _names(node)}


def _is_torch_class(func: ast.expr) -> bool:
    root, last = _callee(func)
    return root in MODULE_NAMES and last[:1].isupper()


def _callee(func: ast.expr) -> tuple[str, str]:
    """(root name of an attribute chain or "", last part): ``torch.nn.functional.relu`` → ("torch", "relu")."""
    last = func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""
    while isinstance(func, ast.Attribute):
        func = func.value
    return (func.id if isinstance(func, ast.Name) else ""), last


def segment(lines: list[str], node: ast.stmt) -> str:
    """A statement's own text at column 0; unparsed where dedenting would change it (multi-line strings)."""
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    assert node.end_lineno is not None and node.end_col_offset is not None
    if any(_spans_lines(part) for part in ast.walk(node)):  # indenting would change the string
        return tidy(node)
    raw = [line.encode() for line in lines[first - 1 : node.end_lineno]]
    raw[-1] = raw[-1][: node.end_col_offset]
    if first == node.lineno:
        raw[0] = b" " * node.col_offset + raw[0][node.col_offset :]
    text = textwrap.dedent("\n".join(line.decode() for line in raw))
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return tidy(node)
    return text if len(body) == 1 and ast.dump(body[0]) == ast.dump(node) else tidy(node)


def _spans_lines(node: ast.AST) -> bool:
    text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    return text and getattr(node, "lineno", 0) != getattr(node, "end_lineno", 0)


def tidy(node: ast.AST) -> str:
    """``ast.unparse`` in the formatter's style: double quotes, ``2**31``, bare tuple targets."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Tuple):
        targets = ", ".join(tidy(element) for element in node.targets[0].elts)
        return f"{targets}{',' if len(node.targets[0].elts) == 1 else ''} = {tidy(node.value)}"
    return _restyle(ast.unparse(ast.fix_missing_locations(node)))


def literal(value: object) -> str:
    """A plain literal in the formatter's style."""
    return _restyle(repr(value))


def _restyle(text: str) -> str:
    if not any(mark in text for mark in ("'", "**", "e-0")):
        return text
    lines = text.splitlines(keepends=True)
    edits: list[tuple[int, int, int, str]] = []
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except tokenize.TokenError:
        return text
    for before, token, after in zip(tokens, tokens[1:], tokens[2:]):
        if token.type == tokenize.OP and token.string == "**" and before.end[0] == after.start[0]:
            operands = (before.type, after.type)
            if all(kind in (tokenize.NAME, tokenize.NUMBER) for kind in operands) and before.string != ",":
                edits.append((token.start[0], before.end[1], after.start[1], "**"))
    for token in tokens:
        if token.type == tokenize.STRING and token.start[0] == token.end[0]:
            double = _double_quoted(token.string)
            edits.append((token.start[0], token.start[1], token.end[1], double))
        elif token.type == tokenize.NUMBER and "e-0" in token.string:
            edits.append((token.start[0], token.start[1], token.end[1], token.string.replace("e-0", "e-")))
    for row, start, end, new in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + new + line[end:]
    return "".join(lines)


def _double_quoted(string: str) -> str:
    body = string.lstrip("rbuRBUfF")
    prefix = string[: len(string) - len(body)]
    if body.startswith("'''") or not body.startswith("'") or '"' in body or "\\" in body:
        return string
    return f'{prefix}"{body[1:-1]}"'
