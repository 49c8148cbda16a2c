from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutation_base import PROGRAMS

from fuzzer.engines.statement import Statement, tidy
from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.engines.writer import WIDTH, render_meta
from fuzzer.program import Program

AWKWARD = '''"""A docstring."""
import torch
import torch.nn as nn  # a trailing comment

META = {'mode': 'eval', 'title': 'it\\'s', "config": {"cpp.threads": 2}}

# what the helper is for
def helper(t, *, scale=2):
    # a comment inside
    return t * scale


class Net(nn.Module):
    def forward(self, x):
        return x


def build_inputs():
    mk = lambda *s: torch.randn(*s)
    text = """two
lines"""
    return Net(), mk(2, 3), len(text)


@torch.no_grad()
def fn(net, x, n=3, *rest, **named):
    """What it does."""
    if x.sum() > 0:
        return x
    for k in range(n):  # compound, kept whole
        x = helper(x, scale=k)
    first, (second, third) = x[0], (x[1], x)
    return {"a": net(x), "b": [torch.sin(first).cos(), second ** 2]}


def build_inputs2():
    return Net(), torch.zeros(0), 1


if __name__ == "__main__":
    print(fn(*build_inputs()))
'''


def definitions(text: str) -> tuple[dict[str, str], list[str]]:
    """(the contract's definitions, the rest in order), docstrings of functions aside."""
    named, rest = {}, []
    for node in ast.parse(text).body:
        name = getattr(node, "name", "META" if isinstance(node, ast.Assign) else "")
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:]
        if name in ("META", "fn", "build_inputs", "build_inputs2"):
            named[name] = ast.dump(node)
        else:
            rest.append(ast.dump(node))
    return named, rest


@pytest.mark.parametrize("text", [AWKWARD, *(p.text for p in PROGRAMS.values())], ids=["awkward", *PROGRAMS])
def test_text_survives_a_round_trip(text: str) -> None:
    once = ProgramView.of(Program.parse(text)).to_text()
    assert definitions(once) == definitions(text)
    assert ProgramView.of(Program.parse(once)).to_text() == once


def test_parts_of_a_view() -> None:
    view = ProgramView.of(Program.parse(AWKWARD))
    assert view.params == ("net", "x", "n") and view.signature == "net, x, n=3, *rest, **named"
    assert (view.returns.kind, view.returns.keys) == ("dict", ('"a"', '"b"'))
    assert view.decorators == ("torch.no_grad()",) and view.build2 is not None
    assert "# what the helper is for\ndef helper" in view.prelude and "__main__" in view.tail
    assert view.build_returns.items == ("Net()", "mk(2, 3)", "len(text)") and view.inputs == ()
    assert view.normalise().inputs == ("net", "x", "n")


def test_a_program_made_of_classes_is_refused() -> None:
    text = "import torch\nfn = torch.nn.ReLU()\ndef build_inputs():\n    return (torch.ones(3),)\n"
    with pytest.raises(ViewError, match="`fn` is not a plain function"):
        ProgramView.of(Program.parse(text, "relu.py"))


def test_to_program_names_parents_and_engine() -> None:
    child = ProgramView.of(PROGRAMS["alias"]).to_program(parents=["0123"], engine="mutate:x")
    assert child.meta == {"mode": "forward", "parents": ["0123"], "engine": "mutate:x"}


@pytest.mark.parametrize(
    ("text", "targets", "writes"),
    [
        ("b = torch.sin(a)", "b", ""),
        ("b = a.view(-1).add_(c)", "b", "a"),
        ("torch.relu_(a)", "", "a"),
        ("torch._foreach_add_([a, b], c)", "", "a b c"),
        ("b = torch.add(a, c, out=d)", "b", "d"),
        ("b = F.relu(a, inplace=True)", "b", "a"),
        ("b = torch.nn.GELU()(a)", "b", ""),
        ("b = torch.nn.ReLU(inplace=True)(a)", "b", "a"),
        ("a += b", "a", "a"),
        ("a[b > 0] = c", "", "a"),
        ("a.grad, b = c", "b", "a"),
        ("b = model(a)", "b", "a model"),
        ("b = torch.vmap(step)(a)", "b", "a step"),
        ("b, c = a.shape", "b c", ""),
        ("xs.append(a)", "", "xs"),
        ("b = [t.sin() for t in xs]", "b", ""),
        ("b = torch.func.functional_call", "b", ""),
        ("for k in range(3):\n    a.mul_(2)\n    b = a", "k a b", "a"),
    ],
)
def test_what_a_statement_binds_and_writes(text: str, targets: str, writes: str) -> None:
    statement = Statement.of(text)
    assert set(statement.targets) <= set(targets.split()) and statement.writes == set(writes.split())


def test_reads_are_the_free_names() -> None:
    statement = Statement.of("def step(t):\n    u = t + a\n    return [u for _ in b]")
    assert statement.targets == ("step",) and statement.reads == {"a", "b"}
    assert Statement.of("c = torch.cond(p, lambda t: t + a, lambda t: t, (b,))").reads == {"torch", "p", "a", "b"}


def test_random_statements_are_not_pure() -> None:
    assert Statement.of("b = a + 1").pure
    assert not Statement.of("b = torch.rand(3)").pure and Statement.of("b = F.dropout(a)").random


def test_edit_replaces_one_node_and_keeps_the_rest() -> None:
    statement = Statement.of("b = torch.sum(é,  dim = 1)  ")
    call = statement.value
    assert isinstance(call, ast.Call)
    assert statement.edit(call.keywords[0].value, "-1").text == "b = torch.sum(é,  dim = -1)  "
    assert statement.renamed({"é": "x", "torch": "t"}).text == "b = t.sum(x,  dim = 1)  "


def view_of(body: str, params: str = "x, y") -> ProgramView:
    build = f"def build_inputs():\n    return {', '.join('torch.ones(2)' for _ in params.split(','))},\n"
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return ProgramView.of(Program.parse(f"import torch\n{build}\ndef fn({params}):\n{lines}"))


def test_normal_form_names_every_call_in_order_of_evaluation() -> None:
    view = view_of("z = torch.sin(x.add_(1) + y.t()) * x.shape[0]\nreturn z.mean(-1)[0], (2**31 - 1) * y").normalise()
    assert [s.text for s in view.body] == [
        "a = x.add_(1)",
        "b = y.t()",
        "c = a + b",
        "d = torch.sin(c)",
        "z = d * x.shape[0]",
        "e = z.mean(-1)",
        "f = e[0]",
        "g = (2**31 - 1) * y",
    ]
    assert view.returns.items == ("f", "g")
    assert view.normalise() == view


def test_what_is_lazy_or_conditional_stays_whole() -> None:
    body = ["a = x.sin() if flag else y.cos()", "b = [t.sin().cos() for t in xs]", "c = f(lambda t: t.sin().cos())"]
    assert [s.text for s in view_of("\n".join([*body, "return a"])).normalise().body] == body


def test_dead_statements() -> None:
    view = view_of("a = x + 1\nb = a * 2\nc = torch.rand(3)\nd = y.view(-1)\nd.add_(1)\ne = x.sin()\nreturn a")
    # b and e are pure and unread; the generator, and a write that an input may see, are observed
    assert view.dead() == (1, 5)
    fresh = view_of("a = torch.ones(3)\nb = a.t()\nb.add_(1)\nc = torch.ones(2)\nc.add_(1)\nreturn a", "x")
    assert fresh.dead() == (3, 4)


def test_rename_and_fresh_names() -> None:
    view = view_of("a = x.sin()\nfor k in range(2):\n    a = a + (lambda t: t + x)(k)\nreturn {'a': a}")
    renamed = view.rename({"x": "p", "a": "q", "t": "u"})
    assert "a + (lambda u: u + p)" in renamed.to_text().replace("q", "a") and renamed.params == ("p", "y")
    assert renamed.returns.items == ("q",) and renamed.returns.keys == ("'a'",)
    names = view.fresh_names()
    assert [next(names) for _ in range(3)] == ["b", "c", "d"]


def test_tidy_is_the_formatters_style() -> None:
    text = "(a, b) = f('x', \"it's\", 2 ** 31 - 1, eps=1e-05)"
    assert tidy(ast.parse(text).body[0]) == 'a, b = f("x", "it\'s", 2**31 - 1, eps=1e-5)'


@settings(deadline=None)
@given(st.lists(st.from_regex(r"[a-z_]{1,12}=[a-z>-]{1,14}", fullmatch=True), max_size=12))
def test_long_lists_of_meta_are_filled_and_mean_the_same(features: list[str]) -> None:
    text = render_meta({"mode": "forward", "features": features})
    assert ast.literal_eval(text.removeprefix("META = ")) == {"mode": "forward", "features": features}
    assert max(map(len, text.splitlines())) <= WIDTH + 1
