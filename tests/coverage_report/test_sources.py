from __future__ import annotations

from pathlib import Path

from fuzzer.coverage_report.sources import COMPILER_PACKAGES, read_registrations, read_source, read_sources
from fuzzer.coverage_report.target_files import TargetFiles
from harness.coverage import python_lines
from harness.coverage.line_table import LineTable

TEXT = '''"""Words."""
import os


@register_lowering(aten.sin, broadcast=True)
def sin(x):
    """Words."""
    y = [
        item for item in x
    ]
    return y


@register_lowering([aten.alias, aten.detach])
def alias(x): return x


class Pass:
    size = 3

    @property
    def run(self):
        def inner(z):
            return lambda: (
                z
            )
        return inner


@register_graph_pattern(CallFunction(aten.mm), pass_dict=patterns)
def fold(match):
    pass
'''


def target(folder: Path) -> TargetFiles:
    path = folder / "torch" / "_inductor" / "lowering.py"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    (path.parent / "template.py").write_text("{% if x %}")
    (folder / "torch" / "_guards.py").write_text("def guard():\n    return 1\n")
    (folder / "torch" / "nn.py").write_text("def conv():\n    return 1\n")
    return TargetFiles(folder / "torch", "2.13.0")


def test_functions_and_lines_of_the_measured_packages(tmp_path: Path) -> None:
    sources = read_sources(target(tmp_path))
    assert sorted(sources) == ["torch/_guards.py", "torch/_inductor/lowering.py"]
    functions = {item.name: item for item in sources["torch/_inductor/lowering.py"].functions}
    assert sorted(functions) == ["Pass.run", "Pass.run.<locals>.inner", "alias", "fold", "sin"]
    assert functions["sin"].first == 5 and functions["sin"].lines <= set(range(8, 12))
    assert functions["sin"].lines >= {9, 11}  # the comprehension's line is the function's
    assert functions["alias"].lines == {15}
    assert functions["Pass.run.<locals>.inner"].lines >= {24}
    assert not list(tmp_path.rglob("__pycache__"))


def test_lines_are_those_that_the_harness_measures() -> None:
    assert tuple(COMPILER_PACKAGES) == python_lines.COMPILER_PACKAGES
    table = LineTable(["json"])
    for file, count in table.total.items():
        path = next(path for path in table.base if path.endswith(file))
        source = read_source(Path(path), file)
        assert source is not None and len(source.executable) == count


def test_registrations_name_what_decorators_register(tmp_path: Path) -> None:
    found = {(item.kind, item.names, item.first) for item in read_registrations(target(tmp_path))}
    assert found == {
        ("lowering", ("aten.sin",), 5),
        ("lowering", ("aten.alias", "aten.detach"), 14),
        ("fx pass", ("fold",), 30),
    }
