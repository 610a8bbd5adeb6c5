# SPDX-License-Identifier: MIT
"""Verdict on a solution: checks against limits, quick check, report, result file."""
