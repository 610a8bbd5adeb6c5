# SPDX-License-Identifier: MIT
"""The documentation site: gathers the pages, generates the reference, checks links and commands."""
