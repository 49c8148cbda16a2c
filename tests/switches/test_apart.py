"""Programs without a feature of fn. The texts are run as Python, with a torch that only counts, to see what they do."""

from __future__ import annotations

import pytest

from fuzzer.engines.view import ProgramView
from fuzzer.program import Program
from fuzzer.switches import SWITCHES, ways
from fuzzer.switches.apart import apart, broken
from fuzzer.switches.reading import edges, families, groups

HEAD = (
    "import torch\n\nMETA = {'compile': {'fullgraph': True}}\n\n\n"
    "def build_inputs():\n    return torch.ones(2), 3\n\n\n"
)


def view(body: str, head: str = HEAD, params: str = "x, y") -> ProgramView:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return ProgramView.of(Program.parse(f"{head}def fn({params}):\n{lines}")).normalise()


def first(program: ProgramView, feature: str) -> str:
    return next(ways(program, feature)).to_program().text


class Torch:
    """Enough of a torch to run a program: numbers for tensors, a decorator that counts."""

    def __init__(self) -> None:
        self.apart: list[str] = []
        self.compiler, self._dynamo = self, self

    def disable(self, function):
        def called(*arguments):
            self.apart.append(function.__name__)
            return function(*arguments)

        return called

    def graph_break(self) -> None:
        self.apart.append("break")

    def ones(self, size: int) -> int:
        return size

    def sum(self, x: int) -> int:
        return x * 10


def outcome(text: str) -> tuple[object, list[str]]:
    torch = Torch()
    scope: dict[str, object] = {"torch": torch}
    exec(text.replace("import torch\n", ""), scope)
    return scope["fn"](*scope["build_inputs"]()), torch.apart  # type: ignore[operator]


PLAIN = "a = x + y\nb = torch.sum(a)\nc, d = b, a\nc += 1\nif c > 3:\n    d = 7\nreturn c, d"


@pytest.mark.parametrize("indices", [[0], [1, 2], [3], [4], range(5)])
def test_a_statement_apart_computes_the_same(indices) -> None:
    program = view(PLAIN)
    (changed,) = apart(program, indices)
    expected, _ = outcome(program.to_text())
    result, called = outcome(changed.to_program().text)
    assert result == expected and len(called) == len(list(indices))
    assert changed.meta["compile"] == {}, "a whole graph is no longer asked for"


def test_breaks_stand_between_statements_only() -> None:
    program = view(PLAIN)
    (changed,) = broken(program, range(len(program.body)))
    assert outcome(changed.to_program().text) == (outcome(program.to_text())[0], ["break"] * 4)
    assert not list(broken(program, [4])), "behind the last there is nothing"
    assert not list(broken(view("return x"), [0]))


def test_what_returns_stays() -> None:
    program = view("if y:\n    return x\nb = torch.sum(x)\nreturn b")
    (changed,) = apart(program, [0, 1])
    assert "if y:\n        return x" in changed.to_text() and "apart0(x)" in changed.to_text()
    assert not list(apart(program, [0]))


def test_statements_are_read_by_family_and_edge() -> None:
    program = view("a = torch.cumsum(x, 0)\nb = a.to(torch.int8)\nb[0] = 1\nc = b.sum()\nd = y(c)\nreturn d")
    found = [families(statement) for statement in program.body]
    assert "scan" in found[0] and "cast" in found[1] and "index_write" in found[2] and "reduction" in found[3]
    assert not found[4], "a module's operators cannot be told"
    assert "inplace" in groups(program.body[2]) and list(edges(program, "inplace", "reduction")) == [2]
    assert list(edges(program, "reduction", "inplace")) == []


@pytest.mark.parametrize(
    ("feature", "body", "come"),
    [
        ("op_family=scan", "return torch.cumsum(x, 0).exp()", "a = apart0(x)\n    b = a.exp()"),
        ("op_family=scan", "return y(x)", "apart0(x, y)"),
        ("adjacency=pointwise>reduction", "return x.exp().sum()", "exp()\n    torch._dynamo.graph_break()\n"),
        ("boundary=ceil_mode", "return torch.f(x, ceil_mode=True)", "torch.f(x, ceil_mode=False)"),
        ("boundary=alpha", "return torch.add(x, y, alpha=3)", "torch.add(x, y)"),
        ("boundary=negative_dim", "return torch.sum(x, dim=-1)", "torch.sum(x, dim=x.dim() - 1)"),
        ("boundary=slice_step", "return x[1::2]", "x[1:]"),
        ("boundary=int64_extreme", "return x[:9223372036854775807]", "x[:3]"),
        ("boundary=negative_index", "return x[-1]", "x[0]"),
        ("boundary=float_extreme", "return x.clamp(float('inf'))", "a = 2.0"),
        ("python=graph_break", "a = x.exp()\ntorch._dynamo.graph_break()\nreturn a", "a = x.exp()\n    return a"),
        ("python=item", "a = x.item()\nreturn y * a", "a = apart0(x)"),
        ("topology=alias", "a = x.t()\nreturn a, x", "return a.clone(), x.clone()"),
        ("topology=input_reuse", "a = x.exp()\nb = x.sin()\nreturn a, b", "b = c.sin()"),
        ("mutation=out_argument", "a = torch.add(x, x, out=y)\nreturn a", "torch.add(x, x)"),
        ("dtype_mix=int_float", "a = x * y\nreturn a", "torch.result_type(x, y)"),
        ("broadcast=ones_dim", "a = torch.add(x, y)\nreturn a", "torch.add(b, c)"),
        ("mechanism=pow_chain", "return x.pow(2).pow(0.5)", "torch._dynamo.graph_break()"),
        ("control=cond", "a = torch.cond(y, f, g, (x,))\nreturn a", "a = apart0(x, y)"),
    ],
)
def test_one_feature_less(feature: str, body: str, come: str) -> None:
    text = first(view(body), feature)
    assert come in text, text


def test_every_dimension_of_the_space_has_a_switch() -> None:
    from fuzzer.features.detect import default_space

    assert set(SWITCHES) == set(default_space().dimensions)
