"""Benchmarks: each prints a table and writes its numbers as JSON under docs/benchmarks/."""
