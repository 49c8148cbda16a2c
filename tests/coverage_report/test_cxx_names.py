from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.coverage_report.cxx_names import COLD, NO_SYMBOL, namespace, short


@pytest.mark.parametrize(
    ("mangled", "expected"),
    [
        ("_ZN2at6native3addEi", "at::native"),
        ("_ZN2at6native12_GLOBAL__N_110add_kernelERNS_18TensorIteratorBaseE", "at::native"),
        ("_ZZN2at6native3addEiENKUlvE_clEv", "at::native"),
        ("_ZN2at4_ops3add4callEv", "at::_ops"),
        ("_ZN2at6Tensor3sumEv", "at"),
        ("_ZNK3c106Device3strB5cxx11Ev", "c10"),
        ("_ZN5torch8autograd6Engine7executeEv", "torch::autograd"),
        ("_ZThn16_N5torch8autograd4NodeD1Ev", "torch::autograd"),
        ("_ZN3c1010Dispatcher10callBoxedEv", "dispatcher"),
        ("_ZN3c104impl28wrap_kernel_functor_unboxed_INS0_6detail4FuncEE4callEv", "dispatcher"),
        ("_ZN3c1012function_refIFviEE11callback_fnIZN2at6native3addEvEUlvE_EEvl", "at::native"),
        ("_ZNSt6vectorIN5torch3jit4NodeESaIS2_EE9push_backEv", "torch::jit"),
        ("_ZNSt6vectorIiSaIiEE9push_backEi", "std"),
        ("_ZN4dnnl4impl3cpu3runEv", "dnnl"),
        ("_ZN2at6native3addEi.cold", COLD),
        ("mkl_blas_dgemm", "mkl"),
        ("main", "C functions"),
        ("", NO_SYMBOL),
    ],
)
def test_namespaces(mangled: str, expected: str) -> None:
    assert namespace(mangled.encode()) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("at::native::add(at::Tensor const&, long)", "at::native::add"),
        ("void at::native::AVX2::foo<float, std::pair<A> >(int)::{lambda()#1}::operator()() const", "at::native::foo"),
        ("at::native::(anonymous namespace)::bar(char**) const [clone .isra.0]", "at::native::bar"),
        ("c10::operator<<(std::ostream&, c10::Device const&)", "c10::operator<<"),
        ("bool c10::operator==<int>(c10::ArrayRef<int>, c10::ArrayRef<int>)", "c10::operator=="),
        ("at::Tensor::operator[](long) const &", "at::Tensor::operator[]"),
        ("std::unique_ptr<X, D>::operator->() const", "std::unique_ptr::operator->"),
        (
            "void c10::function_ref<void (char**, long)>::callback_fn<at::native::AVX512::VectorizedLoop2d<"
            "at::native::AVX512::sgn_kernel(at::TensorIteratorBase&)::{lambda()#1}> >(long, char**)",
            "at::native::sgn_kernel",
        ),
        (
            "c10::impl::wrap_kernel_functor_unboxed_<c10::impl::detail::WrapFunctionIntoFunctor_<"
            "c10::CompileTimeFunctionPointer<at::Tensor (at::Tensor const&), "
            "&torch::autograd::VariableType::(anonymous namespace)::sign>, at::Tensor>, "
            "at::Tensor (at::Tensor const&)>::call()",
            "torch::autograd::VariableType::sign",
        ),
        ("_ZN3c1012function_refIZN2at6native16bernoulli_kernelEvE", "at::native::bernoulli_kernel"),
        ("mkl_blas_dgemm", "mkl_blas_dgemm"),
    ],
)  # fmt: skip
def test_short_names(name: str, expected: str) -> None:
    assert short(name) == expected


@given(st.text(alphabet="_ZNKRSIETLv0123456789at:c(<>)&* {}#[]o", max_size=60))
def test_garbage_has_some_name_and_namespace(text: str) -> None:
    assert namespace(text.encode()) or text == ""
    assert len(short(text)) <= len(text) + len("at::native::")
