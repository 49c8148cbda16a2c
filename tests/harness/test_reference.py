"""The float64 reference and the ULP nudges."""

import pytest

torch = pytest.importorskip("torch")

from harness.reference import nudged, widen, widened  # noqa: E402

pytestmark = pytest.mark.torch


def test_layout_and_gradients_survive_widening() -> None:
    value = torch.randn(3, 1).expand(3, 4).requires_grad_()
    wide = widen(value)
    assert (wide.dtype, wide.stride(), wide.requires_grad) == (torch.float64, value.stride(), True)
    assert torch.equal(wide.float(), value)


def test_modules_and_nests_are_widened_integers_are_not() -> None:
    module, (a, b) = widen(torch.nn.Linear(2, 2)), widen((torch.ones(1), torch.ones(1, dtype=torch.int8)))
    assert (module.weight.dtype, a.dtype, b.dtype) == (torch.float64, torch.float64, torch.int8)


def test_casts_written_into_the_program_are_widened_too() -> None:
    x = torch.full((3,), 1 / 3, dtype=torch.float64)
    with widened():
        casts = [
            x.half(),
            x.to(torch.float16),
            x.float(),
            x.bfloat16().float(),
            torch.zeros(3, dtype=torch.float32) + x,
        ]
    assert all(torch.equal(item, x) for item in casts)
    assert torch.get_default_dtype() is torch.float32


def test_bits_are_not_reinterpreted_at_another_width() -> None:
    with widened():
        assert torch.ones(2, dtype=torch.int32).view(torch.float32).dtype is torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_a_nudge_moves_by_one_ulp_and_leaves_zeros_alone(dtype: "torch.dtype") -> None:
    value = torch.tensor([0.0, 1.0, -3.0, 7.0], dtype=dtype)
    moved = nudged((value.clone(),))[0]
    assert moved[0] == 0
    assert bool((moved[1:] != value[1:]).all())
    assert bool(((moved - value).abs() <= 2 * torch.finfo(dtype).eps * value.abs()).all())
