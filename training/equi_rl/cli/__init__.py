# SPDX-License-Identifier: MIT
"""Commands: one file per command of the training package."""
