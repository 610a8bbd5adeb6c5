# SPDX-License-Identifier: MIT
"""Evaluation as software: seeded episodes, records, labels, and a report in one file."""
