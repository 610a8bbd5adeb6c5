# SPDX-License-Identifier: MIT
"""The world: moves arrive or are blocked, the gripper holds or slips, nothing moves by itself."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from equi_core.contract import ImageSpec
from equi_core.motion.ur5_kinematics import KinematicsError, OutOfReachError, SingularPoseError
from equi_rl.sim.errors import SceneError, SimError
from equi_rl.sim.gripper import GripperError
from equi_rl.sim.object_parts import handle_position_m
from equi_rl.sim.scene import ObjectKind, Scene, SceneObject
from equi_rl.sim.world import World

CENTRE = (0.5, 0.0)


@pytest.fixture
def world():
    world = World()
    yield world
    world.close()


def block(x=0.5, y=0.0, yaw=0.0, movable=True, size=(0.05, 0.05, 0.05)):
    return SceneObject(
        ObjectKind.BLOCK, (x, y, size[2] / 2), yaw, movable, size_m=size, friction=0.6
    )


def drawer(movable=True, yaw=0.0):
    return SceneObject(
        ObjectKind.DRAWER, (0.65, 0.0, 0.0), yaw, movable, size_m=(0.11, 0.114, 0.054), mass_kg=0.5
    )


def over(*objects, z=0.1, yaw=0.0, opening=1.0):
    return Scene(objects=objects, tcp_position_m=(*CENTRE, z), yaw_rad=yaw, opening=opening)


def beside(*objects):
    """Low, with closed fingers side by side along y: ready to push towards +x."""
    return over(*objects, z=0.03, yaw=math.pi / 2, opening=0.0)


def grasp(world: World) -> None:
    world.move_tcp((*CENTRE, 0.025), world.commanded_pose()[1])
    world.move_gripper(0.0)


class TestMoving:
    @pytest.mark.parametrize("corner", [(0.3, -0.2, 0.01), (0.7, 0.2, 0.25), (0.3, 0.2, 0.25)])
    def test_the_arm_reaches_the_corners_of_the_workspace(self, world, corner):
        position, yaw = world.commanded_pose()
        for fraction in np.linspace(0.2, 1.0, 5):
            target = np.array(position) + fraction * (np.array(corner) - position)
            assert world.move_tcp(target, yaw + 0.3 * fraction)
        assert_allclose(world.get_state().tcp_position_m, corner, atol=2e-4)
        assert world.commanded_pose()[1] == pytest.approx(yaw + 0.3)

    @pytest.mark.parametrize("far", [(1.2, 0.0, 0.2), (0.02, 0.0, 0.2)])
    def test_a_target_out_of_reach_is_refused_and_the_world_stays_usable(self, world, far):
        before = world.get_state().tcp_position_m
        with pytest.raises(KinematicsError, match="reach"):
            world.move_tcp(far, world.commanded_pose()[1])
        assert_allclose(world.get_state().tcp_position_m, before, atol=1e-9)
        assert world.move_tcp((0.52, 0.0, 0.18), world.commanded_pose()[1])

    def test_a_scene_out_of_reach_is_refused_and_the_old_one_stays(self, world):
        world.reset(over(block()))
        with pytest.raises((OutOfReachError, SingularPoseError)):
            world.reset(dataclasses.replace(over(), tcp_position_m=(2.0, 0.0, 0.2)))
        assert len(world.get_state().scene.objects) == 1

    def test_joint_targets_that_are_not_finite_are_refused(self, world):
        with pytest.raises(KinematicsError, match="finite"):
            world.arm.set_joint_targets([math.nan] * 6)

    def test_streamed_joint_targets_are_followed(self, world):
        joints, _ = world.arm.measured()
        wanted = joints + np.array([0.02, -0.02, 0.02, 0.01, 0.0, 0.05])
        world.arm.set_joint_targets(wanted.tolist())
        world.step_physics(0.5)
        assert_allclose(world.arm.measured()[0], wanted, atol=1e-3)

    def test_a_move_into_an_immovable_block_is_blocked_and_soon_given_up(self, world):
        world.reset(beside(block(x=0.58, movable=False)))
        world.spent.clear()
        arrived = world.move_tcp((0.55, 0.0, 0.03), world.commanded_pose()[1])
        # The finger's front, 11 mm ahead of the TCP, meets the block's face at x = 0.555.
        assert not arrived
        assert world.get_state().blocked
        assert world.get_state().tcp_position_m[0] == pytest.approx(0.544, abs=0.004)
        assert world.get_state().scene.objects[0].position_m == (0.58, 0.0, 0.025)
        assert world.spent.physics_steps < 150

    def test_after_a_blocked_move_the_arm_can_leave_again(self, world):
        world.reset(beside(block(x=0.58, movable=False, yaw=0.6)))
        for _ in range(3):
            world.move_tcp((0.57, 0.0, 0.03), world.commanded_pose()[1])
        position, yaw = world.commanded_pose()
        assert world.move_tcp((position[0], position[1], 0.08), yaw)

    def test_a_pushed_movable_block_moves_with_the_fingers_and_stays_upright(self, world):
        world.reset(beside(block(x=0.58)))
        for x in (0.55, 0.60):
            assert world.move_tcp((x, 0.0, 0.03), world.commanded_pose()[1])
            world.wait_for_rest()
        pushed = world.get_state().scene.objects[0]
        assert pushed.position_m[0] == pytest.approx(0.60 + 0.011 + 0.025, abs=0.006)
        assert pushed.position_m[2] == pytest.approx(0.025, abs=0.001)


class TestHolding:
    def test_closing_on_nothing_is_not_holding(self, world):
        world.reset(over())
        world.move_gripper(0.0)
        state = world.get_state()
        assert not state.holding
        assert state.scene.opening == pytest.approx(0.0, abs=0.02)

    @pytest.mark.parametrize("movable", [True, False])
    def test_closing_on_a_block_is_holding_whether_it_can_move_or_not(self, world, movable):
        world.reset(over(block(movable=movable)))
        grasp(world)
        state = world.get_state()
        assert state.holding
        assert state.held_object == 0
        assert state.scene.opening * 0.085 == pytest.approx(0.05, abs=0.002)

    def test_a_movable_block_comes_up_with_the_gripper(self, world):
        world.reset(over(block()))
        grasp(world)
        for z in (0.075, 0.125):
            world.move_tcp((*CENTRE, z), world.commanded_pose()[1])
        state = world.get_state()
        assert state.holding
        assert state.scene.objects[0].position_m[2] == pytest.approx(0.125, abs=0.004)

    def test_an_immovable_block_slips_out_and_holding_ends(self, world):
        world.reset(over(block(movable=False)))
        grasp(world)
        for z in (0.075, 0.125):
            world.move_tcp((*CENTRE, z), world.commanded_pose()[1])
            world.move_gripper(0.0)
        state = world.get_state()
        assert not state.holding
        assert state.tcp_position_m[2] == pytest.approx(0.125, abs=0.002)
        assert state.scene.objects[0].position_m == (0.5, 0.0, 0.025)

    def test_opening_lets_go(self, world):
        world.reset(over(block()))
        grasp(world)
        world.move_tcp((*CENTRE, 0.06), world.commanded_pose()[1])
        world.move_gripper(1.0)
        world.wait_for_rest()
        state = world.get_state()
        assert not state.holding
        assert state.scene.objects[0].position_m[2] == pytest.approx(0.025, abs=0.001)

    def test_reaching_the_commanded_opening_beside_a_block_is_not_holding(self, world):
        world.reset(over(block()))
        world.move_tcp((*CENTRE, 0.025), world.commanded_pose()[1])
        world.move_gripper(0.7)  # 59.5 mm: wider than the block
        assert not world.get_state().holding

    def test_closing_on_a_drawer_handle_is_holding(self, world):
        scene = over(drawer(movable=False))
        x, y, z = handle_position_m(scene.objects[0])
        world.reset(dataclasses.replace(scene, tcp_position_m=(x, y, 0.1), opening=0.5))
        world.move_tcp((x, y, z), world.commanded_pose()[1])
        world.move_gripper(0.0)
        assert world.get_state().holding
        assert world.get_state().scene.opening * 0.085 == pytest.approx(0.015, abs=0.002)

    @pytest.mark.parametrize("opening", [math.nan, -0.1, 1.1])
    def test_an_opening_out_of_range_is_refused(self, world, opening):
        with pytest.raises(GripperError, match=r"\[0, 1\]"):
            world.move_gripper(opening)

    def test_fingers_at_rest_do_not_yield_to_the_arm(self, world):
        scene = beside(block(x=0.58, movable=False, yaw=math.pi / 4))
        world.reset(dataclasses.replace(scene, opening=0.5))
        for _ in range(2):
            world.move_tcp((0.58, 0.0, 0.03), world.commanded_pose()[1])
        assert world.get_state().scene.opening == pytest.approx(0.5, abs=0.03)


class TestDrawers:
    @pytest.mark.parametrize("movable", [True, False])
    def test_a_hooked_drawer_opens_only_if_it_is_unlocked(self, world, movable):
        scene = over(drawer(movable))
        x, y, _ = handle_position_m(scene.objects[0])
        start = dataclasses.replace(
            scene, tcp_position_m=(x + 0.028, y, 0.1), yaw_rad=math.pi / 2, opening=0.0
        )
        world.reset(start)
        yaw = world.commanded_pose()[1]
        assert world.move_tcp((x + 0.028, y, 0.01), yaw)
        for pull in (0.05, 0.1):
            world.move_tcp((x + 0.028 - pull, y, 0.01), yaw)
        extension = world.get_state().scene.objects[0].extension_m
        # 10 cm of travel less the 9.5 mm of play between finger and bar.
        assert extension == (pytest.approx(0.0905, abs=0.004) if movable else 0.0)
        assert world.get_state().blocked != movable


class TestRest:
    @pytest.mark.parametrize("objects", [(block(), block(0.6, 0.1, 0.3)), (drawer(),)])
    def test_untouched_objects_stay_exactly_where_they_were_put(self, world, objects):
        world.reset(over(*objects, z=0.2))
        before = world.heights(ImageSpec(), CENTRE)
        world.step_physics(2.0)
        assert_array_equal(world.heights(ImageSpec(), CENTRE), before)
        assert world.get_state().scene.objects == objects

    def test_a_gripper_that_comes_near_without_touching_changes_nothing(self, world):
        world.reset(over(block()))
        world.move_tcp((*CENTRE, 0.02), world.commanded_pose()[1])
        assert world.get_state().scene.objects[0].position_m == (0.5, 0.0, 0.025)

    def test_the_same_commands_give_the_same_bits_whatever_happened_before(self, world):
        def episode() -> np.ndarray:
            world.reset(over(block(0.51, 0.01, 0.2)))
            grasp(world)
            world.move_tcp((0.53, 0.02, 0.08), world.commanded_pose()[1])
            return world.heights(ImageSpec(), CENTRE)

        first = episode()
        world.reset(over(block(), drawer()))
        world.move_tcp((0.45, 0.1, 0.05), world.commanded_pose()[1])
        assert_array_equal(episode(), first)

    @pytest.mark.parametrize("earlier_rad", [-3.0, -1.0, 1.0, 3.0])
    @pytest.mark.parametrize("yaw_rad", [-3.0, 3.0])
    def test_the_wrist_of_an_earlier_episode_does_not_reach_the_next(
        self, world, earlier_rad, yaw_rad
    ):
        world.reset(over(yaw=earlier_rad))
        (x, y, z), yaw = world.commanded_pose()
        world.move_tcp((x, y, z), yaw + math.copysign(0.5, yaw))
        world.reset(over(yaw=yaw_rad))
        # A turn more or less is the same pose, and other digits: an episode would round otherwise.
        assert world.commanded_pose()[1] == pytest.approx(yaw_rad)


class TestBadScenes:
    def test_a_block_without_size_is_refused(self):
        with pytest.raises(SceneError, match="positive"):
            block(size=(0.0, 0.05, 0.05))

    def test_a_place_that_is_not_a_number_is_refused(self):
        with pytest.raises(SceneError, match="finite"):
            block(x=math.nan)

    def test_a_closed_world_says_so(self):
        world = World()
        world.close()
        world.close()
        with pytest.raises(SimError, match="closed"):
            world.reset(over())
