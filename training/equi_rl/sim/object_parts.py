# SPDX-License-Identifier: MIT
"""What blocks and drawers are made of: convex shapes, the same for physics and for images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from scipy.spatial.transform import Rotation

from equi_rl.sim.raycast import Kind
from equi_rl.sim.scene import ObjectKind, SceneObject, Vector3

BLOCK_COLOUR = (0.87, 0.42, 0.28)
CABINET_COLOUR = (0.80, 0.66, 0.47)
FRONT_COLOUR = (0.91, 0.80, 0.62)
HANDLE_COLOUR = (0.35, 0.37, 0.40)

# The handle is a round bar in front of the drawer's face, on two posts.
HANDLE_LENGTH_M = 0.10
HANDLE_RADIUS_M = 0.0075
HANDLE_HEIGHT_M = 0.027
HANDLE_REACH_M = 0.05
"""From the cabinet's face to the bar's axis."""
_POST_THICKNESS_M = 0.010
_POST_SPACING_M = 0.07
_WALL_M = 0.004
_FRONT_M = 0.008

LIE_ALONG_Y = Rotation.from_euler("x", -math.pi / 2).as_matrix()
"""Rotates a shape's own z axis onto the body's y axis."""


@dataclass(frozen=True)
class Part:
    """One convex shape of a body, in the body's (or its sliding part's) frame."""

    kind: Kind
    size_m: Vector3
    """As `Kind` says."""
    centre_m: Vector3
    colour: Vector3
    slides: bool = False
    """Whether it belongs to the part of a drawer that is pulled out."""
    along_y: bool = False
    """Whether the shape's own z axis lies along the body's y axis (the handle bar)."""


@lru_cache(maxsize=64)
def parts_of(kind: ObjectKind, size_m: Vector3) -> tuple[Part, ...]:
    """The shapes of an object of a given size."""
    length, width, height = size_m
    if kind is ObjectKind.BLOCK:
        return (Part(Kind.BOX, (length / 2, width / 2, height / 2), (0, 0, 0), BLOCK_COLOUR),)
    inner_width, depth = width - 2 * _WALL_M, length - _FRONT_M - _WALL_M
    face = -length / 2
    tray_top = height - 0.012
    wall_centre_x = face + _FRONT_M + depth / 2

    def box(extents: Vector3, centre: Vector3, colour: Vector3, slides: bool) -> Part:
        half: Vector3 = (extents[0] / 2, extents[1] / 2, extents[2] / 2)
        return Part(Kind.BOX, half, centre, colour, slides)

    side_y = width / 2 - _WALL_M / 2
    tray_y = inner_width / 2 - _WALL_M
    shell_x, shell_length = _FRONT_M / 2, length - _FRONT_M
    front_height = height - _WALL_M - 0.003
    bar_x = face - HANDLE_REACH_M
    post_x, post_length = face - HANDLE_REACH_M / 2, HANDLE_REACH_M
    post_side = _POST_THICKNESS_M
    return (
        box((length, width, _WALL_M), (0, 0, height - _WALL_M / 2), CABINET_COLOUR, False),
        box((shell_length, _WALL_M, height), (shell_x, side_y, height / 2), CABINET_COLOUR, False),
        box((shell_length, _WALL_M, height), (shell_x, -side_y, height / 2), CABINET_COLOUR, False),
        box(
            (_WALL_M, width, height),
            (length / 2 - _WALL_M / 2, 0, height / 2),
            CABINET_COLOUR,
            False,
        ),
        box(
            (_FRONT_M, width, front_height),
            (face + _FRONT_M / 2, 0, front_height / 2 + 0.002),
            FRONT_COLOUR,
            True,
        ),
        box((depth, inner_width, _WALL_M), (wall_centre_x, 0, 0.005), FRONT_COLOUR, True),
        box(
            (depth, _WALL_M, tray_top),
            (wall_centre_x, tray_y, tray_top / 2 + 0.003),
            FRONT_COLOUR,
            True,
        ),
        box(
            (depth, _WALL_M, tray_top),
            (wall_centre_x, -tray_y, tray_top / 2 + 0.003),
            FRONT_COLOUR,
            True,
        ),
        Part(
            Kind.CAPSULE,
            (HANDLE_RADIUS_M, HANDLE_LENGTH_M / 2 - HANDLE_RADIUS_M, 0.0),
            (bar_x, 0, HANDLE_HEIGHT_M),
            HANDLE_COLOUR,
            slides=True,
            along_y=True,
        ),
        *(
            box(
                (post_length, post_side, post_side),
                (post_x, side * _POST_SPACING_M / 2, HANDLE_HEIGHT_M),
                HANDLE_COLOUR,
                True,
            )
            for side in (-1, 1)
        ),
    )


def handle_position_m(drawer: SceneObject) -> Vector3:
    """Centre of a drawer's handle bar in base_link."""
    x, y, z = drawer.position_m
    c, s = drawer.heading
    reach = drawer.size_m[0] / 2 + HANDLE_REACH_M + drawer.extension_m
    return (x - c * reach, y - s * reach, z + HANDLE_HEIGHT_M)
