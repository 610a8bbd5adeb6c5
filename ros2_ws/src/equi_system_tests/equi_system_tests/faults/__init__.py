# SPDX-License-Identifier: MIT
"""Fault injection: the real driver against the emulated robot, measured at the controller."""
