# SPDX-License-Identifier: MIT
"""The cell in simulation: rendered boards, depth clouds and a simulated arm with known truth.

Only this subpackage imports the simulated world (`equi_rl`), and only where it needs it.
"""
