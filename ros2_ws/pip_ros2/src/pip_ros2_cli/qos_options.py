# SPDX-License-Identifier: MIT
"""Quality of service of subscriptions and publishers made by commands."""

from __future__ import annotations

import argparse

import rclpy.qos
from rclpy.node import Node
from rclpy.qos import QoSDurabilityPolicy, QoSHistoryPolicy, QoSProfile, QoSReliabilityPolicy

from .errors import CommandError

PROFILES = {
    "default": rclpy.qos.qos_profile_default,
    "sensor_data": rclpy.qos.qos_profile_sensor_data,
    "system_default": rclpy.qos.qos_profile_system_default,
    "services_default": rclpy.qos.qos_profile_services_default,
    "parameters": rclpy.qos.qos_profile_parameters,
    "parameter_events": rclpy.qos.qos_profile_parameter_events,
}


def add_qos_options(parser: argparse.ArgumentParser, *, of_publishers: bool = True) -> None:
    """Add ROS's options; without them a subscription matches the publishers.

    Args:
        parser: Gets the options.
        of_publishers: Whether the defaults are those of the publishers, not of the profile.
    """
    default = "that of the publishers" if of_publishers else "that of the profile"
    parser.add_argument("--qos-profile", choices=sorted(PROFILES), help="start from this profile")
    parser.add_argument("--qos-depth", type=int, help="length of the queue")
    parser.add_argument(
        "--qos-history", choices=["keep_last", "keep_all", "system_default"], help="history policy"
    )
    parser.add_argument(
        "--qos-reliability",
        choices=["reliable", "best_effort", "system_default"],
        help=f"reliability (default: {default})",
    )
    parser.add_argument(
        "--qos-durability",
        choices=["transient_local", "volatile", "system_default"],
        help=f"durability (default: {default})",
    )


def profile_of(options: argparse.Namespace) -> QoSProfile:
    """Return the profile that the options name, with their changes."""
    return _with_options(_named_profile(options), options)


def choose_qos(node: Node, topic: str, options: argparse.Namespace) -> QoSProfile:
    """Return a profile that is compatible with all present publishers, then apply the options."""
    profile = _named_profile(options)
    if options.qos_profile is None:
        publishers = node.get_publishers_info_by_topic(topic)
        reliable = [
            info.qos_profile.reliability == QoSReliabilityPolicy.RELIABLE for info in publishers
        ]
        latched = [
            info.qos_profile.durability == QoSDurabilityPolicy.TRANSIENT_LOCAL
            for info in publishers
        ]
        # Ask for no more than every publisher offers, else the weaker ones are not heard.
        if publishers and not all(reliable):
            profile.reliability = QoSReliabilityPolicy.BEST_EFFORT
        if publishers and all(latched):
            profile.durability = QoSDurabilityPolicy.TRANSIENT_LOCAL
    return _with_options(profile, options)


def _named_profile(options: argparse.Namespace) -> QoSProfile:
    given = PROFILES[options.qos_profile or "default"]
    return QoSProfile(
        depth=given.depth or 10,
        history=given.history,
        reliability=given.reliability,
        durability=given.durability,
    )


def _with_options(profile: QoSProfile, options: argparse.Namespace) -> QoSProfile:
    if options.qos_depth is not None and options.qos_depth < 0:
        raise CommandError(f"--qos-depth must not be negative, got {options.qos_depth}")
    if options.qos_depth is not None:
        profile.depth = options.qos_depth
    if options.qos_history is not None:
        profile.history = getattr(QoSHistoryPolicy, options.qos_history.upper())
    if options.qos_reliability is not None:
        profile.reliability = getattr(QoSReliabilityPolicy, options.qos_reliability.upper())
    if options.qos_durability is not None:
        profile.durability = getattr(QoSDurabilityPolicy, options.qos_durability.upper())
    return profile
