# SPDX-License-Identifier: MIT
"""Specification of the simulator's state as a critic sees it: complete, and blind to rotation."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from equi_rl.envs import TASKS, make_env
from equi_rl.envs.privileged_state import STATE_SIZE, PrivilegedStateTracker, StateFrame
from equi_rl.sim.scene import Scene, WorldState

CENTRE = (0.5, 0.0)


@pytest.fixture(scope="module", params=TASKS)
def scene(request) -> Scene:
    """The start of an episode, with the gripper away from the middle."""
    env = make_env(request.param)
    drawn = env.sample_scene(np.random.default_rng(5))
    env.close()
    return dataclasses.replace(drawn, tcp_position_m=(0.55, 0.08, 0.05), opening=0.4)


def observed(*scenes: Scene, frame: StateFrame = StateFrame.SCENE):
    """What a critic sees of the last of an episode's scenes."""
    tracker = PrivilegedStateTracker(CENTRE, frame)
    for one in scenes:
        seen = tracker.observe(WorldState(one, holding=False, blocked=True, held_object=None))
    return seen


def test_the_numbers_are_of_order_one_and_as_many_as_announced(scene):
    values = observed(scene).values
    assert values.shape == (STATE_SIZE,)
    assert values.dtype == np.float32
    assert np.abs(values).max() < 3.0


def test_a_quarter_turn_of_the_scene_turns_the_frame_and_changes_no_number(scene):
    still = observed(scene)
    for quarters in (1, 2, 3):
        turned = observed(scene.rotated(quarters * math.pi / 2, CENTRE))
        np.testing.assert_allclose(turned.values, still.values, atol=2e-6)
        turn = turned.frame_rad - still.frame_rad - quarters * math.pi / 2
        assert math.cos(turn) == pytest.approx(1.0)


def test_another_angle_changes_only_how_the_square_workspace_lies(scene):
    still, turned = observed(scene), observed(scene.rotated(0.7, CENTRE))
    np.testing.assert_allclose(turned.values[:-2], still.values[:-2], atol=2e-6)
    assert np.abs(turned.values[-2:] - still.values[-2:]).max() > 0.1


def test_along_the_axes_of_base_link_a_turned_scene_has_other_numbers(scene):
    still, turned = (
        observed(one, frame=StateFrame.BASE) for one in (scene, scene.rotated(math.pi / 2, CENTRE))
    )
    assert still.frame_rad == turned.frame_rad == 0.0
    # A quarter turn leads x to y and y to -x: the place of the gripper seen from the object.
    (x, y), (turned_x, turned_y) = still.values[[0, 3]], turned.values[[0, 3]]
    np.testing.assert_allclose([turned_x, turned_y], [-y, x], atol=2e-6)
    assert np.abs(turned.values - still.values).max() > 0.1
    # The direction that the other frame has for its x axis is a number here, and turns as well.
    c, s = still.values[-2:]
    assert math.atan2(s, c) == pytest.approx(observed(scene).frame_rad, abs=1e-5)
    np.testing.assert_allclose(turned.values[-2:], [-s, c], atol=2e-6)


def test_the_hidden_property_is_seen(scene):
    assert not np.allclose(
        observed(scene).values, observed(scene.with_mobility_swapped()).values, atol=0.05
    )


def test_millimetres_and_time_are_seen(scene):
    x, y, z = scene.tcp_position_m
    moved = dataclasses.replace(scene, tcp_position_m=(x + 0.002, y, z))
    assert np.abs(observed(moved).values - observed(scene).values).max() > 0.005
    assert np.abs(observed(scene, scene).values - observed(scene).values).max() > 0.01


def test_what_was_tried_is_remembered(scene):
    above = dataclasses.replace(scene, tcp_position_m=(*CENTRE, 0.2))
    fixed = next(item for item in scene.objects if not item.movable)
    (x, y), (c, s) = fixed.xy_m, fixed.heading
    tried = dataclasses.replace(scene, tcp_position_m=(x - 0.1 * c, y - 0.1 * s, 0.02))
    stayed, went = observed(above, above, above), observed(above, tried, above)
    assert np.abs(went.values - stayed.values).max() > 0.1
