"""Small test files of our own, one a habit of test suites, for the importer's tests."""

COMPARED = """
import functools
import unittest
import torch
from torch import nn
from torch._dynamo.testing import rand_strided
from torch._inductor import config

aten = torch.ops.aten
GPU_TYPE = "cuda"
SCALE = 3


def scaled(x):
    return x * SCALE


class AddOne(nn.Module):
    def forward(self, x):
        return x + 1


class CommonTemplate:
    width = 8

    def shift(self, x):
        return x + self.width

    def test_plain(self):
        def fn(a, b):
            return aten.add(a, b), a @ b

        self.common(fn, (torch.randn(4, 4), rand_strided((4, 4), (1, 4), device=self.device)))

    def test_helpers(self):
        def fn(x):
            return scaled(self.shift(x))

        self.common(fn, [torch.ones(2, device=GPU_TYPE)])
        self.assertEqual(fn(torch.ones(2)), None)

    def test_module(self):
        self.common(nn.Sequential(nn.Linear(8, 16), AddOne()).to(self.device), (torch.randn(2, 8),))

    def test_captured(self):
        weight = torch.randn(4, requires_grad=True)
        dim = 0

        def inner(x):
            return x * weight

        def f(x):
            return inner(x).sum(dim)

        self.common(f, (torch.randn(3, 4),), check_gradient=True)

    def test_loop(self):
        for dtype in [torch.float32, torch.int64]:
            if not self.is_dtype_supported(dtype):
                continue
            self.common(lambda x: x + x, (torch.ones(5, dtype=dtype),))

    @config.patch({"max_autotune": True, "triton.cudagraphs": False})
    def test_options(self):
        with torch.no_grad():
            self.common(functools.partial(torch.sum, dim=0), (torch.randn(3, 3),))

    def test_gpu_only(self):
        if self.device == "cpu":
            raise unittest.SkipTest("needs a GPU")
        self.common(lambda x: x, (torch.ones(1),))

    def test_error(self):
        with self.assertRaises(RuntimeError):
            self.common(lambda x: x @ x, (torch.ones(1, 2),))

    def test_nothing(self):
        self.assertEqual(1, 1)

    def test_elsewhere(self):
        self.common(lambda x: unheard_of(x), (torch.ones(1),))
"""

COMPILED = """
import pytest
import torch
import torch._dynamo as dynamo


@pytest.fixture
def model():
    m = torch.nn.Linear(4, 4)
    return m.eval()


@pytest.mark.parametrize("shape, dim", [((2, 3), 0), pytest.param((4, 5), 1, id="wide")])
def test_parametrized(shape, dim):
    def total(x):
        return x.sum(dim)

    x = torch.randn(shape)
    torch.testing.assert_close(torch.compile(total, fullgraph=True)(x), total(x))


def test_fixture(model):
    x = torch.randn(2, 4)
    assert torch.equal(torch.compile(model, dynamic=True)(x), model(x))


def test_second_call():
    @torch.compile
    def double(x):
        return x + x

    double(torch.randn(3))
    double(torch.randn(5, 2))


def test_old_spelling():
    def fn(x, scale=2.0):
        return x * scale

    x = torch.randn(3, requires_grad=True)
    opt = dynamo.optimize("inductor", nopython=True)(fn)
    opt(x, scale=3.0).sum().backward()


def check(fn, inputs):
    compiled = torch.compile(fn)
    return compiled(*inputs)


def test_through_helper():
    check(lambda a, b: a - b, (torch.ones(3), torch.zeros(3)))


def test_recursive_name():
    def fn(x):
        return x + 1

    def twice(x):
        return fn(fn(x))

    torch.compile(twice)(torch.zeros(2))


def test_custom_operator():
    @torch.library.custom_op("eddyseeds::negated", mutates_args=())
    def negated(x: torch.Tensor) -> torch.Tensor:
        return -x

    @negated.register_fake
    def _(x):
        return torch.empty_like(x)

    torch.compile(lambda x: negated(x) * 2)(torch.ones(3))


def test_a_runner_is_given_both():
    def add(x, y):
        return x + y

    def run(f):
        x = torch.ones(3)
        y = torch.zeros(3)
        return f(x, y), x

    expected, _x = run(add)
    result, _y = run(torch.compile(add))
    assert torch.equal(expected, result)
"""

SCRIPT = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(x).relu()


if __name__ == "__main__":
    model = Model().to("cuda")
    x = torch.randn(1, 3, 8, 8).cuda()
    y = model(x)
    print(y.shape)
"""

#: A module and its inputs, never brought together.
BARE = """
class Model(torch.nn.Module):
    def forward(self, x1, x2):
        return x1 + x2


# Inputs
x1 = torch.randn(2)
x2 = torch.randn(2)
"""
