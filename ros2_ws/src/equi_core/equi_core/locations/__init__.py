# SPDX-License-Identifier: MIT
"""Where the installed system finds its files, and where it may write. No source tree is needed."""
