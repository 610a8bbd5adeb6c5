# SPDX-License-Identifier: MIT
"""A subset of ROS 2's launch_ros, for environments in which ROS comes from PyPI.

Same names and semantics as ROS's launch_ros 0.26. What is not here is refused by name; see the
package's README for the list.
"""

from __future__ import annotations

from launch._outside_subset import refuse_missing_names

from . import actions, descriptions, parameter_descriptions, substitutions

__all__ = ["actions", "descriptions", "parameter_descriptions", "substitutions"]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    ("default_launch_description", "event_handlers", "events", "get_default_launch_description"),
)
