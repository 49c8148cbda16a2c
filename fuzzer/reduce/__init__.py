"""Reduction: the smallest program that still shows the same fault.

Passes propose smaller programs and never run anything; a predicate that the caller gives decides what "the same
fault" is. To add a pass, write one function ``ProgramView -> Iterator[ProgramView]`` and put it into ``search.PASSES``.
"""

from fuzzer.reduce.predicate import SameFault, Slip
from fuzzer.reduce.search import PASSES, Fails, Reduction, reduce_program

__all__ = ["PASSES", "Fails", "Reduction", "SameFault", "Slip", "reduce_program"]
