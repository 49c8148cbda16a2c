"""What the mutations know of torch by heart: enough to write sensible text where no operator record is at hand."""

from __future__ import annotations

from fuzzer.engines.statement import words

FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
COMPLEX = ("complex64", "complex128")
#: Few kernels exist for these: many mutants that use them are refused by eager, so they are drawn rarely.
RARE_DTYPES = ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "complex64", "complex128")

#: Groups of interchangeable operators: same arguments, nearly the same meaning.
NEIGHBOURS: tuple[tuple[str, ...], ...] = (
    ("sin", "cos", "tanh", "sigmoid", "atan", "erf", "asinh", "sinc"),
    ("exp", "exp2", "expm1", "sinh", "cosh"),
    ("log", "log2", "log10", "log1p", "lgamma", "digamma"),
    ("sqrt", "rsqrt", "reciprocal"),
    ("floor", "ceil", "trunc", "round", "frac"),
    ("abs", "neg", "sign", "square", "positive"),
    (
        "relu",
        "gelu",
        "silu",
        "elu",
        "selu",
        "softplus",
        "mish",
        "hardtanh",
        "hardswish",
        "relu6",
        "leaky_relu",
    ),
    ("add", "sub", "mul", "maximum", "minimum"),
    ("div", "true_divide", "atan2", "fmod", "remainder", "hypot", "copysign"),
    ("fmax", "fmin", "maximum", "minimum", "nextafter"),
    ("eq", "ne", "lt", "le", "gt", "ge"),
    ("bitwise_and", "bitwise_or", "bitwise_xor"),
    ("bitwise_left_shift", "bitwise_right_shift"),
    ("logical_and", "logical_or", "logical_xor"),
    ("isnan", "isinf", "isfinite", "signbit", "logical_not"),
    ("sum", "mean", "prod", "amax", "amin", "nansum"),
    ("var", "std", "mean", "logsumexp"),
    ("max", "min", "median"),
    ("argmax", "argmin"),
    ("any", "all"),
    ("cumsum", "cumprod", "logcumsumexp"),
    ("cummax", "cummin", "sort"),
    ("softmax", "log_softmax", "softmin"),
    ("matmul", "mm"),
    ("cat", "concat", "concatenate"),
    ("triu", "tril"),
    ("max_pool1d", "avg_pool1d"),
    ("max_pool2d", "avg_pool2d"),
    ("max_pool3d", "avg_pool3d"),
    ("adaptive_avg_pool1d", "adaptive_max_pool1d"),
    ("adaptive_avg_pool2d", "adaptive_max_pool2d"),
    ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"),
    ("split", "chunk"),
    ("clone", "contiguous", "detach", "alias"),
    ("flip", "roll"),
)
SYMBOLS: tuple[tuple[str, ...], ...] = (
    ("+", "-", "*"),
    ("/", "//", "%"),
    ("<", "<=", ">", ">=", "==", "!="),
    ("&", "|", "^"),
    ("<<", ">>"),
)

UNARY = words(
    "abs neg sign square positive sqrt rsqrt reciprocal sin cos tan tanh sigmoid atan erf erfc asinh sinh cosh exp "
    "exp2 expm1 log log2 log10 log1p floor ceil trunc round frac relu gelu silu elu selu softplus mish hardtanh "
    "hardswish relu6 leaky_relu clamp clamp_min clamp_max nan_to_num softmax log_softmax cumsum cumprod flip roll "
    "triu tril clone contiguous detach isnan isinf isfinite signbit logical_not bitwise_not lgamma digamma sinc "
    "hardsigmoid logit celu threshold softsign tanhshrink dropout layer_norm pow float_power"
)
BINARY = words(
    "add sub mul div true_divide floor_divide fmod remainder atan2 hypot copysign maximum minimum fmax fmin eq ne lt "
    "le gt ge bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logical_and logical_or "
    "logical_xor pow where lerp nextafter"
)
#: Elementwise and smooth enough that any float works: their result never aliases an argument.
POINTWISE = words(
    "sin cos tanh sigmoid atan erf asinh exp square sqrt rsqrt log log1p gelu silu softplus add sub mul div maximum "
    "minimum pow abs neg reciprocal expm1 lerp hypot atan2"
)
PREDICATES = words(
    "eq ne lt le gt ge isnan isinf isfinite signbit logical_not logical_and logical_or logical_xor any all isin isclose"
)
#: Integers in, floats out.
FLOATING = words(
    "sin cos tan tanh sigmoid atan erf erfc asinh sinh cosh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal "
    "div true_divide lgamma digamma sinc atan2"
)
REDUCTIONS = words(
    "sum mean prod amax amin nansum var std logsumexp argmax argmin any all max min median norm count_nonzero"
)
INDEX_RESULTS = words("argmax argmin argsort count_nonzero searchsorted bucketize nonzero")
#: Several tensors come back, whatever the arguments.
MULTIPLE = words(
    "split chunk unbind topk sort var_mean std_mean aminmax unique frexp kthvalue mode cummax cummin unsafe_split "
    "tensor_split hsplit vsplit unsafe_chunk split_with_sizes unique_consecutive qr svd eigh eig slogdet meshgrid "
    "broadcast_tensors"
)
#: Method calls whose results are not tensors.
SCALARS = words(
    "size dim stride numel item tolist is_contiguous is_floating_point is_complex data_ptr element_size "
    "storage_offset ndimension nelement get_device is_conj is_neg is_set_to equal allclose untyped_storage "
    "type"
)
VIEWS = words(
    "t transpose permute view reshape flatten unflatten squeeze unsqueeze expand expand_as view_as narrow "
    "select detach contiguous to type_as diagonal split chunk unbind as_strided movedim swapaxes swapdims "
    "unfold real imag mT T H mH alias view_as_real view_as_complex slice tensor_split float half double "
    "bfloat16 int long resolve_conj reshape_as ravel adjoint moveaxis data chunk requires_grad_ broadcast_to "
    "atleast_1d atleast_2d"
)
#: Their sizes may be made large at no cost; others would really allocate, so no extremes go there.
ALLOCATING = words(
    "repeat tile zeros ones full empty rand randn arange linspace logspace eye new_zeros new_ones new_full "
    "new_empty repeat_interleave pad interpolate upsample one_hot bincount as_strided resize_ tril_indices "
    "triu_indices cartesian_prod combinations constant_pad_nd vander histc unfold expand broadcast_to "
    "bartlett_window hann_window nn fold stack max_unpool2d pixel_shuffle conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d randint randperm avg_pool1d avg_pool2d avg_pool3d "
    "max_pool1d max_pool2d max_pool3d replication_pad1d reflection_pad1d adaptive_avg_pool1d "
    "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d diag_embed diag "
    "adaptive_max_pool3d empty_strided unsafe_split split renorm stft bitwise_left_shift bitwise_right_shift"
)
#: Integers beside a shape in these calls name sizes, so they follow a size that changes.
SHAPED = words(
    "view reshape expand layer_norm rms_norm unflatten broadcast_to zeros ones full split new_zeros new_ones"
)

#: Keyword arguments with a value unlike the default, per operator.
KEYWORDS: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(
        ["amax", "amin", "any", "all", "argmax", "argmin", "max", "min", "median"],
        (("keepdim", "True"), ("dim", "0"), ("dim", "-1")),
    ),
    **dict.fromkeys(
        ("sum", "mean", "nansum", "prod"),
        (("keepdim", "True"), ("dim", "-1"), ("dim", "0"), ("dtype", "torch.float64")),
    ),
    **dict.fromkeys(
        ("var", "std", "var_mean", "std_mean"),
        (("correction", "0"), ("keepdim", "True"), ("dim", "-1"), ("correction", "2")),
    ),
    **dict.fromkeys(("cumsum", "cumprod", "softmax", "log_softmax"), (("dtype", "torch.float64"),)),
    "logsumexp": (("keepdim", "True"),),
    "add": (("alpha", "2"), ("alpha", "0")),
    "sub": (("alpha", "2"), ("alpha", "0")),
    "addmm": (("alpha", "0"), ("beta", "0"), ("beta", "2")),
    "baddbmm": (("alpha", "0"), ("beta", "0")),
    "addmv": (("alpha", "0"), ("beta", "0")),
    "addcmul": (("value", "2"),),
    "addcdiv": (("value", "0.5"),),
    "div": (("rounding_mode", '"floor"'), ("rounding_mode", '"trunc"')),
    "clamp": (("min", "0"), ("max", "0")),
    "round": (("decimals", "1"), ("decimals", "-1")),
    "gelu": (("approximate", '"tanh"'),),
    "elu": (("alpha", "0.5"),),
    "celu": (("alpha", "0.5"),),
    "leaky_relu": (("negative_slope", "-0.1"),),
    "softplus": (("beta", "2"), ("threshold", "1")),
    "hardtanh": (("min_val", "-2.0"), ("max_val", "0.5")),
    "nan_to_num": (("nan", "1.0"), ("posinf", "0.0")),
    "logit": (("eps", "1e-6"),),
    "sort": (("descending", "True"), ("stable", "True"), ("dim", "0")),
    "argsort": (("descending", "True"), ("stable", "True"), ("dim", "0")),
    "topk": (("largest", "False"), ("dim", "0")),
    "cat": (("dim", "-1"), ("dim", "0")),
    "stack": (("dim", "-1"), ("dim", "1")),
    "flatten": (("start_dim", "1"), ("end_dim", "-2")),
    "squeeze": (("dim", "0"), ("dim", "-1")),
    "flip": (("dims", "(-1,)"),),
    "roll": (("dims", "0"),),
    "diff": (("n", "2"), ("dim", "0"), ("n", "0")),
    "triu": (("diagonal", "1"), ("diagonal", "-1")),
    "tril": (("diagonal", "1"), ("diagonal", "-1")),
    "norm": (("p", "1"), ("p", 'float("inf")'), ("dim", "-1")),
    "layer_norm": (("eps", "0.0"), ("eps", "1.0")),
    "normalize": (("dim", "0"), ("p", "1.0")),
    "cross_entropy": (("reduction", '"none"'), ("reduction", '"sum"'), ("label_smoothing", "0.1")),
    "nll_loss": (("reduction", '"none"'), ("reduction", '"sum"')),
    "mse_loss": (("reduction", '"none"'), ("reduction", '"sum"')),
    "l1_loss": (("reduction", '"none"'), ("reduction", '"sum"')),
    "smooth_l1_loss": (("beta", "0.5"), ("beta", "0.0"), ("reduction", '"none"')),
    "huber_loss": (("delta", "0.5"), ("reduction", '"none"')),
    "searchsorted": (("right", "True"), ("out_int32", "True")),
    "bucketize": (("right", "True"), ("out_int32", "True")),
    "scatter_add": (),
    "index_add": (("alpha", "2"),),
    "clone": (("memory_format", "torch.contiguous_format"),),
    "max_pool1d": (("ceil_mode", "True"), ("stride", "1"), ("padding", "1")),
    "max_pool2d": (("ceil_mode", "True"), ("stride", "1"), ("padding", "1"), ("dilation", "2")),
    "avg_pool1d": (("ceil_mode", "True"), ("count_include_pad", "False"), ("padding", "1"), ("stride", "1")),
    "avg_pool2d": (
        *(("ceil_mode", "True"), ("count_include_pad", "False"), ("padding", "1")),
        *(("stride", "1"), ("divisor_override", "3")),
    ),
    "conv1d": (("padding", "1"), ("stride", "2"), ("dilation", "2"), ("padding", '"same"')),
    "conv2d": (("padding", "1"), ("stride", "2"), ("dilation", "2"), ("padding", '"same"')),
    "interpolate": (("mode", '"nearest-exact"'), ("antialias", "True")),
    "pad": (("mode", '"reflect"'), ("mode", '"replicate"'), ("value", "1.0")),
    "einsum": (),
    "quantile": (("interpolation", '"lower"'), ("keepdim", "True")),
    "scaled_dot_product_attention": (("is_causal", "True"), ("scale", "1.0")),
}

#: Keywords that may be dropped: without them the call still means something.
OPTIONAL_KEYWORDS = frozenset(keyword for pairs in KEYWORDS.values() for keyword, _ in pairs) | {
    *("largest", "sorted", "affine", "weight", "bias", "training", "align_corners", "unbiased", "out_dtype"),
    *("enable_gqa", "dropout_p", "return_indices", "scale_factor", "inplace", "include_self"),
}

#: They take tensors of one or two ranks.
RANK_BOUND = words(
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d "
    "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d "
    "interpolate mm bmm addmm baddbmm addmv mv dot outer t permute bilinear grid_sample pixel_shuffle pixel_unshuffle "
    "fold unfold gather scatter scatter_add index_add index_put searchsorted bincount cross_entropy nll_loss "
    "embedding_bag einsum batch_norm instance_norm scaled_dot_product_attention view reshape expand "
    "unflatten masked_scatter linear"
)
