# SPDX-License-Identifier: MIT
"""What a recurrent policy believes: an equivariant linear probe on its LSTM state."""
