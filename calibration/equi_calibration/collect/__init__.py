# SPDX-License-Identifier: MIT
"""Recording a data set: poses, cameras, arm, files."""
