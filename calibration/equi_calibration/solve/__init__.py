# SPDX-License-Identifier: MIT
"""Eye-to-hand calibration: closed-form hand-eye start, bundle adjustment, validation."""
