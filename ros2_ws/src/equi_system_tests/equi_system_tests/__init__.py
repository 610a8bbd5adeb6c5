# SPDX-License-Identifier: MIT
"""Fault injection and studies of the whole system in the simulated cell."""
