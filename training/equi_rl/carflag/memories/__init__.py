# SPDX-License-Identifier: MIT
"""Memories of the CarFlag agents."""
