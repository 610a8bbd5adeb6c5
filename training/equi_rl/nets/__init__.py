# SPDX-License-Identifier: MIT
"""Equivariant recurrent networks, their plain twins, and the fast way to run and update them."""
