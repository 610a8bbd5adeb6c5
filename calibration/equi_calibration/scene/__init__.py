# SPDX-License-Identifier: MIT
"""What clouds show of the cell: table plane and blocks of known size."""
