# SPDX-License-Identifier: MIT
"""Which clouds and robot state belong together, and whether they may be used at all.

Pure bookkeeping over stamps: the newest cloud of every camera, the history of the robot's states.
`evaluate` returns either what to fuse or one issue per cause. It keeps no state of its own between
calls, so whatever was missing is used as soon as it is back.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from equi_core.setting_fields import setting

_NANOSECONDS = 1_000_000_000
_ROBOT = "(robot)"


class Cause(str, Enum):
    """Why there is no observation. Values are stable: they are published."""

    CLOUD_MISSING = "cloud_missing"
    CLOUD_STALE = "cloud_stale"
    CLOUD_FUTURE = "cloud_future"
    CLOUD_SKEW = "cloud_skew"
    CLOUD_BEFORE_REST = "cloud_before_rest"
    CLOUD_UNREADABLE = "cloud_unreadable"
    CLOUD_EMPTY = "cloud_empty"
    ROBOT_MISSING = "robot_missing"
    ROBOT_STALE = "robot_stale"
    ROBOT_MOVING = "robot_moving"
    ROBOT_FUTURE = "robot_future"
    FOREIGN_PUBLISHER = "foreign_publisher"
    GOAL_MISSING = "goal_missing"


@dataclass(frozen=True)
class FreshnessLimits:
    """How old and how far apart clouds and robot states may be [s]."""

    max_cloud_age_s: float = setting(0.40, low=0.0, high=60.0)
    """Older clouds are not used."""
    max_skew_s: float = setting(0.15, low=0.0, high=60.0)
    """Largest difference between the cameras' stamps."""
    max_robot_age_s: float = setting(0.20, low=0.0, high=60.0)
    """Older robot states are not used."""
    max_future_s: float = setting(0.02, low=0.0, high=60.0)
    """Stamps may run ahead of this machine's clock by this much."""
    rest_margin_s: float = setting(0.02, low=0.0, high=60.0)
    """A cloud must be taken at least this long after the arm came to rest."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"freshness limit '{name}' is {value}; it must be >= 0 s")


@dataclass(frozen=True, eq=False)
class StampedCloud:
    """A cloud with when it was taken and when it arrived."""

    stamp_ns: int
    arrival_ns: int
    cloud: Any


@dataclass(frozen=True, eq=False)
class StampedRobot:
    """What perception needs of a robot state."""

    stamp_ns: int
    moving: bool
    episode_id: str
    executed_steps: int
    state: Any


@dataclass(frozen=True)
class Issue:
    """One reason why there is no observation."""

    cause: Cause
    message: str

    def __str__(self) -> str:
        return f"{self.cause.value}: {self.message}"


@dataclass(frozen=True, eq=False)
class SyncStatus:
    """What to fuse (`robot is not None`), or the issues that prevent it."""

    clouds: Mapping[str, StampedCloud]
    robot: StampedRobot | None
    issues: tuple[Issue, ...]
    cloud_ages_s: tuple[float, ...]
    """Per camera, NaN if none has come."""

    @property
    def ready(self) -> bool:
        """Whether everything is fresh and belongs together."""
        return not self.issues


class FreshnessMonitor:
    """Keeps the newest cloud per camera and when the arm came to rest."""

    def __init__(self, camera_names: tuple[str, ...], limits: FreshnessLimits) -> None:
        self.camera_names = camera_names
        self.limits = limits
        self._clouds: dict[str, StampedCloud] = {}
        self._from_future: dict[str, Issue] = {}
        self._robots: deque[StampedRobot] = deque(maxlen=256)
        self._rest_since_ns: int | None = None

    def add_cloud(self, camera: str, cloud: StampedCloud) -> bool:
        """Keep a cloud; False if it is late, repeated, or stamped in the future."""
        if camera not in self.camera_names:
            raise KeyError(f"camera '{camera}' is unknown; known: {', '.join(self.camera_names)}")
        ahead_s = self._ahead_s(cloud.stamp_ns, cloud.arrival_ns)
        if ahead_s > 0:
            self._from_future[camera] = Issue(
                Cause.CLOUD_FUTURE,
                f"{camera} is stamped {ahead_s:.2f} s in the future and was dropped; "
                "synchronise the clocks",
            )
            return False
        self._from_future.pop(camera, None)
        before = self._clouds.get(camera)
        if (
            before is not None
            and cloud.stamp_ns <= before.stamp_ns
            # A kept stamp from the future means that the clock was set back since.
            and self._ahead_s(before.stamp_ns, cloud.arrival_ns) <= 0
        ):
            return False
        self._clouds[camera] = cloud
        return True

    def add_robot(self, robot: StampedRobot, now_ns: int | None = None) -> bool:
        """Keep a robot state; False if it is older than the newest, or stamped in the future.

        Without `now_ns` the newest of all stamps is taken for the present.
        """
        if now_ns is None:
            now_ns = max([robot.stamp_ns, *(kept.stamp_ns for kept in self._robots)])
        ahead_s = self._ahead_s(robot.stamp_ns, now_ns)
        if ahead_s > 0:
            self._from_future[_ROBOT] = Issue(
                Cause.ROBOT_FUTURE,
                f"the robot state is stamped {ahead_s:.2f} s in the future and was dropped; "
                "synchronise the clocks",
            )
            return False
        self._from_future.pop(_ROBOT, None)
        if self._robots and self._ahead_s(self._robots[-1].stamp_ns, now_ns) > 0:
            # The clock was set back: what was kept cannot be ordered against what comes now.
            self._robots.clear()
            self._rest_since_ns = None
        if self._robots and robot.stamp_ns <= self._robots[-1].stamp_ns:
            return False
        before = self._robots[-1] if self._robots else None
        if robot.moving:
            self._rest_since_ns = None
        elif (
            self._rest_since_ns is None
            or before is None
            # A step may begin and end between two states: only the step count shows it.
            or (before.episode_id, before.executed_steps)
            != (robot.episode_id, robot.executed_steps)
        ):
            self._rest_since_ns = robot.stamp_ns
        self._robots.append(robot)
        return True

    def _ahead_s(self, stamp_ns: int, now_ns: int) -> float:
        """How far a stamp is ahead of the clock, if that is more than allowed; else 0 [s]."""
        ahead_s = (stamp_ns - now_ns) / _NANOSECONDS
        return ahead_s if ahead_s > self.limits.max_future_s else 0.0

    def evaluate(self, now_ns: int) -> SyncStatus:
        """What can be fused now, or why nothing can."""
        issues: list[Issue] = []
        ages = []
        for name in self.camera_names:
            cloud = self._clouds.get(name)
            age_s = math.nan if cloud is None else (now_ns - cloud.stamp_ns) / _NANOSECONDS
            ages.append(age_s)
            future = self._from_future.get(name)
            issues += [future] if future else self._cloud_issues(name, cloud, age_s)
        issues += self._skew_issues()
        robot = self._robots[-1] if self._robots else None
        future = self._from_future.get(_ROBOT)
        issues += [future] if future else self._robot_issues(robot, now_ns)
        return SyncStatus(dict(self._clouds), robot, tuple(issues), tuple(ages))

    def _cloud_issues(self, name: str, cloud: StampedCloud | None, age_s: float) -> list[Issue]:
        limits = self.limits
        if cloud is None:
            return [Issue(Cause.CLOUD_MISSING, f"no cloud of {name} has arrived yet")]
        if age_s > limits.max_cloud_age_s:
            return [
                Issue(
                    Cause.CLOUD_STALE,
                    f"{name} is {age_s:.2f} s old, at most {limits.max_cloud_age_s:.2f} s is "
                    "allowed; check the camera",
                )
            ]
        if age_s < -limits.max_future_s:
            return [
                Issue(
                    Cause.CLOUD_FUTURE,
                    f"{name} is stamped {-age_s:.2f} s in the future; synchronise the clocks",
                )
            ]
        rest = self._rest_since_ns
        if rest is not None and cloud.stamp_ns < rest + limits.rest_margin_s * _NANOSECONDS:
            return [Issue(Cause.CLOUD_BEFORE_REST, f"{name} was taken before the arm came to rest")]
        return []

    def _skew_issues(self) -> list[Issue]:
        if len(self._clouds) < len(self.camera_names):
            return []
        stamps = {name: self._clouds[name].stamp_ns for name in self.camera_names}
        first, last = min(stamps, key=stamps.__getitem__), max(stamps, key=stamps.__getitem__)
        skew_s = (stamps[last] - stamps[first]) / _NANOSECONDS
        if skew_s <= self.limits.max_skew_s:
            return []
        return [
            Issue(
                Cause.CLOUD_SKEW,
                f"{first} is {skew_s:.2f} s older than {last}, at most "
                f"{self.limits.max_skew_s:.2f} s is allowed",
            )
        ]

    def _robot_issues(self, robot: StampedRobot | None, now_ns: int) -> list[Issue]:
        if robot is None:
            return [Issue(Cause.ROBOT_MISSING, "no robot state has arrived yet")]
        age_s = (now_ns - robot.stamp_ns) / _NANOSECONDS
        if age_s > self.limits.max_robot_age_s:
            return [
                Issue(
                    Cause.ROBOT_STALE,
                    f"the robot state is {age_s:.2f} s old, at most "
                    f"{self.limits.max_robot_age_s:.2f} s is allowed; check the driver",
                )
            ]
        if robot.moving:
            return [Issue(Cause.ROBOT_MOVING, "the arm is moving")]
        return []
