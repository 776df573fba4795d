"""Benchmarks: one question a file, peers side by side in one run. ``python -m benchmarks NAME``."""
