# SPDX-License-Identifier: MIT
"""Studies that need the simulator together with perception, policy or calibration."""
