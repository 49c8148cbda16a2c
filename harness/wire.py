"""The wire between orchestrator and harness: length-prefixed msgpack maps over a socket pair.

Each frame is a little-endian u32 length and one msgpack map with a ``type``. Only plain data crosses: text,
numbers, lists, maps. Nothing received is ever executed by unpacking it.

Conversation (→ to the harness, ← from it); one request is in flight at a time:

====================  ==============================================================================================
→ ``hello``           ``protocol, device, scratch, writable, coverage: [domain], plant, limits, confine, warm, fast``
← ``progress``        ``what``: a line for the screen, any number of times, while the server warms up
← ``ready``           ``target: {...}``, ``coverage: {domain: {available, why, total}}``, ``protection: {...}``, ``rss``
← ``refused``         ``why``: torch missing or broken, protocol mismatch; the server then exits
→ ``exec``            ``id, text, variant, limits, coverage: bool, options: {...}``; see ``ExecOptions``
← ``observation``     the facts of one execution; see ``ObservationMap``
→ ``probe``           ``reset: bool, groups: [[statement, …], …], names``; see ``harness.probe``
← ``probed``          ``results: [...]``, or ``died: {how, signal, name, group, candidate}``
→ ``known``           ``coverage: {domain: {file: [id, …]}}``: do not report these again, disarm them
→ ``arm``             ``addresses: {library: [offset, …]}``: arm these too, in the domain ``native`` (basic blocks)
← ``armed``           ``added: {library: number}``
→ ``symbols``         ``domain, file, ids``: names of coverage ids
← ``named``           ``names: [...]``
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

#: Stages of one execution, in the order in which they begin. ``run`` and ``backward`` are parts of the call that
#: compiles: they are told from ``compile`` by heartbeats. ``float64`` runs only where the results differ.
STAGES = (
    "build",  # import the program's text, build_inputs()
    "eager",  # fn(*inputs)
    "eager_backward",  # its gradients, where the mode asks
    "eager_again",  # the same once more: does the program agree with itself?
    "observe",  # once more under a dispatch mode: operators, shapes, strides that really ran
    "compile",  # Dynamo, AOT, Inductor, the C++ step
    "run",  # a compiled graph executes
    "backward",  # backward of the compiled callable
    "compare",
    "float64",  # the reference
    "perturbed",  # eager on inputs moved by one ULP
    "second_eager",
    "second",  # the same compiled callable on build_inputs2()
    "second_compare",
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


class ExecOptions(TypedDict, total=False):
    """What a variant of an execution changes. Empty: the program as its user would run it."""

    backend: str  # inductor | aot_eager_decomp_partition | aot_eager | eager
    inductor_config: dict[str, Any]  # patches, on top of the program's own
    skip_eager: bool  # after a crash in eager: does the compiled program crash as well?
    only_eager: bool
    observe: bool  # trace operators (default true)
    perturb: bool  # run eager on inputs moved by one ULP as well
    rounding: bool  # run eager with random rounding as well (see harness.rounding)
    recompute: bool  # run eager with each use of a result rounded for itself as well
    sources: bool  # tell the source of generated kernels
    interpret: bool  # generated kernels are interpreted, not compiled (see harness.interpreter)
    ties: bool  # run eager with ties decided the other way as well (see harness.ties)
    bisect: dict[str, Any]  # run torch's own bisector in place of everything else (see harness.bisecting)


class TensorMap(TypedDict):
    """Facts of one tensor."""

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
    only_zeros: bool  # eager has None where compiled has a tensor of zeros
    eager_text: str
    compiled_text: str
    numel: int
    outside_storage: bool  # compiled's tensor claims elements beyond its storage
    differing: int  # elements that are not equal (NaN equals NaN, -0.0 equals 0.0)
    sign_of_zero: int  # elements that differ in the sign of zero only
    nan_eager: int
    nan_compiled: int
    nan_mismatch: int  # NaN on one side only
    inf_mismatch: int  # infinite on one side only, or of opposite sign
    max_abs: float  # largest |compiled - eager| over elements finite on both sides
    max_rel: float
    max_ulp: float
    gathered_equal: bool | None  # indices of an extremum or a sort: both sides point at equal values (a tie)
    same: bool | None  # torch._dynamo.utils.same with default tolerances
    # against the float64 reference, where there is one:
    reference: str  # "float64" | "none: why"
    eager_err: float  # largest |eager - reference| in ULPs of the result's dtype at max(|reference|, 1 % of the rms)
    compiled_err: float  # for integers: number of elements that differ from the reference
    excess_err: float  # largest (compiled's error - 2 · eager's error), elementwise, in the same ULPs
    eager_rmse: float
    compiled_rmse: float
    reference_rms: float
    nan_reference: int
    compiled_class_wrong: int  # finite/+inf/-inf/NaN: reference and eager agree, compiled does not
    eager_class_wrong: int  # reference and compiled agree, eager does not
    inf_flips: int  # of compiled_class_wrong: +inf on one side, -inf on the other
    worst: list[dict[str, Any]]  # up to 4: {"index": [..], "eager": x, "compiled": x, "reference": x}


class EndMap(TypedDict):
    """How the child ended. ``how``: done | signal | exit | timeout | memory | processes | output | files | lost.

    ``lost`` is said by the orchestrator, of a fork server that died under the program; ``stage`` is then empty.
    """

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
    undefined: str  # absent, or why its result is undefined: "float to int out of range", "shift past the width", …


class ObservationMap(TypedDict, total=False):
    id: str
    variant: str
    stages: list[StageMap]
    end: EndMap
    leaves: list[LeafMap]
    self_leaves: list[LeafMap]  # eager against eager again; only those that differ
    second_leaves: list[LeafMap]
    aliases: dict[str, list[list[str]]]  # "eager"/"compiled" -> groups of paths that share memory
    ops: list[OpMap]
    perturbed_leaves: list[LeafMap]  # eager against eager on inputs moved by one ULP
    rounded_leaves: list[LeafMap]  # eager against eager with random rounding
    recomputed_leaves: list[LeafMap]  # eager against eager with each use of a result rounded for itself
    tied_leaves: list[LeafMap]  # eager against eager with ties decided the other way
    values: list[list[str]]  # per input leaf: words for its elements (see harness.observe.value_words)
    cxx: dict[str, Any]  # the C++ step: kernels, their cost and forms (see harness.toolchain.Cost)
    sources: list[str]  # of generated kernels, with the option of that name
    interpreted: dict[str, Any]  # with the option interpret: see harness.interpreter.Counts; or why not: unavailable
    random_leaves: list[LeafMap]  # on the default random path: leaves that differ in shape, dtype or device
    eager_zero: float  # with META["expect_zero"]: largest magnitude in eager's outputs
    rng: dict[str, bool]  # "equal": both sides left the generator in the same state
    bisect: dict[str, Any]  # what torch's own bisector named
    server_rss: int
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
