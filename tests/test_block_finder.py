"""Which functions a campaign's blocks are sought in, and when; the disassembly has tests of its own."""

from pathlib import Path

from fuzzer import block_finder
from fuzzer.block_finder import BlockFinder
from fuzzer.coverage_blocks import Blocks


def test_every_function_is_disassembled_once(monkeypatch) -> None:
    asked = []

    def find_blocks(path: Path, functions: set[int]) -> Blocks:
        asked.append((path.name, sorted(functions)))
        return Blocks({function: (function + 4, function + 8) for function in functions})

    monkeypatch.setattr(block_finder, "find_blocks", find_blocks)
    finder = BlockFinder(lambda name: None if name == "gone" else Path(f"/{name}.so"))
    finder.take({"native": {"libtorch_cpu": [100, 200], "gone": [1]}, "python": {"torch/a.py": [1]}})
    assert finder.waiting == 3
    assert finder.batch() == {"libtorch_cpu": [104, 108, 204, 208]}
    finder.take({"native": {"libtorch_cpu": [100, 104, 300]}})  # a block that was reached is no function
    assert finder.waiting == 1 and finder.batch() == {"libtorch_cpu": [304, 308]}
    assert asked == [("libtorch_cpu.so", [100, 200]), ("libtorch_cpu.so", [300])]
    assert finder.waiting == 0 and finder.batch() == {}
