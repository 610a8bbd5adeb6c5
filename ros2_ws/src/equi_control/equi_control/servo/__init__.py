# SPDX-License-Identifier: MIT
"""The servo process: a loop at the controller's rate, and the state it shares with the driver."""
