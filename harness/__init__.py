"""What runs inside the target interpreter. Standard library, torch and msgpack only; never imports ``fuzzer``.

A private copy of this package is staged on the target's path, so it must run on every Python (3.10 and newer)
and torch (2.4 and newer) that a target may have.
"""
