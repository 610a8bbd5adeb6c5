# SPDX-License-Identifier: MIT
"""What to do next with one chosen object: pure functions of the world's state.

None of them remembers anything, so they answer just as well in a state that somebody else steered
into, which is what querying an expert on a learner's states needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from equi_core.action import MetricDelta, encode
from equi_core.contract import PolicyContract
from equi_core.geometry import wrap_half_turn_rad
from equi_rl.sim.object_parts import handle_position_m
from equi_rl.sim.scene import WorldState

FloatArray = NDArray[np.float64]

OPEN, HALF_OPEN, CLOSED = 0.0, 0.5, 1.0

# Picking
GRASP_HEIGHT_M = 0.025
HOVER_HEIGHT_M = 0.075
"""One full step above the grasp; fingers clear a 5 cm block there."""
ALIGNED_M = 0.012
# Pushing
TRAVEL_HEIGHT_M = 0.10
PUSH_CORRIDOR_M = 0.02
# Drawers
BEHIND_BAR_M = 0.028
HOOK_HEIGHT_M = 0.010
ABOVE_HOOK_M = 0.10
HOOK_ALIGNED_M = 0.008
"""Farther than this from their place, closed fingers come down on the handle or its posts."""
HOOK_CENTRED_M = 0.004
CLEAR_OF_DRAWER_M = 0.06
"""At this height fingers pass over handle and cabinet; one step leads from there to the hook."""
BELOW_HANDLE_TOP_M = (0.030, 0.036)
"""Fingers that stand on the handle or a post have the TCP at 37 mm or more."""


@dataclass(frozen=True)
class PushStyle:
    """How a block is pushed; pairs are where something holds in full and where no longer."""

    height_m: float
    stand_off_m: tuple[float, float]
    """Least and most distance from the block's centre at which to come down behind it."""
    funnel_m: tuple[float, float]
    """Distance from that place: low up to the first, high from the second on."""
    come_down_rad: tuple[float, float]
    """Yaw error, on the way down."""
    go_on_above_m: tuple[float, float]
    """Height above `height_m`, to move on."""
    go_on_rad: tuple[float, float]
    """Yaw error, to move on."""


HEAVY_BLOCK = PushStyle(
    0.03, (0.085, 0.085), (0.01, 0.04), (0.15, 0.45), (0.02, 0.045), (0.2, 0.35)
)
# A small cube slides away, and under fingers that are too high. Anywhere in a range will do
# to come down: a single place would send a gripper that is a little too near up again.
SMALL_CUBE = PushStyle(0.02, (0.065, 0.105), (0.025, 0.05), (0.3, 0.6), (0.02, 0.05), (0.35, 0.6))


@dataclass(frozen=True)
class Goal:
    """Where the gripper should be, and how closed."""

    position_m: tuple[float, float, float]
    yaw_rad: float
    closedness: float


def action_towards(state: WorldState, goal: Goal, contract: PolicyContract) -> FloatArray:
    """Policy vector (5,) of the next step towards a goal; the gripper rotates the short way.

    The yaw step is a smooth function of the angle to the goal, sin(2 angle) / 2, which fades out
    where both ways are equally long: a policy that imitates it need not choose an extreme.
    """
    box, spec = contract.workspace, contract.action
    target = np.clip(goal.position_m, box.lower_m, box.upper_m)
    step = np.clip(target - state.tcp_position_m, -spec.max_step_m, spec.max_step_m)
    yaw_rad = math.sin(2.0 * (goal.yaw_rad - state.yaw_rad)) / 2.0
    yaw_rad = min(max(yaw_rad, -spec.max_yaw_step_rad), spec.max_yaw_step_rad)
    x, y, z = (float(value) for value in step)
    return encode(MetricDelta(goal.closedness, (x, y, z), yaw_rad), spec)


def pick(state: WorldState, index: int) -> Goal:
    """Hover over a block, come down around it and close, lift.

    The open fingers pass a 5 cm cube at any yaw and turn it when they close, so the gripper turns
    towards the nearest face on its way but never waits for it.
    """
    item = state.scene.objects[index]
    x, y, z = state.tcp_position_m
    block_x, block_y = item.xy_m
    yaw = state.yaw_rad + math.sin(4.0 * (item.yaw_rad - state.yaw_rad)) / 4.0
    off_m = math.hypot(block_x - x, block_y - y)
    if state.holding and off_m < 0.03 and z < HOVER_HEIGHT_M + 0.2:
        return Goal((x, y, z + 0.05), state.yaw_rad, CLOSED)
    is_open = state.scene.opening > 0.8
    if off_m < ALIGNED_M and is_open and z < HOVER_HEIGHT_M + 0.015:
        return Goal((block_x, block_y, GRASP_HEIGHT_M), yaw, CLOSED)
    return Goal((block_x, block_y, HOVER_HEIGHT_M), yaw, OPEN)


def push(
    state: WorldState,
    index: int,
    towards_xy_m: tuple[float, float],
    closedness: float,
    style: PushStyle,
    contract: PolicyContract,
) -> Goal:
    """Come down behind a block and push it, broadside, towards a point."""
    tcp = np.array(state.tcp_position_m)
    block = np.array(state.scene.objects[index].xy_m)
    direction = _direction(block, towards_xy_m)
    across = np.array([-direction[1], direction[0]])
    yaw = math.atan2(across[1], across[0])
    yaw_error_rad = abs(float(wrap_half_turn_rad(yaw - state.yaw_rad)))
    from_block = tcp[:2] - block
    along_m, aside_m = float(from_block @ direction), float(from_block @ across)
    box = contract.workspace
    stand_off_m = min(max(-along_m, style.stand_off_m[0]), style.stand_off_m[1])
    behind = np.clip(block - direction * stand_off_m, box.lower_m[:2], box.upper_m[:2])
    rotated = _fades(yaw_error_rad, *style.come_down_rad)
    low_m = style.height_m
    approach = _down_a_funnel(tcp, behind, rotated, low_m, TRAVEL_HEIGHT_M, style.funnel_m)
    ahead = block + direction * (along_m + 0.05)
    # Shortened as a vector, so that the push keeps its direction.
    step = ahead - tcp[:2]
    step *= min(1.0, contract.action.max_step_m / max(float(np.abs(step).max()), 1e-9))
    advance = np.array([*(tcp[:2] + step), low_m])
    ready = (
        _fades(tcp[2] - low_m, *style.go_on_above_m)
        * _fades(yaw_error_rad, *style.go_on_rad)
        * _fades(abs(aside_m), PUSH_CORRIDOR_M, PUSH_CORRIDOR_M + 0.02)
        * _fades(along_m, -0.02, 0.0)
    )
    return _blended(approach, advance, ready, yaw, closedness)


def open_drawer(state: WorldState, index: int, *, stiff_arm: bool = False) -> Goal:
    """Reach with closed fingers behind the handle bar and pull.

    Fingers that come down on the handle or its posts stay there, however long they press. So with
    a `stiff_arm` they wait above until they are over the gap, and rise from what they stand on.
    Without one they do neither: the benchmarks' demonstrations stay what they were.
    """
    drawer = state.scene.objects[index]
    handle = np.array(handle_position_m(drawer)[:2])
    inwards = np.array(drawer.heading)
    hook = handle + inwards * BEHIND_BAR_M
    yaw = drawer.yaw_rad + math.pi / 2
    yaw_error_rad = abs(float(wrap_half_turn_rad(yaw - state.yaw_rad)))
    tcp = np.array(state.tcp_position_m)
    above_m = HOOK_HEIGHT_M + ABOVE_HOOK_M
    rotated = _fades(yaw_error_rad, 0.15, 0.45)
    funnel_m = (HOOK_ALIGNED_M, 0.04)
    low_m = HOOK_HEIGHT_M
    if stiff_arm:
        away_m = float(np.linalg.norm(hook - tcp[:2]))
        over_gap = max(_fades(away_m, HOOK_CENTRED_M, HOOK_ALIGNED_M), in_gap(state, index))
        low_m = CLEAR_OF_DRAWER_M + over_gap * (HOOK_HEIGHT_M - CLEAR_OF_DRAWER_M)
    approach = _down_a_funnel(tcp, hook, rotated, low_m, above_m, funnel_m)
    if state.scene.opening > 0.1:
        approach[2] = above_m  # open fingers do not fit behind the bar
    pull = np.array([*(tcp[:2] - inwards * 0.05), HOOK_HEIGHT_M])
    ready = hooked(state, index) * _fades(yaw_error_rad, 0.15, 0.3)
    return _blended(approach, pull, ready, yaw, CLOSED)


def hooked(state: WorldState, index: int) -> float:
    """How well the fingers sit behind a drawer's handle bar, from 0 to 1."""
    low = _fades(state.tcp_position_m[2], HOOK_HEIGHT_M + 0.008, HOOK_HEIGHT_M + 0.02)
    return low * _behind_bar(state, index)


def in_gap(state: WorldState, index: int) -> float:
    """How surely the fingers are below the top of the handle, not on it, from 0 to 1."""
    return _fades(state.tcp_position_m[2], *BELOW_HANDLE_TOP_M) * _behind_bar(state, index)


def _behind_bar(state: WorldState, index: int) -> float:
    """How well the fingers are placed behind a handle bar, whatever their height, from 0 to 1."""
    drawer = state.scene.objects[index]
    inwards = np.array(drawer.heading)
    from_handle = np.array(state.tcp_position_m[:2]) - np.array(handle_position_m(drawer)[:2])
    behind_m = float(from_handle @ inwards)
    aside_m = float(from_handle @ np.array([-inwards[1], inwards[0]]))
    return (
        _fades(abs(aside_m), 0.02, 0.035)
        * _fades(-behind_m, -0.005, 0.0)
        * _fades(behind_m, 0.045, 0.055)
    )


def _direction(start: FloatArray, towards_xy_m: tuple[float, float]) -> FloatArray:
    """Unit vector (2,) from one point to another."""
    line = np.asarray(towards_xy_m) - start
    return np.asarray(line / max(float(np.linalg.norm(line)), 1e-9))


def _down_a_funnel(
    tcp: FloatArray,
    place_xy_m: FloatArray,
    rotated: float,
    low_m: float,
    high_m: float,
    funnel_m: tuple[float, float],
) -> FloatArray:
    """Next position (3,) on the way down to a place that is come to from above.

    The height to be at grows with the distance from the place, from the first to the second of
    `funnel_m`, and as long as the gripper is not `rotated` (0 to 1) as it should be; below it the
    gripper rises before it moves on. Everything changes gradually with the state: a learner that
    sees it with the precision of a pixel can follow.
    """
    away_m = float(np.linalg.norm(place_xy_m - tcp[:2]))
    share = max(1.0 - _fades(away_m, *funnel_m), 1.0 - rotated)
    height_m = low_m + share * (high_m - low_m)
    sideways = _fades(height_m - tcp[2], 0.01, 0.04)
    return np.array([*(tcp[:2] + sideways * (place_xy_m - tcp[:2])), height_m])


def _fades(value: float, full: float, none: float) -> float:
    """1 up to `full`, 0 from `none` on, and linear between."""
    return min(max((none - value) / (none - full), 0.0), 1.0)


def _blended(
    early: FloatArray, late: FloatArray, share: float, yaw_rad: float, closedness: float
) -> Goal:
    x, y, z = (float(value) for value in early + share * (late - early))
    return Goal((x, y, z), yaw_rad, closedness)
