# SPDX-License-Identifier: MIT
"""What event handlers and functions may return: one entity or several."""

from __future__ import annotations

from collections.abc import Iterable

from .launch_description_entity import LaunchDescriptionEntity

SomeEntitiesType = LaunchDescriptionEntity | Iterable[LaunchDescriptionEntity]
