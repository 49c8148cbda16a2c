"""Coverage domains: what a program reached in the compiler, as ids that were not known before.

``native`` functions of shared objects, ``python`` lines of the compiler's packages, ``events`` that the compiler
counts. Each domain is started once in the fork server, before the first fork; marks lie in shared anonymous memory,
so that a child killed at any moment still leaves what it reached.
"""

from harness.coverage.events import CompilerEvents
from harness.coverage.helper import Unavailable
from harness.coverage.native import NativeCoverage
from harness.coverage.python_lines import PythonCoverage

__all__ = ["CompilerEvents", "NativeCoverage", "PythonCoverage", "Unavailable"]
