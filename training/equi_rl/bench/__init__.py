# SPDX-License-Identifier: MIT
"""Benchmarks of the training half, registered for `equi-bench`."""
