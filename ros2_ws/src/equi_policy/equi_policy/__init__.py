# SPDX-License-Identifier: MIT
"""Robot-side runner of exported policies: plain PyTorch, no training code."""
