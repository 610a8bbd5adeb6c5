# SPDX-License-Identifier: MIT
"""Learning curves, tables, reports and videos of finished runs."""
