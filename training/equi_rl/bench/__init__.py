"""Benchmarks of the training half, registered for `equi-bench`."""
