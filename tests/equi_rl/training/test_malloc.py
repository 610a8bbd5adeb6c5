# SPDX-License-Identifier: MIT
"""Specification of the heap: memory that an update frees is there for the next one."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import resource, numpy
from equi_rl.training.malloc import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def use():
    before = faults()
    numpy.empty(50_000_000, dtype=numpy.uint8).fill(1)
    return faults() - before

print(keep_freed_memory())
use()
print(use())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mallopt is glibc's")
def test_memory_is_not_faulted_in_again():
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    ).stdout.split()
    if answer[0] == "True":
        assert int(answer[1]) < 100  # 50 MB are 12,000 pages
