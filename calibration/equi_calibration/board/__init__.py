# SPDX-License-Identifier: MIT
"""The ChArUco board: definition, print, detection, and the camera model behind it."""
