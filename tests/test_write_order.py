import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.write_order import overwritten


def fn(*lines):
    return "def fn(x, i, s):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize("lines, told", [
    (("y = x.clone()", "x.zero_()", "return y"), "`x` is written (x.zero_()) after `y` was made from it"),
    (("y = torch.slice_scatter(x, s)", "x.fill_(2)", "return y, x"), "after `y` was made"),
    (("y = x.view(torch.int32) * 2", "x[:, 2:5] = 2", "return y"), "x[:, 2:5] = 2"),
    (("v = x.t()", "y = v + 1", "x.mul_(2)", "return y"), "after `y` was made"),
    (("y = x + 1", "v = x[1:]", "v.zero_()", "return y"), "`v` is written"),
    (("y = x + 1", "torch.add(s, 1, out=x)", "return y"), "torch.add(s, 1, out=x)"),
    (("y = x + 1", "torch.relu_(x)", "return y"), "torch.relu_(x)"),
    (("x[1:] = x[:-1]", "return x"), "read and written by one statement"),
    (("x[i] += x[i]", "return x"), "read and written by one statement"),
    (("x[:, 1:].copy_(x[:, :-1].clone())", "return x"), "read and written by one statement"),
    (("for _ in range(2):", "    y = x * 2", "    x.add_(1)", "return y"), "after `y` was made"),
])  # fmt: skip
def test_a_late_write_is_named(lines, told):
    assert told in overwritten(fn(*lines))


@pytest.mark.parametrize("lines", [
    ("x.tan_()", "return x.t().argmin()"),  # written before anything was read
    ("y = x.clone()", "x.zero_()", "return x"),  # what was read is not used
    ("y = x.view(-1)", "x.zero_()", "return y"),  # an alias: it is meant to change
    ("y = x.clone()", "y.zero_()", "return x, y"),
    ("x += x * 2", "return x"),
    ("y = x + 1", "x.requires_grad_()", "return y"),
    ("y = x + 1", "x = s", "x.zero_()", "return y"),  # another tensor under the old name
    ("return x",),
])  # fmt: skip
def test_other_orders_are_not(lines):
    assert not overwritten(fn(*lines))


def test_an_indexed_copy_is_no_alias():
    assert overwritten(fn("y = x[i]", "x.zero_()", "return y"))


@given(st.text(max_size=60))
def test_any_text_has_an_answer(text):
    assert isinstance(overwritten(text), str)
    assert isinstance(overwritten(f"def fn(x):\n    {text}\n"), str)
