# SPDX-License-Identifier: MIT
"""The operator's console: a page in the browser over a view model that knows no ROS."""
