"""Facts about pairs of results, on real tensors."""

import math

import pytest

torch = pytest.importorskip("torch")

from harness.compare import aliases, compare, flatten  # noqa: E402

pytestmark = pytest.mark.torch


def f32(*values: float) -> "torch.Tensor":
    return torch.tensor(values, dtype=torch.float32)


def test_equal_values_and_metadata_say_nothing() -> None:
    assert compare("out", f32(1, math.nan), f32(1, math.nan)) is None


def test_a_shape_that_would_broadcast_is_told() -> None:
    leaf = compare("out", torch.ones(3), torch.ones(1, 3))
    assert leaf is not None and leaf["differing"] == -1


def test_errors_are_measured_in_ulps_of_the_result() -> None:
    reference = torch.tensor([1.0, 100.0], dtype=torch.float64)
    off = f32(1, 100) + torch.tensor([0.0, 64 * 100 * torch.finfo(torch.float32).eps])
    leaf = compare("out", f32(1, 100), off, reference)
    assert leaf is not None
    assert leaf["eager_err"] == 0.0
    assert 32 <= leaf["compiled_err"] <= 128


def test_small_elements_are_measured_against_the_whole() -> None:
    reference = torch.tensor([1e-9, 1000.0], dtype=torch.float64)
    leaf = compare("out", f32(1e-9, 1000), f32(2e-7, 1000), reference)
    assert leaf is not None and leaf["compiled_err"] < 1.0


def test_nan_and_infinities_are_counted_by_side() -> None:
    reference = torch.tensor([1.0, math.inf, 2.0], dtype=torch.float64)
    leaf = compare("out", f32(1, math.inf, 2), f32(math.nan, -math.inf, 2), reference)
    assert leaf is not None
    assert (leaf["nan_mismatch"], leaf["inf_mismatch"], leaf["inf_flips"]) == (1, 1, 1)
    assert leaf["compiled_class_wrong"] == 2


def test_the_side_that_keeps_a_finite_value_is_known() -> None:
    reference = torch.tensor([3.0], dtype=torch.float64)
    leaf = compare("out", f32(math.inf), f32(3.0), reference)
    assert leaf is not None and (leaf["eager_class_wrong"], leaf["compiled_class_wrong"]) == (1, 0)


def test_signs_of_zero_are_told_apart_from_differences() -> None:
    leaf = compare("out", f32(0.0, 1), f32(-0.0, 1))
    assert leaf is not None and (leaf["differing"], leaf["sign_of_zero"]) == (0, 1)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int64, torch.uint16, torch.uint64])
def test_integers_differ_exactly(dtype: "torch.dtype") -> None:
    one, other = torch.tensor([0, 1, 1]).to(dtype), torch.tensor([0, 1, 0]).to(dtype)
    leaf = compare("out", one, other, one)
    assert leaf is not None and (leaf["differing"], leaf["compiled_err"], leaf["eager_err"]) == (1, 1.0, 0.0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64, torch.float8_e5m2])
def test_every_floating_dtype_can_be_compared(dtype: "torch.dtype") -> None:
    one, other = torch.tensor([1.0, 2.0]).to(dtype), torch.tensor([1.0, 4.0]).to(dtype)
    reference = torch.tensor([1.0, 2.0], dtype=torch.complex128 if dtype.is_complex else torch.float64)
    leaf = compare("out", one, other, reference)
    assert leaf is not None and leaf["differing"] == 1 and leaf["compiled_err"] > leaf["eager_err"]


def test_a_tensor_beyond_its_storage_is_not_read() -> None:
    beyond = torch.ones(4)
    view = beyond.as_strided((4,), (1,))
    beyond.untyped_storage().resize_(8)
    leaf = compare("out", torch.ones(4), view)
    assert leaf is not None and leaf["outside_storage"]


def test_objects_that_are_no_tensors() -> None:
    assert compare("out", 3, 3) is None
    assert compare("out", math.nan, math.nan) is None
    leaf = compare("out", 3, 4)
    assert leaf is not None and (leaf["eager_text"], leaf["compiled_text"]) == ("3", "4")


def test_a_gradient_of_zeros_against_none_is_told() -> None:
    zeros, ones = compare("grad.in[0]", None, torch.zeros(2)), compare("grad.in[0]", None, torch.ones(2))
    assert zeros is not None and zeros["only_zeros"]
    assert ones is not None and not ones["only_zeros"]


def test_paths_lead_through_containers_and_modules() -> None:
    value = {"k": [torch.ones(1), 2], "m": torch.nn.BatchNorm1d(2)}
    paths = [path for path, _leaf in flatten("out", value)]
    assert paths[:2] == ["out['k'][0]", "out['k'][1]"]
    assert "out['m'].running_mean" in paths


def test_results_that_share_storage_are_grouped() -> None:
    base = torch.ones(4)
    assert aliases([("in[0]", base), ("out[0]", base[1:]), ("out[1]", base.clone())]) == [["in[0]", "out[0]"]]
    assert aliases([("a", base[:2]), ("b", base[1:3]), ("c", base[2:])]) == [["a", "b", "c"]]


def test_parts_of_one_buffer_that_lie_apart_share_nothing() -> None:
    one, other = torch.ones(2, 4).unbind()
    assert aliases([("out[0]", one), ("out[1]", other)]) == []
    assert aliases([("out[0]", one), ("out[1]", other[:0]), ("out[2]", one)]) == [["out[0]", "out[2]"]]


def test_python_numbers_are_compared_as_what_they_came_from() -> None:
    single = torch.tensor(6.78892183303833, dtype=torch.float32).item()
    nudged = torch.nextafter(torch.tensor(single, dtype=torch.float32), torch.tensor(9.0)).item()
    leaf = compare("out", single, nudged, 6.7889218)
    assert leaf is not None and leaf["eager"]["dtype"] == "float32" and leaf["compiled_err"] < 4
    assert compare("out", single, single) is None
    assert compare("out", float("nan"), float("nan")) is None
    double = compare("out", 0.1, 0.1 + 1e-12, 0.1)
    assert double is not None and double["eager"]["dtype"] == "float64" and double["compiled_err"] > 1000


def test_arrays_and_numbers_of_numpy_are_compared_as_tensors() -> None:
    numpy = pytest.importorskip("numpy")
    single = numpy.sin(numpy.ones(3, dtype=numpy.float32))
    leaf = compare("out", single, numpy.nextafter(single, numpy.float32(9)), torch.from_numpy(single).double())
    assert leaf is not None and leaf["eager"]["dtype"] == "float32" and leaf["compiled_err"] < 4
    assert compare("out", numpy.int64(12), numpy.array(12)) is None
    assert compare("out", numpy.array(["a"]), numpy.array(["a"])) is None


def test_addresses_are_no_difference() -> None:
    class Box:
        pass

    assert compare("out", Box(), Box()) is None
