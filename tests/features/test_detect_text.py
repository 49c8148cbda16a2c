"""What the syntax tree says, one small program per group."""

from __future__ import annotations

import textwrap

import pytest

from fuzzer.features.detect_text import TEXT_DETECTORS, read_text
from fuzzer.program import Program


def program(body: str, meta: str = "{}", before: str = "") -> Program:
    lines = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return Program.parse(
        f"import torch\nMETA = {meta}\n{before}\ndef build_inputs():\n    return (torch.randn(3),)\n\n"
        f"def fn(x):\n{lines}\n"
    )


#: (group, word) → a body of fn that has it.
BODIES = {
    ("control", "cond"): "return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))",
    ("control", "while_loop"): "return torch._higher_order_ops.while_loop(c, b, (x,))",
    ("control", "checkpoint"): "return torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False)",
    ("control", "if_data"): "if x.sum() > 0:\n    x = x + 1\nreturn x",
    ("control", "if_static"): "if x.shape[0] > 2:\n    x = x + 1\nreturn x",
    ("control", "for_loop"): "for i in range(3):\n    x = x + i\nreturn x",
    ("control", "while"): "i = 0\nwhile i < 3:\n    i += 1\nreturn x",
    ("control", "try"): "try:\n    return x + 1\nexcept ValueError:\n    return x",
    ("control", "early_return"): "if x.dim() > 1:\n    return x\nreturn x + 1",
    ("control", "with"): "with torch.no_grad():\n    return x + 1",
    ("context", "no_grad"): "with torch.no_grad():\n    return x + 1",
    ("context", "inference_mode"): "with torch.inference_mode():\n    return x + 1",
    ("context", "autocast"): "with torch.autocast('cpu', torch.bfloat16):\n    return x @ x",
    ("python", "closure"): "def g(y):\n    return y + x\nreturn g(x)",
    ("python", "lambda"): "f = lambda y: y + 1\nreturn f(x)",
    ("python", "generator"): "def g():\n    yield x\nreturn sum(g())",
    ("python", "container"): "from collections import OrderedDict\nd = OrderedDict(a=x)\nreturn d['a']",
    ("python", "dict_result"): "return {'a': x}",
    ("python", "list_mutation"): "ys = []\nys.append(x)\nreturn ys[0]",
    ("python", "global_state"): "global n\nn = 1\nreturn x",
    ("python", "attribute_mutation"): "x.tag = 1\nreturn x",
    ("python", "custom_op"): "torch.library.custom_op('a::b', mutates_args=())\nreturn x",
    ("python", "hook"): "x.register_hook(lambda g: g * 2)\nreturn x",
    ("python", "transform"): "return torch.func.vmap(torch.sin)(x)",
    ("python", "item"): "return x * x.sum().item()",
    ("python", "graph_break"): "torch._dynamo.graph_break()\nreturn x",
    ("python", "shape_arithmetic"): "return x.reshape(x.shape[0] // 1)",
    ("python", "detach"): "return x.detach() + x",
    ("mutation", "inplace_method"): "return x.add_(1)",
    ("mutation", "setitem"): "x[0] = 1\nreturn x",
    ("mutation", "masked_setitem"): "x[x > 0] = 1\nreturn x",
    ("mutation", "augmented"): "x += 1\nreturn x",
    ("mutation", "out_argument"): "y = torch.empty(3)\ntorch.add(x, x, out=y)\nreturn y",
    ("boundary", "negative_dim"): "return torch.softmax(x, dim=-1)",
    ("boundary", "far_dim"): "return x.cumsum(-46)",
    ("boundary", "negative_list"): "return torch.nn.functional.max_pool2d(x, [-2, 2])",
    ("boundary", "zero_list"): "return torch.nn.functional.adaptive_avg_pool2d(x, [0, 4])",
    ("boundary", "tuple_dim"): "return x.sum((0, 1))",
    ("boundary", "int64_extreme"): "return x[: 9223372036854775807]",
    ("boundary", "int32_extreme"): "return torch.nn.functional.avg_pool2d(x, 4294967297)",
    ("boundary", "float_extreme"): "return x.clamp(max=float('inf'))",
    ("boundary", "zero_size"): "return torch.zeros(0, 3) + 1",
    ("boundary", "zero_argument"): "return torch.tril(x, diagonal=0)",
    ("boundary", "slice_step"): "return x[::2]",
    ("boundary", "slice_bound"): "return x[-2:]",
    ("boundary", "negative_index"): "return x[-1]",
    ("boundary", "none_index"): "return x[:, None]",
    ("boundary", "boolean_mask"): "return x[x > 0]",
    ("boundary", "ceil_mode"): "return torch.max_pool2d(x, 2, ceil_mode=True)",
    ("boundary", "stride"): "return torch.max_pool2d(x, 2, stride=(2, 2))",
    ("boundary", "dilation"): "return torch.max_pool2d(x, 2, dilation=2)",
    ("boundary", "negative_padding"): "return torch.nn.functional.pad(x, (-1, 1))",
    ("boundary", "asymmetric_padding"): "return torch.conv2d(x, x, padding=(1, 2))",
    ("boundary", "keepdim"): "return x.sum(0, keepdim=True)",
    ("boundary", "alpha"): "return torch.add(x, x, alpha=3)",
    ("boundary", "rounding_mode"): "return torch.div(x, x, rounding_mode='floor')",
    ("text_cast", "float16"): "return x.to(torch.half) + x.half()",
    ("text_mechanism", "item_fill"): "y = torch.zeros(3)\ny.fill_(x.sum().item())\nreturn y",
}
MODULE = "class M(torch.nn.Module):\n    def forward(self, x):\n        self.buf.add_(1)\n        return x\n"
FUNCTION = "class F(torch.autograd.Function):\n    pass\n"


@pytest.mark.parametrize("group, word", BODIES, ids=lambda part: str(part))
def test_bodies(group: str, word: str) -> None:
    assert word in read_text(program(BODIES[group, word]))[group]


def test_a_plain_program_has_nothing() -> None:
    words = read_text(program("return x + 1"))
    assert {group: found for group, found in words.items() if found} == {"mode": {"forward"}}


def test_zeros_that_are_no_sizes() -> None:
    words = read_text(program("y = torch.randint(0, 5, (3,)) + torch.full((3,), 0)\nreturn y.sum(0)"))
    assert words["boundary"] == set()


def test_numbers_among_the_inputs() -> None:
    head = "import torch\n\nMETA = {}\n\n\ndef build_inputs():\n"
    tail = "\n\n\ndef fn(x, k):\n    return x * k\n"
    for build, has in (
        ("    return torch.ones(2), -0.5", True),
        ("    k = -0.5\n    return torch.ones(2), k", True),
        ("    k = torch.ones(2)\n    return torch.ones(2), k", False),
    ):
        words = read_text(Program.parse(head + build + tail))
        assert ("number_input" in words["python"]) is has, build


def test_classes() -> None:
    assert {"module", "buffer_mutation"} <= read_text(program("return x", before=MODULE))["python"]
    assert "custom_autograd" in read_text(program("return x", before=FUNCTION))["python"]


def test_second_call() -> None:
    text = "def build_inputs2():\n    return ()\n"
    assert "second_call" in read_text(program("return x", before=text))["context"]


CONFIGS = {
    "threads2": "{'inductor_config': {'cpp.threads': 2}}",
    "scalar": "{'inductor_config': {'cpp': {'simdlen': 0}}}",
    "vector256": "{'inductor_config': {'cpp.simdlen': 256}}",
    "freezing": "{'inductor_config': {'freezing': True}}",
    "cpp_wrapper": "{'inductor_config': {'cpp_wrapper': True}}",
    "no_epilogue_fusion": "{'inductor_config': {'epilogue_fusion': False}}",
    "no_inplace_buffers": "{'inductor_config': {'inplace_buffers': False}}",
    "small_fusion": "{'inductor_config': {'max_fusion_size': 2}}",
    "aggressive_fusion": "{'inductor_config': {'aggressive_fusion': True}}",
    "no_pattern_matcher": "{'inductor_config': {'pattern_matcher': False}}",
    "free_output_stride": "{'inductor_config': {'keep_output_stride': False}}",
    "emulate_casts": "{'inductor_config': {'emulate_precision_casts': True}}",
    "fullgraph": "{'compile': {'fullgraph': True}}",
    "compile_dynamic": "{'compile': {'dynamic': True}}",
    "static_shapes": "{'compile': {'dynamic': False}}",
    "capture_scalars": "{'dynamo_config': {'capture_scalar_outputs': True}}",
    "capture_dynamic_shapes": "{'dynamo_config': {'capture_dynamic_output_shape_ops': True}}",
}


@pytest.mark.parametrize("word", CONFIGS)
def test_config(word: str) -> None:
    assert read_text(program("return x", CONFIGS[word]))["config"] == {word}


def test_an_option_at_its_default_is_no_feature() -> None:
    meta = "{'inductor_config': {'cpp.threads': 1, 'freezing': False, 'epilogue_fusion': True}, 'compile': {}}"
    assert read_text(program("return x", meta))["config"] == set()


@pytest.mark.parametrize("body", BODIES.values())
def test_every_word_is_in_the_vocabulary(body: str) -> None:
    for group, found in read_text(program(body)).items():
        assert found <= TEXT_DETECTORS[group]
