# SPDX-License-Identifier: MIT
"""Where work is done: a pool of local processes or of Ray actors. Knows nothing of learning."""
