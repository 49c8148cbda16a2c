from fuzzer.program import Program
from fuzzer.variants import CASTS, DYNAMIC, RANDOM, variants_of

TEXT = """import torch

META = {"mode": "forward", "compile": {"fullgraph": True}}


def build_inputs():
    return (torch.ones(2),)


def fn(a):
    return a + 1
"""


def test_every_backend_and_three_options():
    found = variants_of(Program.parse(TEXT))
    assert list(found) == ["dynamo", "aot_eager", "decomp", "inductor", CASTS, RANDOM, DYNAMIC]
    assert found["decomp"][1]["backend"] == "aot_eager_decomp_partition"
    assert found[CASTS][1]["inductor_config"] == {"emulate_precision_casts": True}
    assert found[DYNAMIC][0].meta["compile"] == {"fullgraph": True, "dynamic": True}
    assert all(program.text == TEXT for name, (program, _options) in found.items() if name != DYNAMIC)


def test_a_program_that_cannot_be_viewed_has_no_dynamic_variant():
    found = variants_of(Program.parse(TEXT.split("def fn")[0] + "fn = torch.sin\n"))
    assert DYNAMIC not in found and len(found) == 6
