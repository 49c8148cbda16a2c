import ast

import pytest

from fuzzer.reduce.recipe import read_recipe


def read(text):
    return read_recipe(ast.parse(text, mode="eval").body)


@pytest.mark.parametrize("text, shape, dtype, layout", [
    ("torch.randn(4, 3)", (4, 3), "float32", False),
    ("torch.randn((4, 3)).t()", (3, 4), "float32", True),
    ("torch.randint(0, 3, (4, 3), dtype=torch.uint8)[1:]", (3, 3), "uint8", True),
    ("torch.randn(3, 6)[..., 1:5:2]", (3, 2), "float32", True),
    ("torch.randn(3, 6)[:, None, 0]", (3, 1), "float32", True),
    ("torch.ones(1, 3).expand(4, -1)", (4, 3), "float32", True),
    ("torch.arange(12).reshape(3, -1).half()", (3, 4), "float16", False),
    ("torch.tensor([[1.0, 2.0]], dtype=torch.float64)", (1, 2), "float64", False),
    ("torch.zeros(())", (), "float32", False),
    ("torch.full((2, 2), True)", (2, 2), "bool", False),
    ("torch.randn(2, 3, 4).permute(2, 0, 1)", (4, 2, 3), "float32", True),
    ("torch.randn(40) + 1e5", (40,), "float32", False),
    ("torch.randint(0, 3, (4,)) / 2", (4,), "float32", False),
    ("torch.randn(2, 3).to(torch.bfloat16).requires_grad_()", (2, 3), "bfloat16", False),
])  # fmt: skip
def test_shape_and_dtype_are_read(text, shape, dtype, layout):
    recipe = read(text)
    assert (recipe.shape, recipe.dtype, recipe.layout) == (shape, dtype, layout)


@pytest.mark.parametrize("text", [
    "torch.nn.Linear(3, 4)", "x", "torch.tensor([[1], [2, 3]])", "torch.randn(n)", "torch.randn(3)[x]",
    "torch.randn(3, 4).frobnicate()", "torch.randn(3)[0, 0]",
])  # fmt: skip
def test_what_is_no_recipe_is_left_alone(text):
    assert read(text) is None


@pytest.mark.parametrize("text, factory, expected", [
    ("torch.randn(4, 3).t()", "randn", "torch.randn(3, 4)"),
    ("torch.zeros(2, 2, dtype=torch.int8)", "arange", "torch.arange(4, dtype=torch.int8).reshape(2, 2)"),
    ("torch.randn(3, requires_grad=True)[1:]", "ones", "torch.ones(2).requires_grad_()"),
    ("torch.randn(())", "ones", "torch.ones(())"),
    ("torch.zeros(3, dtype=torch.int64)", "randn", ""),
    ("torch.zeros(3, dtype=torch.bool)", "arange", ""),
])  # fmt: skip
def test_a_plainer_text_has_the_same_facts(text, factory, expected):
    recipe = read(text).filled(factory)
    assert recipe.text() == expected
    if expected:
        again = read(expected)
        assert (again.shape, again.dtype, again.gradient) == (recipe.shape, recipe.dtype, recipe.gradient)
