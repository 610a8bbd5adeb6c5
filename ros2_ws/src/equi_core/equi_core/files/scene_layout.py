# SPDX-License-Identifier: MIT
"""Where an operator puts what on the table: the scene of a seed as a list and as a drawing.

`scenes.json` in a model folder holds the scenes of the test seeds, so that the robot's computer,
which has no training package, can show them and knows the goal of a task that has one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equi_core.contract import TASKS_WITH_GOAL, Workspace
from equi_core.files.plain_data import PlainDataError, read_json
from equi_core.strict_fields import FieldError, plain_fields, read_fields

FILE_NAME = "scenes.json"
_DIGEST = "content_sha256"
_ROW_M, _COLUMN_M = 0.02, 0.01
"""A character is about twice as high as wide [m]."""
_PAD_HALF_M = 0.045


class LayoutError(ValueError):
    """A file of scenes that is missing, damaged, or lacks a scene; says which."""


@dataclass(frozen=True)
class LayoutObject:
    """One object on the table."""

    kind: str
    """block or drawer."""
    x_m: float
    y_m: float
    """Its centre on the table, in the task frame [m]."""
    yaw_rad: float
    """About the vertical, counter-clockwise seen from above; a drawer opens towards its -x."""
    size_m: tuple[float, float, float]
    movable: bool
    """Whether it must yield; the other one is fixed to the table."""

    def __post_init__(self) -> None:
        if max(abs(self.x_m), abs(self.y_m)) > 3 or not all(0 < s < 1 for s in self.size_m):
            raise LayoutError(f"{self.kind} at ({self.x_m}, {self.y_m}) m with size {self.size_m}")

    def covers(self, x_m: float, y_m: float) -> bool:
        """Whether its outline holds a point of the table."""
        dx, dy = x_m - self.x_m, y_m - self.y_m
        c, s = math.cos(self.yaw_rad), math.sin(self.yaw_rad)
        along, across = c * dx + s * dy, c * dy - s * dx
        return abs(along) <= self.size_m[0] / 2 and abs(across) <= self.size_m[1] / 2


@dataclass(frozen=True)
class SceneLayout:
    """The scene of one seed."""

    seed: int
    objects: tuple[LayoutObject, ...]
    goal_xy_m: tuple[float, float] | None
    """Centre of the goal, in tasks that have one [m]; nothing lies there."""

    def description(self, workspace: Workspace) -> str:
        """What to put where, in millimetres and degrees, and a drawing seen from above."""
        lines = [
            f"scene {self.seed}, in the task frame of the cell (its file's geometry; by default x "
            "away from the robot, y to its left; angles from above):"
        ]
        for item in self.objects:
            word = "MOVABLE" if item.movable else "FIXED to the table"
            sizes = " x ".join(f"{1e3 * side:.0f}" for side in item.size_m)
            lines.append(
                f"  {item.kind} {sizes} mm, {word}: x = {1e3 * item.x_m:.0f} mm, "
                f"y = {1e3 * item.y_m:.0f} mm, turned {math.degrees(item.yaw_rad):.0f} deg"
            )
        if self.goal_xy_m is not None:
            x_m, y_m = self.goal_xy_m
            lines.append(
                f"  goal: x = {1e3 * x_m:.0f} mm, y = {1e3 * y_m:.0f} mm; put nothing there"
            )
        return "\n".join([*lines, *self._drawing(workspace)])

    def _drawing(self, workspace: Workspace) -> list[str]:
        """Rows grow with x, columns with y: m movable, F fixed, g goal."""
        (x_min, y_min, _), (x_max, y_max, _) = workspace.lower_m, workspace.upper_m
        for item in self.objects:
            reach_m = math.hypot(*item.size_m[:2]) / 2
            x_min, x_max = min(x_min, item.x_m - reach_m), max(x_max, item.x_m + reach_m)
            y_min, y_max = min(y_min, item.y_m - reach_m), max(y_max, item.y_m + reach_m)
        columns = max(round((y_max - y_min) / _COLUMN_M), 1)
        frame = "  +" + "-" * columns + "+"
        lines = ["  the origin of the task frame is on this side", frame]
        for row in range(max(round((x_max - x_min) / _ROW_M), 1)):
            x_m = x_min + (row + 0.5) * _ROW_M
            marks = (self._mark(x_m, y_min + (c + 0.5) * _COLUMN_M) for c in range(columns))
            lines.append("  |" + "".join(marks) + "|")
        corner = f"  left edge y = {1e3 * y_min:.0f} mm, top edge x = {1e3 * x_min:.0f} mm; "
        return [*lines, frame, corner + "m: movable, F: fixed, g: goal"]

    def _mark(self, x_m: float, y_m: float) -> str:
        for item in self.objects:
            if item.covers(x_m, y_m):
                return "m" if item.movable else "F"
        if self.goal_xy_m is not None:
            near = max(abs(x_m - self.goal_xy_m[0]), abs(y_m - self.goal_xy_m[1]))
            if near <= _PAD_HALF_M:
                return "g"
        return "."


@dataclass(frozen=True)
class SceneLayouts:
    """The scenes of a task's test seeds."""

    task: str
    scenes: tuple[SceneLayout, ...]

    def __post_init__(self) -> None:
        for scene in self.scenes:
            if (self.task in TASKS_WITH_GOAL) != (scene.goal_xy_m is not None):
                raise LayoutError(f"scene {scene.seed} of {self.task}: goal {scene.goal_xy_m}")

    def of_seed(self, seed: int) -> SceneLayout:
        """The scene of a seed; LayoutError if it is not among them."""
        for scene in self.scenes:
            if scene.seed == seed:
                return scene
        first, last = self.scenes[0].seed, self.scenes[-1].seed
        raise LayoutError(
            f"{FILE_NAME} holds the scenes of seeds {first} to {last}, not of {seed}; begin with "
            f"--seed {first}, or write more of them with equi-scenes"
        )

    def save(self, path: Path) -> None:
        """Write the file with its digest; a reader sees the old file or the whole new one."""
        plain = plain_fields(self)
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps({**plain, _DIGEST: _digest(plain)}) + "\n", encoding="utf-8")
        os.replace(partial, path)

    @classmethod
    def load(cls, path: Path) -> SceneLayouts:
        """Read a file."""
        try:
            data = read_json(path)
            stated = data.pop(_DIGEST, None) if isinstance(data, dict) else None
            layouts = read_fields(cls, data, refused_by=LayoutError)
        except (PlainDataError, FieldError) as error:
            raise LayoutError(f"{path}: {error}") from error
        if stated != _digest(plain_fields(layouts)):
            raise LayoutError(f"{path} does not match its {_DIGEST}: it was edited or is damaged")
        if not layouts.scenes:
            raise LayoutError(f"{path} holds no scene")
        return layouts


def layouts_of(task: str, scenes: Iterable[SceneLayout]) -> SceneLayouts:
    """The scenes in the order of their seeds."""
    return SceneLayouts(task, tuple(sorted(scenes, key=lambda scene: scene.seed)))


def _digest(plain: Any) -> str:
    canonical = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
