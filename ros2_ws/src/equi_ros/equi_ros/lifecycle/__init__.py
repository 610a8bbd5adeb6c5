# SPDX-License-Identifier: MIT
"""Lifecycle nodes, and the manager that brings them up in order and down on any error."""
