# SPDX-License-Identifier: MIT
"""Processes as launch sees them: started, watched, ended with all their children."""
