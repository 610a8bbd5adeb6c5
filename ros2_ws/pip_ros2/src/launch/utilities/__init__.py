# SPDX-License-Identifier: MIT
"""Text, substitutions and types: the small conversions that all actions share."""

from __future__ import annotations

from .._outside_subset import refuse_missing_names
from .normalize import (
    ensure_argument_type,
    is_a_subclass,
    normalize_to_list_of_entities,
    normalize_to_list_of_substitutions,
    perform_substitutions,
)

__all__ = [
    "ensure_argument_type",
    "is_a_subclass",
    "normalize_to_list_of_entities",
    "normalize_to_list_of_substitutions",
    "perform_substitutions",
]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    (
        "class_tools_impl",
        "create_future",
        "create_futures_impl",
        "signal_management",
        "visit_all_entities_and_collect_futures",
    ),
)
