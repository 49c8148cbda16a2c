"""Where functions stand, and what they enclose; and the whole script on the torch at hand."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest

from fuzzer.knowledge.changes import Changes
from fuzzer.knowledge.inventory import take
from harness.inventory import places

HERE = Path(__file__).parent
FILE = Path(__file__).name


def plain(x):
    return x


def made(function, kind="bool"):
    def inner(x):
        return function(x), kind

    return inner


def decorated(function):
    @functools.wraps(function)
    def outer(*args):
        return function(*args)

    return outer


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (plain, {"plain"}),
        (made(plain), {"made.<locals>.inner", "plain", "kind='bool'"}),
        (made(made(plain, "int8")), {"made.<locals>.inner", "plain", "kind='bool'", "kind='int8'"}),
        (decorated(plain), {"plain"}),
        (functools.partial(plain, 1), {"plain"}),
        (made(len), {"made.<locals>.inner", "kind='bool'"}),
    ],
)
def test_what_a_function_consists_of(function, expected) -> None:
    found = set(places(function, HERE))
    assert {where for _, where in found} == expected
    assert {path for path, where in found if "=" not in where} == {FILE}


def test_what_stands_elsewhere_is_left_out(tmp_path: Path) -> None:
    assert set(places(plain, tmp_path)) == set()


@pytest.mark.torch
def test_the_inventory_of_a_torch_is_full_and_the_same_twice() -> None:
    one = take(sys.executable)
    assert len(one.schemas) > 3000 and len(one.lowerings) > 1000 and len(one.decompositions) > 300
    assert len(one.fallbacks) > 100 and len(one.functions) > 5000 and "_inductor/lowering.py" in one.files
    assert not Changes.between(one, take(sys.executable)).packets
