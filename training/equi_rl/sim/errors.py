"""What can be wrong with a request to the simulated world; each error says what to do next."""

from __future__ import annotations

from equi_core.ur5_kinematics import KinematicsError, OutOfReachError, SingularPoseError

__all__ = [
    "KinematicsError",
    "OutOfReachError",
    "SceneError",
    "SimError",
    "SingularPoseError",
]


class SimError(Exception):
    """Base of every error raised by the simulated world."""


class SceneError(SimError, ValueError):
    """A scene whose objects are malformed, overlap the impossible, or do not exist."""
