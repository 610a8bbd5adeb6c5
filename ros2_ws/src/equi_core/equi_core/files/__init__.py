# SPDX-License-Identifier: MIT
"""Files as plain data: JSON, YAML and arrays with one error each, scenes, bounds of a cell file."""
