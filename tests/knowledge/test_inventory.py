"""Sources are compared by what they say, not by how they are written; implementations by the functions behind them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fuzzer.exits import Exit, UserError
from fuzzer.knowledge.inventory import FOLDERS, function_hashes, of_names, take

SOURCE = '''"""A module."""
import math


def outer(x):
    """What it does."""
    def inner(y):
        return y + 1  # a comment
    return inner(x)


class Thing:
    def method(self):
        return math.pi
'''


def test_comments_docstrings_and_places_do_not_count() -> None:
    other = "\n\n# moved\n" + SOURCE.replace('"""What it does."""', '"""Said otherwise."""').replace("# a comment", "")
    assert function_hashes(SOURCE) == function_hashes(other)
    assert set(function_hashes(SOURCE)) == {"", "outer", "outer.<locals>.inner", "Thing.method"}


def test_a_changed_function_changes_what_encloses_it_and_nothing_else() -> None:
    old, new = function_hashes(SOURCE), function_hashes(SOURCE.replace("y + 1", "y + 2"))
    assert {name for name in old if old[name] != new[name]} == {"", "outer", "outer.<locals>.inner"}


def test_what_cannot_be_parsed_is_compared_by_lines() -> None:
    broken = "def f(:\n    # one\n    pass\n"
    assert set(function_hashes(broken)) == {""}
    assert function_hashes(broken) == function_hashes(broken.replace("    # one\n", ""))


def inventory(root: Path, source: str, **tables: object):
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True)
    (root / "_inductor" / "lowering.py").write_text(source)
    names = {"torch": "2.0", "root": str(root), "schemas": {}, "decompositions": {}, "fallbacks": [], "lowerings": {}}
    return of_names({**names, **tables})


def test_an_implementation_is_its_functions_and_the_values_that_they_enclose(tmp_path: Path) -> None:
    def lowered(name: str, source: str, value: str = "dtype=torch.bool"):
        places = [["_inductor/lowering.py", "outer"], ["", value]]
        return inventory(tmp_path / name, source, lowerings={"aten.x": places}).lowerings["aten.x"]

    plain = lowered("a", SOURCE)
    assert plain == lowered("b", SOURCE + "\n\ndef more():\n    pass\n")
    assert plain != lowered("c", SOURCE.replace("y + 1", "y + 2"))
    assert plain != lowered("d", SOURCE, "dtype=torch.int8")


def test_an_interpreter_without_torch_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "python").write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'raise SystemExit(\"No module named torch\")'\n"
    )
    (tmp_path / "python").chmod(0o755)
    for name, words in (("python", "No module named torch"), ("nothing", "cannot be run")):
        with pytest.raises(UserError, match=words) as caught:
            take(str(tmp_path / name))
        assert caught.value.exit_code is Exit.TARGET
