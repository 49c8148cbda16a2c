"""Counters and kernel classes as coverage."""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.coverage.events import CompilerEvents, flatten, normalise
from harness.coverage.kernels import kernel_classes, kernel_sources


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("Data-dependent branching\n  Explanation: ... `x`\n  File '/a/b.py'", "Data-dependent branching"),
        (
            "call_function BuiltinVariable(print) [ConstantVariable(str: 'hi')] {}",
            "call_function BuiltinVariable(…) (…) (…)",
        ),
        ("<object at 0x7f12ab> in /usr/lib/x.py:12", "<object at ADDR> in FILE"),
        ("aten.mm_8_16_32", "aten.mm_N_N_N"),
        ("mkldnn_linear_bf16", "mkldnn_linear_bf16"),
        ("\n\n  hasattr 'foo' 3.5 times", "hasattr NAME N times"),
    ],
)
def test_normalise_drops_what_differs_between_programs(reason: str, expected: str) -> None:
    assert normalise(reason) == expected


@given(st.text(max_size=200))
def test_normalise_is_short_one_line_and_settles(reason: str) -> None:
    once = normalise(reason)
    assert len(once) <= 120 and len(once.splitlines()) <= 1


def test_flatten_sums_alike_keys_and_keeps_graph_breaks_first() -> None:
    counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
    counters["inductor"].update({f"op{chr(97 + k % 26)}{chr(97 + k // 26)}": 1 for k in range(300)})
    counters["aten_mm_info"].update({"aten.mm_1_2": 2, "aten.mm_3_4": 3})
    counters["graph_break"]["Failed at 0x1"] = 1
    counters["graph_break"]["Failed at 0x2"] = 4
    counters["resumes"].update({"torch_dynamo_resume_in_g_at_18": 1, "torch_dynamo_resume_in_h_at_2": 2})
    flat = flatten(counters)
    assert len(flat) == 200
    assert next(iter(flat.items())) == ("graph_break.Failed at ADDR", 5)
    assert flat["aten_mm_info.aten.mm_N_N"] == 5
    counters["inductor"].clear()
    assert flatten(counters)["resumes"] == 3


def test_ids_are_checksums_by_category_and_name_their_text() -> None:
    found, texts = CompilerEvents().ids(["inductor.a", "graph_break.b", "inductor.c"], ["cpp loops=1", "cpp loops=1"])
    assert found == {
        "counter": sorted(zlib.crc32(key.encode()) for key in ("inductor.a", "inductor.c")),
        "break": [zlib.crc32(b"graph_break.b")],
        "kernel": [zlib.crc32(b"cpp loops=1")],
    }
    assert texts["kernel"] == {zlib.crc32(b"cpp loops=1"): "cpp loops=1"}


CPP = """
cpp_fused_0 = async_compile.cpp_pybinding(['const float*', 'int64_t*'], r'''
extern "C"  void  kernel(const float* in_ptr0, const at::Half* in_ptr1, int64_t* out_ptr0, const int64_t ks0)
{
    {
        #pragma GCC ivdep
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(8L); x0+=static_cast<int64_t>(1L))
        {
            for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(30L); x1+=static_cast<int64_t>(16L))
            {
                auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + x1);
                for (long x1_inner = 0; x1_inner < 8; x1_inner++) { tmpbuf[x1_inner] = 0; }
                tmp_acc0_vec = argmax_combine_vec<float, 1, 2, true>(tmp_acc0_vec, tmp0, x1);
                atomic_add(&out_ptr0[0], 1);
            }
        }
    }
    {
        for(int64_t x0=static_cast<int64_t>(16L); x0<static_cast<int64_t>(18L); x0+=static_cast<int64_t>(1L))
            tmp_acc1 = tmp_acc1 + 1;
    }
}
''')
buf1 = torch.ops.aten.cumsum.default(buf0, 0)
extern_kernels.mm(buf0, buf1, out=buf2)
"""

TRITON = """
triton_red_fused_sum_0 = async_compile.triton('triton_red_fused_sum_0', '''
@triton_heuristics.reduction(size_hints=[64], triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*i64'}})
@triton.jit
def triton_red_fused_sum_0(in_ptr0, out_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr):
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    for r0_offset in range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
    tmp3 = tl.sum(_tmp2, 1)[:, None]
    tl.atomic_add(out_ptr0 + (x0), tmp3)
''', device_str='cuda')
"""


def test_class_of_a_cpp_kernel_and_of_calls_out_of_it() -> None:
    assert kernel_classes([CPP]) == [
        "cpp loops=2 nests=2 vec atomic_add symbolic tail red=argmax,sum dtypes=Half,float,int64_t",
        "extern aten.cumsum.default",
        "extern extern_kernels.mm",
    ]


def test_sources_are_whole_functions_and_whole_triton_kernels() -> None:
    cpp, triton = kernel_sources([CPP, TRITON])
    assert cpp.startswith('extern "C"') and cpp.endswith("}") and "buf1 = " not in cpp
    assert triton.startswith("@triton_heuristics") and triton.endswith("tl.atomic_add(out_ptr0 + (x0), tmp3)")
    assert kernel_sources(["no kernel"]) == []


def test_numbers_and_names_do_not_change_a_class() -> None:
    other = CPP.replace("8L", "77L").replace("cpp_fused_0", "cpp_fused_add_9").replace("tmp0", "tmp31")
    assert kernel_classes([other]) == kernel_classes([CPP])


def test_class_of_a_triton_kernel() -> None:
    expected = ["triton reduction dims=r0_,x loop atomic_add red=sum dtypes=fp32,i64"]
    assert kernel_classes([TRITON]) == expected
    bare = TRITON.split("'''")[1]
    assert kernel_classes([bare]) == expected


@given(st.text(alphabet="{}();for x0=extrn\"C void kl@tij\n'", max_size=300))
def test_any_text_has_classes(text: str) -> None:
    garbage = kernel_classes([text, 'extern "C" void kernel(float* a) {' + text])
    assert all(line.startswith(("cpp ", "triton ", "extern ")) for line in garbage)
    assert garbage, "the unfinished kernel is still one"
