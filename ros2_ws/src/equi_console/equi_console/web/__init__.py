# SPDX-License-Identifier: MIT
"""The page in the browser and its server."""
