# SPDX-License-Identifier: MIT
"""Whether a scene is arranged: blocks and cameras, measured."""
