"""Imports go one way. Parses the sources, so that no forgotten branch or lazy import slips through."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
#: All that the orchestrator may know of the harness: where it lies, its messages, its pure rendering of calls.
SHARED = {"harness", "harness.wire", "harness.catalogue.source"}


def _modules(package: str) -> dict[str, ast.Module]:
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    assert len(found) > 5
    return found


FUZZER, HARNESS = _modules("fuzzer"), _modules("harness")
KNOWN = set(FUZZER) | set(HARNESS)


def _imported(node: ast.AST) -> Iterator[str]:
    """Modules that one statement imports; ``from package import module`` names the module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide where they lead"
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            yield full if full in KNOWN else str(node.module)


def _everywhere(tree: ast.Module) -> set[str]:
    return {name for node in ast.walk(tree) for name in _imported(node)}


def _at_module_level(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, (ast.If, ast.Try)):
            handlers = [handler.body for handler in getattr(node, "handlers", [])]
            for block in (node.body, node.orelse, *handlers):
                yield from _at_module_level(block)
        yield from _imported(node)


@pytest.mark.parametrize("name", FUZZER)
def test_the_orchestrator_knows_torch_and_harness_only_by_the_wire(name: str) -> None:
    imported = _everywhere(FUZZER[name])
    assert not {module for module in imported if module.split(".")[0] == "torch"}
    assert {module for module in imported if module.split(".")[0] == "harness"} <= SHARED


@pytest.mark.parametrize("name", HARNESS)
def test_the_harness_knows_nothing_of_the_orchestrator(name: str) -> None:
    assert not {module for module in _everywhere(HARNESS[name]) if module.split(".")[0] in ("fuzzer", "tests")}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_nothing_unpickles(name: str) -> None:
    tree = {**FUZZER, **HARNESS}[name]
    banned = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal"}
    assert not {module for module in _everywhere(tree) if module.split(".")[0] in banned}
    if name.startswith("fuzzer"):  # torch.load and torch.save pickle
        assert not any(ast.unparse(node) in ("torch.load", "torch.save") for node in ast.walk(tree))


@pytest.mark.parametrize("modules", [FUZZER, HARNESS], ids=["fuzzer", "harness"])
def test_imports_have_no_cycle(modules: dict[str, ast.Module]) -> None:
    edges = {name: set(_at_module_level(tree.body)) & set(modules) - {name} for name, tree in modules.items()}
    done: set[str] = set()
    path: list[str] = []

    def visit(name: str) -> None:
        if name in path:
            raise AssertionError(" → ".join([*path[path.index(name) :], name]))
        if name not in done:
            path.append(name)
            for other in sorted(edges[name]):
                visit(other)
            path.pop()
            done.add(name)

    for name in sorted(edges):
        visit(name)
    assert done == set(modules)
