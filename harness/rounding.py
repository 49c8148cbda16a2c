"""Eager execution that rounds at random: how far do rounding errors alone move a result?

Every operator that rounds has its result moved by one ULP, up or down, as in stochastic arithmetic (Vignes's CESTAC). A
compiler may round at other places than eager does, so what moves a result as far as this is no fault. Operators that
pick, copy or compare are exact in every implementation and are left alone: programs rely on it (``x == x.amax()``).
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from harness.reference import nudged

#: Exact whoever computes them. In-place forms and ``_copy`` forms count as their plain name.
_EXACT = {
    "clone", "copy", "detach", "alias", "neg", "abs", "sign", "sgn", "relu", "max", "min", "amax", "amin",
    "aminmax", "maximum", "minimum", "fmax", "fmin", "clamp", "clamp_min", "clamp_max", "hardtanh", "threshold",
    "where", "index", "index_select", "index_put", "index_fill", "index_copy", "gather", "scatter", "take", "put",
    "masked_fill", "masked_select", "masked_scatter", "cat", "stack", "flip", "roll", "sort", "topk", "kthvalue",
    "median", "mode", "cummax", "cummin", "fill", "zero", "full", "full_like", "zeros", "zeros_like", "ones",
    "ones_like", "arange", "eye", "scalar_tensor", "lift_fresh", "floor", "ceil", "round", "trunc", "frac",
    "constant_pad_nd", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d",
    "replication_pad2d", "replication_pad3d", "tril", "triu", "diag", "diag_embed", "diagonal_scatter",
    "slice_scatter", "select_scatter", "as_strided_scatter", "repeat", "tile", "nan_to_num", "embedding",
    "bernoulli", "one_hot", "empty", "empty_like", "empty_strided", "new_empty", "new_zeros", "new_ones",
    "new_full", "resize", "copysign", "nextafter", "ldexp", "max_pool2d_with_indices", "rand", "randn",
    "max_pool3d_with_indices", "max_unpool2d", "max_unpool3d", "pixel_shuffle", "pixel_unshuffle",
    "channel_shuffle", "unfold_backward", "unique_dim", "_unique2", "real", "imag", "view_as_real",
    "view_as_complex", "resolve_conj",
}  # fmt: skip


class RandomRounding(TorchDispatchMode):
    """Moves results by one ULP; ``seed`` decides the directions.

    With ``anew`` a result is left as it is, and every use of it sees another rounding: where a compiler fuses an
    operator into each of its readers, it computes the value again for each, and two roundings of one value need not be
    equal. ``x - x.amax()`` is then no longer 0 anywhere.
    """

    def __init__(self, seed: int, anew: bool = False) -> None:
        super().__init__()
        self._seed = seed * 1_000_003
        self._anew = anew
        self._rounded: dict[int, torch.UntypedStorage] = {}  # kept alive: an address could be used twice

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        if self._anew and not func.is_view and not func._schema.is_mutable:
            args, kwargs = tree_map(self._again, (args, kwargs))
        result = func(*args, **kwargs)
        if _rounds(func):
            if self._anew:
                tree_map(self._note, result)
            else:
                self._seed += 1
                nudged(result, self._seed)  # in place: a result of its own, or what was written in place
        return result

    def _note(self, item: Any) -> None:
        if isinstance(item, torch.Tensor) and item.layout is torch.strided:
            storage = item.untyped_storage()
            self._rounded[storage._cdata] = storage

    def _again(self, item: Any) -> Any:
        if not isinstance(item, torch.Tensor) or item.layout is not torch.strided:
            return item
        if item.untyped_storage()._cdata not in self._rounded:
            return item
        self._seed += 1
        return nudged(item.clone(), self._seed)


def _rounds(func: torch._ops.OpOverload) -> bool:
    name = func._opname.removesuffix("_").removesuffix("_copy")
    return name not in _EXACT and not func.is_view
