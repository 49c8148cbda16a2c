"""Programs without a feature: for each dimension of the feature space, ways to be rid of one of its values.

Each way changes as little else as it can. What runs is still judged against its own eager execution, so it need not
compute the same as before; it has to be a program that eager accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from fuzzer.engines.view import ProgramView
from fuzzer.switches import boundary, code, inputs, settings

#: Dimension → its ways, the best first. In the order in which a feature tells most about a bug.
SWITCHES: Mapping[str, Callable[[ProgramView, str], Iterator[ProgramView]]] = {
    "mechanism": code.mechanism,
    "config": settings.config,
    "mode": settings.mode,
    "layout": inputs.layout,
    "boundary": boundary.boundary,
    "dtype": inputs.dtype,
    "control": code.control,
    "mutation": code.mutation,
    "cast": code.cast,
    "python": code.python,
    "context": settings.context,
    "op_family": code.op_family,
    "shape": inputs.shape,
    "dtype_mix": code.dtype_mix,
    "adjacency": code.adjacency,
    "broadcast": code.broadcast,
    "values": inputs.values,
    "topology": code.topology,
}


def ways(view: ProgramView, feature: str) -> Iterator[ProgramView]:
    """The normalised view without the feature (``dimension=value``), by each way that applies."""
    dimension, _, value = feature.partition("=")
    switch = SWITCHES.get(dimension)
    if switch is not None:
        yield from switch(view, value)
