# SPDX-License-Identifier: MIT
"""Learning algorithms, one readable file each, and the networks that only they use."""
