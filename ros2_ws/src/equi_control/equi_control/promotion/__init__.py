# SPDX-License-Identifier: MIT
"""Shadow, then reduced speed, then full: each stage needs the evidence of the one before."""
