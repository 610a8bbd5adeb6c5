# SPDX-License-Identifier: MIT
"""The installer. Standard library only: this runs before anything is installed."""
