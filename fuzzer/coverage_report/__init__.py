"""What a campaign covered, what it never did, and which features reach what."""

from fuzzer.coverage_report.assemble import PARTS, Covered, open_campaign, report
from fuzzer.coverage_report.exports import write_coverage_py, write_lcov
from fuzzer.coverage_report.render import render

__all__ = ["PARTS", "Covered", "open_campaign", "render", "report", "write_coverage_py", "write_lcov"]
