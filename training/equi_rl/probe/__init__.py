# SPDX-License-Identifier: MIT
"""The memory microscope: episodes of an exported policy, and the probe that is fitted to them."""
