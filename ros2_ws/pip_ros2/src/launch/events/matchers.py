# SPDX-License-Identifier: MIT
"""Select processes by the action that started them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..action import Action


def matches_action(target_action: Action) -> Callable[[Action], bool]:
    """Return a matcher that is true for this action only."""
    return lambda action: action is target_action
