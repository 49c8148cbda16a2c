"""What names of test suites mean on a CPU: devices, flags of the machine, helpers and where torch keeps them.

One table a question, so that a new project's habits are a line here.
"""

from __future__ import annotations

import ast
import re

from fuzzer.engines.statement import words

#: Device strings of other hardware. Programs run on the CPU; the device under test is the target's business.
OTHER_DEVICE = re.compile(r"(cuda|npu|xpu|mps|hpu|privateuseone|tpu)(:\d+)?")

#: Names and attributes of ``self`` that hold a device. As a value they are "cpu"; in a comparison the GPU's own
#: names stand for a device that is not there.
DEVICES = words("device device_type device_str GPU_TYPE NPU_TYPE DEVICE DEVICE_TYPE TEST_DEVICE gpu_type")
GPU_NAMES = words("GPU_TYPE NPU_TYPE gpu_type")

#: Flags about the machine. All false but those of a CPU.
FLAG = re.compile(r"(HAS|TEST|IS|RUN|WITH|USE|PLATFORM|RUNNING)_[A-Z0-9_]+|SM\d+OrLater|TRITON_HAS_CPU")
TRUE_FLAGS = words("HAS_CPU HAS_MKL HAS_MKLDNN IS_LINUX IS_X86 TEST_MKL TEST_NUMPY HAS_REFS")

#: Functions that ask for a back end or a device other than the plain CPU one.
ABSENT = re.compile(
    r"is_\w*(halide|mps|triton|gpu|cuda|npu|xpu|rocm|hip|windows)\w*|has_triton\w*|is_available|is_fbcode"
)

#: ``self.NAME(fn, inputs, kwargs)`` or ``NAME(self, fn, inputs, kwargs)``: the test suite's own compare.
COMPARERS = words(
    "common check_model check_model_gpu check_model_cuda check_model_cpu check_model_npu check_model_with_device"
)

#: Last parts of calls that give a compiled callable; the first part must be torch's.
COMPILERS = words("compile optimize optimize_assert")
#: Calls that trace a function with inputs: as good as a compile where a test has nothing better.
TRACERS = words("export export_for_training aot_compile capture_pre_autograd_graph")
ROOTS = ("torch", "torchdynamo", "functorch")

#: Where today's torch keeps what test suites import from elsewhere.
HOMES = {
    "rand_strided": "torch._dynamo.testing",
    "reduce_to_scalar_loss": "torch._dynamo.testing",
    "same": "torch._dynamo.utils",
    "make_tensor": "torch.testing",
    "make_fx": "torch.fx.experimental.proxy_tensor",
    "is_integer_dtype": "torch._prims_common",
    "is_float_dtype": "torch._prims_common",
    "deepcopy": "copy",
    "partial": "functools",
    "namedtuple": "collections",
    "OrderedDict": "collections",
    "tree_map": "torch.utils._pytree",
    "tree_flatten": "torch.utils._pytree",
    "tree_unflatten": "torch.utils._pytree",
    "TwoTensor": "torch.testing._internal.two_tensor",
    "cond": "torch",
    "vmap": "torch.func",
    "grad": "torch.func",
}

#: What a name usually is where nothing says so.
USUAL = {
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "aten": "torch.ops.aten",
    "prims": "torch.ops.prims",
    "quantized_decomposed": "torch.ops.quantized_decomposed",
    "dtype": "torch.float32",
    "Tensor": "torch.Tensor",
}
USUAL_IMPORTS = {"np": "numpy", **{name: name for name in words("math functools itertools operator collections copy")}}

#: Options that concern other hardware, caches or debugging, or that would switch off what is under test.
USELESS_OPTION = re.compile(
    r"(triton|cuda|rocm|halide|trace|xpu|aot_inductor)\.|debug|verbose|.*cache|.*_backend$|profil|compile_threads"
    r"|suppress_errors|repro_|log_|output_code|worker_|save_|max_autotune_\w*backends|generate_intermediate_hooks|disable$"
)

#: Calls whose result is plain data: may stand at module level, shared by all runs.
PLAIN_CALLS = words(
    "len range tuple list dict set frozenset int float bool complex str min max sum abs zip enumerate sorted slice "
    "round all any type isinstance getattr partial product chain repeat Size device finfo iinfo sqrt prod log log2 "
    "ceil floor namedtuple NamedTuple iter next"
)

#: Decorators that matter to what a function computes; all others belong to test frameworks.
KEPT_DECORATORS = re.compile(
    r"(staticmethod|classmethod|property|contextlib\.\w+|contextmanager|(functools\.)?(wraps|lru_cache|cache)|"
    r"(dataclasses\.)?dataclass|torch\.(no_grad|enable_grad|inference_mode|set_grad_enabled|autocast|library|jit|amp|fx"
    r"|_dynamo\.(disable|allow_in_graph|disallow_in_graph|graph_break|assume_constant_result)"
    r"|compiler\.(disable|allow_in_graph|assume_constant_result|nested_compile_region)|utils|autograd)|abc\.|\w+\.(setter|register_\w+|impl\b|py_impl|default_impl))"
)

#: Contexts around a compiled call that change what is computed, so the function gets them.
KEPT_CONTEXT = re.compile(
    r"torch\.(amp\.|cpu\.amp\.|cuda\.amp\.)?autocast|torch\.inference_mode|sdpa_kernel|torch\.nn\.attention"
)


def dotted(node: ast.AST) -> str:
    """``a.b.c`` of an attribute chain over a name; "" for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def last_part(node: ast.AST) -> str:
    """The name after the last dot of a callee, also where the chain starts with a call; "" for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def flag(name: str) -> bool | None:
    """The value of a machine flag, or None where the name is none."""
    return (name in TRUE_FLAGS) if FLAG.fullmatch(name) else None
