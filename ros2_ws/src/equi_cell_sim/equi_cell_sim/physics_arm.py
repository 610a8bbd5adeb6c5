# SPDX-License-Identifier: MIT
"""The arm of the training simulation behind the emulated controller: motors, contacts, grasps.

The controller's joint targets drive the same PyBullet UR5, gripper and objects that policies are
trained in, stepped in real time. A scene can be replaced while the arm stays where it is.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equi_cell_sim.scene_data import goal_from_data, object_from_data, state_to_data
from equi_cell_sim.scene_snapshot import SceneWriter
from equi_core.motion.ur5_kinematics import HOME_RAD
from equi_rl.sim.arm import POSITION_GAIN
from equi_rl.sim.gripper import FORCE_RANGE_N, SPEED_RANGE_M_S
from equi_rl.sim.scene import Scene, SceneObject
from equi_rl.sim.stiff_arm import FINE_SOLVER_ITERATIONS
from equi_rl.sim.world import PhysicsConfig, World
from ur_emulator.arms import GRIPPER_STROKE_M, SceneRefusedError, lagged
from ur_emulator.mechanics.contact import Obstacle
from ur_emulator.mechanics.kinematics import Kinematics
from ur_emulator.mechanics.links import LINKS
from ur_emulator.profile import LENIENT, Profile

FloatArray = NDArray[np.float64]

# Physics steps per second: the first multiple of the controller's rate that the contacts need.
_PHYSICS_RATE_HZ = {125: 250, 500: 500}
# An arm that was held back and slips free returns to its path no faster than this beyond the path's
# own speed. The motors alone would make 13 mm at 0.6 m/s, which no controller lets an arm do.
_CATCH_UP_RAD_S = 0.35
_SNAPSHOT_PERIOD_S = 0.02
# Above this the rigid-body contacts are pressed into each other and the object is squeezed out.
_MAX_FORCE_N = 40.0
_DROP_DISTANCE_M = 0.10


class PhysicsGripper:
    """The world's gripper as the Robotiq unit sees it."""

    def __init__(self, arm: PhysicsArm) -> None:
        self._arm = arm
        self._command = (1.0, 0.15, 20.0)
        self._jammed = False

    @property
    def opening_m(self) -> float:
        """Measured gap [m]."""
        return self._gripper.opening * GRIPPER_STROKE_M

    @property
    def stopped_by_contact(self) -> bool:
        """The fingers rest short of the commanded gap."""
        short_m = abs(self._command[0] - self._gripper.opening) * GRIPPER_STROKE_M
        return (self._gripper.settled or self._jammed) and short_m > 0.0015

    @property
    def jammed(self) -> bool:
        """Injected fault: the fingers do not move."""
        return self._jammed

    @jammed.setter
    def jammed(self, on: bool) -> None:
        self._jammed = on
        self.apply()

    def command(self, opening_m: float, speed_m_s: float, force_n: float) -> None:
        """Go to a gap; a jammed gripper remembers the command."""
        opening = min(max(opening_m / GRIPPER_STROKE_M, 0.0), 1.0)
        self._command = (
            opening,
            float(np.clip(speed_m_s, *SPEED_RANGE_M_S)),
            float(np.clip(force_n, FORCE_RANGE_N[0], _MAX_FORCE_N)),
        )
        self.apply()

    def lose_object(self) -> None:
        """What is held lies on the table 10 cm away."""
        self._arm.drop_held_object()

    def apply(self) -> None:
        """Command the motors: to the commanded gap, or to the present one when jammed."""
        opening, speed_m_s, force_n = self._command
        goal = self._gripper.opening if self._jammed else opening
        self._gripper.set_target(goal, speed_m_s, force_n)

    @property
    def _gripper(self) -> Any:
        return self._arm.world.gripper


class PhysicsArm:
    """The training world, one controller period at a time."""

    def __init__(
        self, rate_hz: int, scene_file: Path | None = None, profile: Profile = LENIENT
    ) -> None:
        self.kinematics = Kinematics(LINKS["ur5"])
        self.flange_from_tcp = np.eye(4)
        self.contact_wrench = np.zeros(6)
        self.obstacles: tuple[Obstacle, ...] = ()
        self._stiffness_n_m = profile.arm_stiffness_n_m
        self._joint_lag_s = profile.joint_lag_s
        steps = _PHYSICS_RATE_HZ[rate_hz] // rate_hz
        # The motors add the streamed speed to their pull towards the target: aimed this share of a
        # cycle's step before it, they are there when the cycle ends.
        self._aim_before = (steps + 1) / (2 * steps)
        self._unhindered_rad = np.array(HOME_RAD)
        self.world = World(
            PhysicsConfig(
                rate_hz=_PHYSICS_RATE_HZ[rate_hz],
                contact_solver_iterations=FINE_SOLVER_ITERATIONS,
            )
        )
        self._free_lead_rad = _CATCH_UP_RAD_S / (POSITION_GAIN * _PHYSICS_RATE_HZ[rate_hz])
        self.gripper = PhysicsGripper(self)
        self._writer = SceneWriter(scene_file) if scene_file is not None else None
        self._until_snapshot_s = 0.0
        self.joints_rad = np.array(HOME_RAD)
        self.speeds_rad_s = np.zeros(6)
        self.place(self.joints_rad)

    def follow(self, target_rad: FloatArray, target_speeds: FloatArray, period_s: float) -> None:
        """Stream the target to the motors and let one period pass."""
        if self._is_stiff:
            self._stream_stiffly(target_rad, period_s)
        else:
            lead_rad = self._free_lead_rad + np.abs(target_speeds) * period_s
            near_rad = np.clip(target_rad, self.joints_rad - lead_rad, self.joints_rad + lead_rad)
            self.world.arm.set_joint_targets(near_rad.tolist(), target_speeds.tolist())
        gripper = self.world.gripper
        self.world.solve_finely(self._is_stiff or gripper.holding or gripper.resisted)
        self.world.step_physics(period_s)
        gripper.update(period_s)
        self.joints_rad, self.speeds_rad_s = self.world.arm.measured()
        self._feel_contact()
        self._publish_shapes(period_s)

    @property
    def _is_stiff(self) -> bool:
        """Whether contact shows as force: then it must be solved finely from its first moment.

        Solved coarsely until something is felt, a block under a finger sinks in by millimetres, and
        the arm is thrown back when the solver changes: protective stops that no robot would make.
        """
        return self._stiffness_n_m > 0

    def _stream_stiffly(self, target_rad: FloatArray, period_s: float) -> None:
        """Follow the target with the lag of a real arm's joints, whatever stands in the way."""
        before_rad = self._unhindered_rad
        self._unhindered_rad = lagged(before_rad, target_rad, self._joint_lag_s, period_s)
        step_rad = self._unhindered_rad - before_rad
        aim_rad = self._unhindered_rad - self._aim_before * step_rad
        self.world.arm.set_joint_targets(aim_rad.tolist(), (step_rad / period_s).tolist())

    def _feel_contact(self) -> None:
        """The force of what holds the tool back: the arm's stiffness times its displacement.

        The physics' own contact forces are no measure: its motors push with all their torque as
        soon as anything resists.
        """
        if not self._is_stiff:
            return
        tool = self.flange_from_tcp
        wanted_m = self.kinematics.base_from_tcp(self._unhindered_rad, tool)[:3, 3]
        reached_m = self.kinematics.base_from_tcp(self.joints_rad, tool)[:3, 3]
        self.contact_wrench[:3] = self._stiffness_n_m * (reached_m - wanted_m)

    def place(self, joints_rad: FloatArray) -> None:
        """Put the arm somewhere at rest."""
        self._unhindered_rad = np.array(joints_rad, dtype=np.float64)
        self.world.arm.teleport(joints_rad.tolist())
        self.joints_rad, self.speeds_rad_s = self.world.arm.measured()

    def scene(self) -> dict[str, Any]:
        """The scene as measured: objects, TCP, opening, holding."""
        return state_to_data(self.world.get_state())

    def reset_scene(self, scene: dict[str, Any]) -> None:
        """Replace objects and goal; arm and fingers stay where they are."""
        unknown = set(scene) - {"objects", "goal_xy_m"}
        if unknown:
            raise SceneRefusedError(
                f"scene has {sorted(unknown)}; only objects and goal_xy_m can be set, the arm stays"
            )
        objects = tuple(object_from_data(item) for item in scene.get("objects", ()))
        self._rebuild(objects, goal_from_data(scene))

    def drop_held_object(self) -> None:
        """Put the held object on the table beside the gripper; nothing happens if none is held."""
        state = self.world.get_state()
        if state.held_object is None:
            return
        objects = list(state.scene.objects)
        held = objects[state.held_object]
        x, y, _ = held.position_m
        objects[state.held_object] = dataclasses.replace(
            held,
            position_m=(x, y + _DROP_DISTANCE_M, held.size_m[2] / 2),
            quaternion_xyzw=None,
        )
        self._rebuild(tuple(objects), state.scene.goal_xy_m)

    def close(self) -> None:
        """Release the physics server."""
        if self._writer is not None:
            self._writer.close()
        self.world.close()

    def _rebuild(
        self, objects: tuple[SceneObject, ...], goal_xy_m: tuple[float, float] | None
    ) -> None:
        opening = self.world.gripper.opening
        self.world.reset(Scene(objects=objects, opening=opening, goal_xy_m=goal_xy_m))
        self.place(self.joints_rad)
        self.gripper.apply()

    def _publish_shapes(self, period_s: float) -> None:
        self._until_snapshot_s -= period_s
        if self._writer is not None and self._until_snapshot_s <= 0.0:
            self._until_snapshot_s = _SNAPSHOT_PERIOD_S
            self._writer.publish(self.world.shapes(with_robot=True))
