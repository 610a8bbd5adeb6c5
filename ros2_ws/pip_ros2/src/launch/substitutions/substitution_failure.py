# SPDX-License-Identifier: MIT
"""The error of a substitution that has no text in the present context."""

from __future__ import annotations


class SubstitutionFailure(RuntimeError):
    """A substitution could not be performed."""
