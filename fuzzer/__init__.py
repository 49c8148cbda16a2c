"""Eddy: a closed-loop, coverage-guided fuzzer for torch.compile. This package never imports torch."""

__version__ = "0.1.0"
