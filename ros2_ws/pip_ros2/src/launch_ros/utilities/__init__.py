# SPDX-License-Identifier: MIT
"""Names and parameters, brought into the form that nodes take on their command line."""
