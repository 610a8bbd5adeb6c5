# SPDX-License-Identifier: MIT
"""Where an arm stays whose step was blocked: on its straight way, a little before what blocks it.

The one law of the training world (`equi_rl.sim.world`) and of the robot's servo process. The
pressed arm itself sags and turns a little off the path, and where exactly is chaotic; so the path's
own point is held, with height and yaw as they were commanded. An arm that cannot rise yields
sideways: it leans on something, and the friction of that would hold it down for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equi_core.geometry import wrap_angle_rad

FloatArray = NDArray[np.float64]

BACK_OFF_M = 1e-3
"""A blocked arm is taken back by this along its path, so that nothing stays pressed or wedged."""
MOST_BACK_OFF_M = 5e-3
"""How far behind the start of the step it may be taken back: the start may be pressed already."""
RELIEF_STEP_M = 1e-3
"""A blocked arm that still presses is taken back further, in steps of this."""
PRESSED_MORE_N = 8.0
"""An arm that presses by so much more after it was taken back is held where it stands: what it
presses on, a tilted block perhaps, rises under it while it is drawn along."""
LEANING_M = 1.5e-3
"""A rising arm that is this far beside its path leans on something."""


@dataclass(frozen=True)
class BlockedStep:
    """What becomes of a blocked step."""

    fraction: float
    """Point of the straight way that is held: 0 at its start, 1 at its end; below 0 behind it."""
    pose: FloatArray
    """Pose (4,) to hold: x, y, z [m], yaw [rad]; that point, and beside it if `leaning`."""
    leaning: bool
    """Whether the arm yields sideways."""


def blocked_step(
    start: ArrayLike,
    target: ArrayLike,
    measured_m: ArrayLike,
    measured_yaw_rad: float,
    back_off_m: float = BACK_OFF_M,
) -> BlockedStep:
    """Where to stay after a blocked step; each pose is x, y, z [m], yaw [rad].

    Args:
        start: commanded pose (4,) at the start of the step.
        target: commanded pose (4,) at its end.
        measured_m: measured TCP position (3,) when it was blocked.
        measured_yaw_rad: measured yaw, wrapped or not.
        back_off_m: distance to stay before the point that was reached.
    """
    begin = np.asarray(start, dtype=np.float64)
    end = np.asarray(target, dtype=np.float64)
    reached = np.asarray(measured_m, dtype=np.float64)
    way = end[:3] - begin[:3]
    length = float(np.linalg.norm(way))
    if length > BACK_OFF_M:
        along_m = float((reached - begin[:3]) @ way) / length
        # The start itself may be pressed against what blocks, hence behind it is allowed.
        fraction = max(-MOST_BACK_OFF_M, along_m - back_off_m) / length
    else:
        rotation = float(end[3] - begin[3])
        rotated = float(wrap_angle_rad(measured_yaw_rad - begin[3]))
        fraction = max(0.0, rotated / rotation) if rotation else 0.0
    fraction = min(1.0, fraction)
    held = begin + fraction * (end - begin)
    aside = reached[:2] - held[:2]
    leaning = bool(way[2] > length / 2 and float(np.linalg.norm(aside)) > LEANING_M)
    if leaning:
        held[:2] += aside
    return BlockedStep(fraction, held, leaning)
