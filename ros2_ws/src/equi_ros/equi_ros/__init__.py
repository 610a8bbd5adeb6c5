# SPDX-License-Identifier: MIT
"""ROS plumbing shared by all nodes: QoS profiles, node main, shutdown, stamps, diagnostics."""
