# SPDX-License-Identifier: MIT
"""What holds the tree together: real imports, the law of their direction, a drawing, sizes."""
