"""A C++ library with the namespaces of torch, compiled by the tests that look into one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="needs g++ and x86-64 ELF files")

SOURCE = r"""
namespace c10 {
template <class F> struct function_ref { template <class T> static __attribute__((noinline)) int callback_fn(int x) { return T()(x); } };
}
namespace at { namespace native {
__attribute__((noinline)) int add(int x) { return x + 1; }
template <class T> __attribute__((noinline)) int mul_kernel(T x) { return (int)(x * 3); }
template int mul_kernel<float>(float);
template int mul_kernel<double>(double);
namespace { struct Loop { int operator()(int x) const { return x - 4; } }; }
int sub_kernel(int x) { return c10::function_ref<int(int)>::callback_fn<Loop>(x); }
} }
namespace torch { namespace autograd { int run(int x) { return at::native::add(x) + at::native::mul_kernel<float>(x); } } }
extern "C" int plain(int x) { return torch::autograd::run(x); }
"""  # noqa: E501 (C++)


def build_library(path: Path, source: str = SOURCE, *flags: str) -> Path:
    """Compile to a shared object at ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.with_suffix(".cpp")
    text.write_text(source)
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", *flags, str(text), "-o", str(path)], check=True)
    return path


def symbols(path: Path) -> dict[str, tuple[int, int]]:
    """Name → (address, size) by ``nm``, of defined functions with a size."""
    lines = subprocess.run(["nm", "-S", str(path)], check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [line.split() for line in lines]
    return {row[3]: (int(row[0], 16), int(row[1], 16)) for row in rows if len(row) == 4 and row[2] in "TtWw"}
