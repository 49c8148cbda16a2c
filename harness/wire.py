"""The wire between orchestrator and harness: length-prefixed msgpack maps over a socket pair.

Each frame is a little-endian u32 length and one msgpack map with a ``type``. Only plain data crosses: text,
numbers, lists, maps. Nothing received is ever executed by unpacking it.

Conversation (→ to the harness, ← from it); one request is in flight at a time:

====================  ==============================================================================================
→ ``hello``           ``protocol, device, scratch, coverage: [domain], plant: str|None, limits``
← ``progress``        ``what``: a line for the screen, any number of times, while the server warms up
← ``ready``           ``target: {...}``, ``coverage: {domain: {available, why, total}}``, ``protection: {...}``, ``rss``
← ``refused``         ``why``: torch missing or broken, protocol mismatch; the server then exits
→ ``exec``            ``id, text, stages, limits, coverage, compile: {...}, variant: str``; see ``ExecRequest``
← ``observation``     the facts of one execution; see ``ObservationMap``
→ ``probe``           ``reset: bool, candidates: [[line, …], …], want: int``; see ``harness.probe``
← ``probed``          ``results: [...]``, or ``died: {signal, candidate}``
→ ``known``           ``coverage: {domain: {file: [id, …]}}``: do not report these again, disarm them
→ ``catalogue``       derive the operators of this target
← ``operator``        one record, repeated; then ``catalogue_done``
→ ``quit``            leave at once
====================  ==============================================================================================
"""

from __future__ import annotations

import socket
import struct
from typing import Any, TypedDict

import msgpack

#: Raised whenever a message changes its meaning. Both ends refuse a peer that speaks another number.
PROTOCOL = 1

#: A frame larger than this is taken as garbage, not as a message (a first coverage delta is about 2 MB).
MAX_FRAME = 256 * 1024 * 1024

_LENGTH = struct.Struct("<I")

#: Stages of one execution, in the order in which they run.
STAGES = (
    "build",  # import the program's text, build_inputs()
    "eager",  # fn(*inputs), gradients where the mode asks
    "eager_again",  # the same once more: does the program agree with itself?
    "observe",  # once more under a dispatch mode: operators, shapes, strides that really ran
    "float64",  # the reference
    "compile",  # Dynamo, AOT, Inductor, the C++ step
    "run",  # the compiled callable executes
    "backward",  # backward of the compiled callable
    "second",  # the same compiled callable on build_inputs2(), or on the same inputs again
    "compare",
)


class WireError(Exception):
    """The peer closed the connection or sent bytes that are not a frame."""


class Fault(TypedDict):
    """An exception, as the child saw it."""

    type: str  # qualified, e.g. "torch._inductor.exc.InductorError"
    message: str  # at most 4,000 characters
    cause_type: str  # of the innermost exception in the chain of causes
    cause_message: str
    frames: list[str]  # "torch/_inductor/ir.py:get_size", outermost first, relative to site-packages


class StageMap(TypedDict):
    name: str
    seconds: float
    cpu: float
    fault: Fault | None


class TensorMap(TypedDict):
    """Facts of one tensor. ``values`` is a set of words: nan, inf, zero, negative, huge, denormal, ties."""

    dtype: str  # "float32"
    shape: list[int]
    stride: list[int]
    offset: int
    requires_grad: bool
    device: str


class LeafMap(TypedDict, total=False):
    """One value that eager and compiled execution both produced, compared.

    Paths: ``out``, ``out[0]``, ``out['k']`` a result; ``grad.in[1]`` a gradient; ``in[1]`` an input after the call;
    ``buffer.in[0].running_mean``; the same under ``second.`` for the second call.
    Distances in ULPs are taken in the dtype of the eager result, elementwise; ``None`` where they mean nothing.
    """

    path: str
    eager: TensorMap | None  # None: not a tensor, then `eager_text` holds its repr
    compiled: TensorMap | None
    eager_text: str
    compiled_text: str
    numel: int
    differing: int  # elements that are not equal (NaN equals NaN, -0.0 equals 0.0)
    sign_of_zero: int  # elements that differ in the sign of zero only
    nan_eager: int
    nan_compiled: int
    nan_mismatch: int  # NaN on one side only
    inf_mismatch: int  # infinite on one side only, or of opposite sign
    max_abs: float  # largest |compiled - eager| over elements finite on both sides
    max_rel: float
    max_ulp: float
    same: bool | None  # torch._dynamo.utils.same with default tolerances
    # against the float64 reference, where there is one:
    reference: str  # "float64" | "none: why"
    eager_err: float  # largest |eager - reference| in ULPs of the result's dtype at max(|reference|, rms)
    compiled_err: float
    eager_rmse: float
    compiled_rmse: float
    reference_rms: float
    nan_reference: int
    compiled_nan_only: int  # compiled is NaN/inf where reference and eager are finite
    eager_nan_only: int  # eager is NaN/inf where reference and compiled are finite
    worst: list[dict[str, Any]]  # up to 4: {"index": [..], "eager": x, "compiled": x, "reference": x}


class EndMap(TypedDict):
    """How the child ended. ``how``: done | signal | exit | timeout | memory | output | files | lost."""

    how: str
    signal: int  # 0 where none
    status: int
    stage: str  # the stage that was running
    why: str


class OpMap(TypedDict):
    """One operator that the eager run dispatched."""

    op: str  # "aten.add.Tensor"
    inputs: list[int]  # indices of earlier OpMaps whose outputs it read; -(k+1) means input k of the program
    tensors: list[list[Any]]  # per tensor argument: [dtype, shape, stride, offset]
    outputs: list[list[Any]]


class ObservationMap(TypedDict, total=False):
    id: str
    variant: str
    stages: list[StageMap]
    end: EndMap
    leaves: list[LeafMap]
    self_leaves: list[LeafMap]  # eager against eager again; only those that differ
    second_leaves: list[LeafMap]
    aliases: dict[str, list[list[str]]]  # "eager"/"compiled" -> groups of paths that share storage
    ops: list[OpMap]
    values: list[list[str]]  # per input: words of TensorMap
    log: str
    counters: dict[str, int]  # torch._dynamo.utils.counters, flattened "inductor.pattern_matcher_count"
    kernels: list[str]  # normalised class of each generated kernel
    coverage: dict[str, dict[str, list[int]]]  # domain -> file -> ids, new ones only
    rss_peak: int  # bytes
    seconds: float
    cpu: float


def pack(message: dict[str, Any]) -> bytes:
    """One frame."""
    body = msgpack.packb(message, use_bin_type=True)
    return _LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, Any]:
    """The map of one frame's body. Raises ``WireError`` on anything else."""
    try:
        message = msgpack.unpackb(body, raw=False, strict_map_key=False, unicode_errors="surrogateescape")
    except Exception as error:  # msgpack raises several unrelated classes on garbage
        raise WireError(f"not a msgpack map: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise WireError("not a map with a type")
    return message


def frame_length(prefix: bytes) -> int:
    """Length of the body that follows a 4-byte prefix. Raises ``WireError`` when it is absurd."""
    (length,) = _LENGTH.unpack(prefix)
    if length > MAX_FRAME:
        raise WireError(f"a frame of {length} bytes")
    return int(length)


def send(sock: socket.socket, message: dict[str, Any]) -> None:
    """Write one frame, blocking."""
    sock.sendall(pack(message))


def receive(sock: socket.socket) -> dict[str, Any]:
    """Read one frame, blocking. Raises ``WireError`` at end of stream."""
    return unpack(_read_exactly(sock, frame_length(_read_exactly(sock, 4))))


def _read_exactly(sock: socket.socket, count: int) -> bytes:
    chunks = bytearray()
    while len(chunks) < count:
        chunk = sock.recv(min(count - len(chunks), 1 << 20))
        if not chunk:
            raise WireError("the peer closed the connection")
        chunks += chunk
    return bytes(chunks)
