# SPDX-License-Identifier: MIT
"""`equi-doctor`: looks at a robot and its cell without moving anything, and says what to repair."""
