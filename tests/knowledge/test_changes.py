"""Two inventories, what differs, and which arms that raises."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzer.exits import UserError
from fuzzer.knowledge.changes import Changes, Part
from fuzzer.knowledge.inventory import Inventory
from fuzzer.knowledge.operators import Operators

OLD = Inventory(
    "2.0", {"aten.add.Tensor": "a", "aten.gone.default": "g"}, {"aten.cumsum": "1", "aten.mm": "2"}, {"aten.lerp": "3"},
    ["aten.cummax"], {"_inductor/x.py": "5"}, {"_inductor/x.py:f": "6"},
)  # fmt: skip
NEW = Inventory(
    "2.1", {"aten.add.Tensor": "b", "aten.fresh.default": "n"}, {"aten.cumsum": "9", "aten.mm": "2"},
    {"aten.lerp": "3"}, [], {"_inductor/x.py": "7"}, {"_inductor/x.py:f": "6", "_inductor/x.py:g": "8"},
)  # fmt: skip


@pytest.fixture(scope="module")
def operators() -> Operators:
    return Operators.load_extract()


def test_what_differs() -> None:
    changes = Changes.between(OLD, NEW)
    assert changes.schemas == Part(("aten.fresh.default",), ("aten.gone.default",), ("aten.add.Tensor",))
    assert changes.lowerings == Part(changed=("aten.cumsum",)) and not changes.decompositions
    assert changes.fallbacks.removed == ("aten.cummax",) and changes.functions.here == ("_inductor/x.py:g",)
    assert changes.packets == {"aten.add", "aten.fresh", "aten.cumsum", "aten.cummax"}
    assert not any(len(part) for part in Changes.between(OLD, OLD).parts.values())


def test_arms_of_what_changed_are_raised_and_no_others(operators: Operators) -> None:
    factors = Changes.between(OLD, NEW).factors(operators)
    assert {"cumsum", "cummax", "add"} <= set(factors) and "mm" not in factors
    assert 1.0 < factors["scan"] < factors["cumsum"], "a family as far as its operators changed"
    assert not {"mm", "fft", "sort"} & set(factors) and all(factor > 1.0 for factor in factors.values())
    assert Changes.between(OLD, OLD).factors(operators) == {}


def test_written_and_read_back(tmp_path: Path) -> None:
    changes = Changes.between(OLD, NEW)
    changes.write(tmp_path / "c.json")
    assert Changes.read(tmp_path / "c.json") == changes


@pytest.mark.parametrize("text", ["", "{}", '{"format": 9}', '{"format": 1, "old": "1"}', "[]"])
def test_anything_else_is_refused_with_the_remedy(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(UserError, match="eddy knowledge diff"):
        Changes.read(path)
    with pytest.raises(UserError, match="cannot be read"):
        Changes.read(tmp_path / "none")
