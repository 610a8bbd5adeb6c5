# SPDX-License-Identifier: MIT
"""Exported policies as a collection: what there is, what each is worth, whether it is intact."""
