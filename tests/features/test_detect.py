"""From program and observation to feature ids; and every feature that ships can be realised by something."""

from __future__ import annotations

from test_detect_run import family_of, op, tensor
from test_detect_text import BODIES, CONFIGS, FUNCTION, MODULE, program

from fuzzer.features.detect import default_space, detect
from fuzzer.observation import Observation
from fuzzer.program import MODES

PLAIN = program("return x + 1")


def observe(*ops: dict, **raw) -> Observation:
    return Observation.from_map({"ops": list(ops), **raw})


def test_text_and_run_join() -> None:
    text = program("return x.t().argmax()", "{'mode': 'dynamic'}")
    transposed = tensor(4, 3, dtype="uint8", stride=[1, 4])
    seen = observe(
        op("t", [-1], [tensor(3, 4, dtype="uint8")], [transposed]),
        op("argmax", [0], [transposed], [tensor(dtype="int64")]),
        values=[["negative"]],
    )
    assert detect(text, seen, family_of) == {
        "mode=dynamic", "op_family=view", "op_family=index_reduction", "adjacency=view>index_reduction",
        "dtype=uint8", "dtype=int64", "shape=odd", "shape=scalar", "layout=contiguous", "layout=transposed",
        "values=negative", "mechanism=strided_index_reduction",
    }  # fmt: skip


def test_without_a_run_the_text_speaks_for_dtypes_and_families() -> None:
    text = program("return x.to(torch.int8).cumsum_(0)")
    families = {"aten.cumsum": "scan", "aten.randn": "random"}
    assert detect(text, None, lambda name: families.get(name, "")) == {
        "mode=forward", "dtype=int8", "dtype=float32", "mutation=inplace_method", "topology=in_place",
        "op_family=scan",
    }  # fmt: skip
    ran = detect(text, observe(op("relu", [-1], [tensor(2)])), family_of)
    assert "dtype=int8" not in ran and "dtype=float32" in ran  # written, but it never ran


def test_a_view_written_around_a_graph_break() -> None:
    seen = observe(op("select", [-1]), op("add_", [0]))
    broken = detect(program("v = x[0]\ntorch._dynamo.graph_break()\nv.add_(1)\nreturn x"), seen, family_of)
    assert "mechanism=view_mutation_break" in broken
    assert "mechanism=view_mutation_break" not in detect(PLAIN, seen, family_of)


def _everything() -> frozenset[str]:
    """Features realised by the small programs of these tests and by facts that stand for one each."""
    space = default_space()
    found = set()
    for body in BODIES.values():
        found |= detect(program(body), None, family_of)
    for meta in [*CONFIGS.values(), *(f"{{'mode': {mode!r}}}" for mode in MODES), "{'random': True}"]:
        found |= detect(program("return x", meta), None, family_of)
    number = "def build_inputs2():\n    return ()\n\n\ndef build_inputs():\n    return 1.0, 2\n"
    for before in (MODULE, FUNCTION, number):
        found |= detect(program("return x", before=before), None, family_of)

    def see(*ops: dict, family=family_of, **raw) -> None:
        found.update(detect(PLAIN, observe(*ops, **raw), family))

    for family in space.group_of | dict.fromkeys(("linalg", "fft", "quantize", "rnn")):
        see(op("any", [-1]), family=lambda name, family=family: family)
    for feature in space.dimensions["adjacency"].values:
        left, right = feature.value.split(">")
        names = {"inplace": "first_"}.get(left, "first"), {"inplace": "second_"}.get(right, "second")
        families = {name: next(iter(space.families_of_group(group)), "") for name, group in zip(names, (left, right))}
        see(op(names[0], [-1]), op(names[1], [0]), family=lambda name, table=families: table[name.split(".")[1]])
    for feature in space.dimensions["dtype"].values:
        see(op("relu", [-1], [tensor(2, dtype=feature.arguments[0])]))
    for left, right in [("int8", "float32"), ("float16", "float32"), ("float32", "float64"), ("int8", "int64"),
                        ("bool", "float32"), ("complex64", "float32")]:  # fmt: skip
        see(op("add", [-1, -2], [tensor(2, dtype=left), tensor(2, dtype=right)]))
    for left, right in [("float32", "float16"), ("float16", "float32"), ("float32", "uint8"), ("int8", "float32"),
                        ("int64", "bool"), ("int64", "int8")]:  # fmt: skip
        see(op("_to_copy", [-1], [tensor(2, dtype=left)], [tensor(2, dtype=right)]), op("_to_copy", [0]))
    for shape in [(), (0, 2), (1, 8), (3, 7), (2, 9), (4, 2048), (512, 4), (2, 2, 2, 2, 2)]:
        see(op("relu", [-1], [tensor(*shape)]))
    for stride, offset in [([4, 1], 3), ([1, 3], 0), ([0, 1], 0), ([8, 2], 0), ([6, 1], 0), ([1, 1], 0)]:
        see(op("relu", [-1], [tensor(3, 4, stride=stride, offset=offset)]))
    see(op("relu", [-1], [tensor(2, 3, 4, 5, stride=[60, 1, 15, 3])]))
    for left, right in [((), (3,)), ((3,), (2, 3)), ((3, 1), (3, 4)), ((3, 1), (1, 4))]:
        see(op("add", [-1, -2], [tensor(*left), tensor(*right)]))
    see(values=[["nan", "inf", "zero", "negative", "huge", "denormal", "extreme", "ties"]])
    see(*[op("relu", [index - 1]) for index in range(12)])
    see(op("relu", [-1]), op("mul", [0]), op("pow", [0]), op("add", [1, 2]), op("add", [3, 0]), op("add", [4, -1]))
    see(op("topk", [-1], outputs=[tensor(2), tensor(2)]))
    see(aliases={"eager": [["in[0]", "out[0]"]]}, leaves=[{"path": "out[0]"}, {"path": "out[1]"}])
    see(op("select", [-1]), op("add_", [0], [tensor(3, 4, stride=[0, 1])]))
    see(op("argmax", [-1], [tensor(3, 4, stride=[1, 3])]), op("sum", [-1], [tensor()]))
    see(op("sum", [-1], [tensor(0, 3)]), op("pow", [-1]), op("pow", [1]), op("clone", [-1]), op("zero_", [3]))
    see(op("convolution", [-1, -2], [tensor(1, 3, 8, 8), tensor(4, 3, 2, 2, stride=[1, 4, 24, 12])]))
    see(op("_to_copy", [-1]), op("eq", [0, -2]))
    seen = observe(op("select", [-1]), op("add_", [0]))
    return frozenset(found | detect(program("torch._dynamo.graph_break()\nreturn x"), seen, family_of))


def test_every_feature_that_ships_can_be_realised() -> None:
    assert set(default_space().features) - _everything() == set()
