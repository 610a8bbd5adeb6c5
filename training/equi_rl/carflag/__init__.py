# SPDX-License-Identifier: MIT
"""The CarFlag grid worlds and recurrent A2C on them."""
