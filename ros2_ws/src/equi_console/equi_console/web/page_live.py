# SPDX-License-Identifier: MIT
"""Live: what the policy sees and is about to do, the cameras, the arm in 3-D, latencies."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from nicegui import ui

from equi_console.desk import Desk
from equi_console.desk_state import StepView
from equi_core.motion.ur5_kinematics import link_frames

if TYPE_CHECKING:
    from equi_console.web.server import Pictures

_BALLS_PER_LINK = 5
_MOST_SIDE_VIEWS = 2
_SCENE_FPS = 4
"""The arm is moved once a second; without a graphics card every frame costs a core its time."""


class LivePanel:
    """Pictures at up to 10 Hz, numbers and the arm more slowly."""

    def __init__(self, desk: Desk, pictures: Pictures) -> None:
        self._desk, self._pictures = desk, pictures
        self._top_number = self._side_number = -1
        self._joints: tuple[float, ...] = ()
        with ui.card().classes("w-full"):
            ui.label("Live").classes("text-lg font-bold")
            with ui.row().classes("no-wrap"):
                with ui.column():
                    self._top = ui.interactive_image("/picture/top").style("width:420px")
                    self._top.props('data-testid="top"')
                    ui.label(
                        "blue: requested, red: executed; rings: which object is taken for the "
                        "movable one"
                    ).classes("text-xs text-gray-500")
                with ui.column():
                    self._sides = [
                        ui.interactive_image(f"/picture/side/{index}").style("width:280px")
                        for index in range(_MOST_SIDE_VIEWS)
                    ]
                with ui.column():
                    self._step = ui.label().props('data-testid="step"')
                    self._requested = ui.label().classes("text-sm")
                    self._executed = ui.label().classes("text-sm")
                    self._gripper = ui.label().classes("text-sm")
                    self._belief = ui.label().classes("text-sm").props('data-testid="belief"')
                    self._scene = ui.scene(width=300, height=260, grid=(2, 20), fps=_SCENE_FPS)
                    with self._scene:
                        self._scene.box(0.4, 0.4, 0.002).move(0.5, 0.0, 0.0).material("#d9c9a8")
                        self._balls = [
                            self._scene.sphere(0.03).material("#2b5c8a")
                            for _ in range(6 * _BALLS_PER_LINK)
                        ]
                    self._scene.move_camera(1.2, -1.2, 0.9, 0.4, 0.0, 0.2, duration=0)
            self._chart = ui.echart(
                {
                    "animation": False,
                    "grid": {"left": 70, "right": 10, "top": 30, "bottom": 20},
                    "legend": {"top": 0, "left": 70, "type": "scroll"},
                    "xAxis": {"type": "category", "show": False},
                    "yAxis": {"type": "log", "axisLabel": {"formatter": "{value} ms"}},
                    "series": [],
                }
            ).classes("w-full h-40")

    def refresh(self) -> None:
        """Pictures and the words beside them, where they have changed."""
        state = self._desk.state
        if state.observation_number != self._top_number:
            self._top_number = state.observation_number
            self._top.set_source(f"/picture/top?n={self._top_number}")
            self._requested.text = f"requested: {_words(state.requested)}"
            self._executed.text = f"executed: {_words(state.executed)}"
            self._belief.text = "belief: " + (
                ", ".join(f"{100 * share:.0f} %" for _, _, share in state.beliefs) or "-"
            )
        if self._pictures.side_view_number != self._side_number:
            self._side_number = self._pictures.side_view_number
            for index, image in enumerate(self._sides):
                image.set_source(f"/picture/side/{index}?n={self._side_number}")
        robot = state.robot
        if robot is not None:
            self._step.text = f"{robot.episode_id or 'no episode'}, step {robot.steps}"
            holding = ", holding" if robot.holding else ""
            self._gripper.text = f"gripper {100 * robot.opening:.0f} % open{holding}"

    def refresh_slowly(self) -> None:
        """The arm and the strip chart."""
        robot = self._desk.state.robot
        if robot is not None and robot.joints_rad != self._joints and len(robot.joints_rad) == 6:
            self._joints = robot.joints_rad
            for ball, place in zip(self._balls, arm_points(robot.joints_rad), strict=True):
                ball.move(*place)
        strips = self._desk.state.latencies_ms
        self._chart.options["series"] = [
            {"name": name, "type": "line", "showSymbol": False, "data": list(values)}
            for name, values in sorted(strips.items())
        ]
        self._chart.update()


def arm_points(joints_rad: tuple[float, ...]) -> list[tuple[float, float, float]]:
    """Points along the links in base_link [m], the same number for each link."""
    origins = [np.zeros(3), *(frame[:3, 3] for frame in link_frames(joints_rad))]
    points = []
    for start, end in pairwise(origins):
        for share in np.linspace(0.0, 1.0, _BALLS_PER_LINK):
            x, y, z = (float(value) for value in start + share * (end - start))
            points.append((x, y, z))
    return points


def _words(step: StepView | None) -> str:
    if step is None:
        return "-"
    x, y, z = (round(1e3 * value) for value in step.step_m)
    text = f"{x}, {y}, {z} mm, {round(math.degrees(step.yaw_rad))} deg"
    reasons = f": {step.reasons[0]}" if step.reasons else ""
    return f"{text}, gripper {step.closedness:.2f} {step.outcome}{reasons}"
