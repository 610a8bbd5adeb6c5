# SPDX-License-Identifier: MIT
"""What may stand wherever text is asked for: text, a substitution, or a sequence of both."""

from __future__ import annotations

from collections.abc import Iterable

from .substitution import Substitution

SomeSubstitutionsType = str | Substitution | Iterable[str | Substitution]

SomeSubstitutionsType_types_tuple = (str, Substitution, Iterable)
