# SPDX-License-Identifier: MIT
"""Publishes what the policy believes as markers: a disc on every object, with its probability.

Topic `belief_marker`: for RViz and Foxglove as it is; records, videos and the console read the text
of each marker. Without a probe beside the model nothing is published.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from equi_interfaces.msg import Observation
from rclpy.node import Node
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from equi_core.belief.probe import BeliefProbe, ProbeError
from equi_core.belief.probe_file import StoredProbe
from equi_core.contract import PolicyContract
from equi_ros import qos

_DISC_M = 0.03
_HEIGHT_M = 0.08


class BeliefPublisher:
    """Shows a policy's belief; never keeps it from acting."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._markers = node.create_publisher(MarkerArray, "belief_marker", qos.LATCHED)
        self._probe: BeliefProbe | None = None
        self._contract: PolicyContract | None = None

    def load(self, folder: Path, contract: PolicyContract) -> None:
        """Take the probe beside a model, if there is one and it belongs to it."""
        self._probe, self._contract = None, contract
        try:
            stored = StoredProbe.load(folder, contract)
        except ProbeError as error:
            self._node.get_logger().error(f"no belief is shown: {error}")
            return
        if stored is not None:
            # Takes its time: not in mid-episode. Needs torch, which the policy has loaded by now.
            import equi_policy.belief  # noqa: F401

            self._probe = stored.probe

    def publish(self, state: Any, message: Observation) -> None:
        """Show what is believed after an observation.

        Args:
            state: of the policy; anything but a `PolicyState` has no memory to look into.
            message: the observation.
        """
        if self._probe is None or self._contract is None or not hasattr(state, "hidden"):
            return
        from equi_policy.belief import Glance, beliefs  # loaded with the probe
        from equi_policy.messages import received_observation

        tcp = message.tcp_position
        glance = Glance(
            received_observation(message).image,
            tcp.z,
            message.tcp_yaw_rad,
            float(message.gripper_opening),
        )
        found = beliefs(self._probe, state, glance, self._contract.image)
        markers = [Marker(ns="belief", action=Marker.DELETEALL, header=message.header)]
        for number, item in enumerate(found):
            marker = Marker(ns="belief", id=number, type=Marker.CYLINDER, action=Marker.ADD)
            marker.header = message.header
            marker.pose.position.x = tcp.x + item.place_m[0]
            marker.pose.position.y = tcp.y + item.place_m[1]
            marker.pose.position.z = _HEIGHT_M
            marker.pose.orientation.w = 1.0
            marker.scale.x = marker.scale.y = _DISC_M
            marker.scale.z = 0.002
            share = item.probability
            marker.color = ColorRGBA(r=1.0 - share, g=share, b=0.2, a=0.9)
            marker.text = f"{share:.2f}"
            markers.append(marker)
        self._markers.publish(MarkerArray(markers=markers))
