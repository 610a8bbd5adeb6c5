# SPDX-License-Identifier: MIT
"""The scene helper on a running cell: blocks are put down, the page says by how much to move them.

The simulated cell as a robot's: the operator arranges the scene, starts the episode and labels it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from console_page import (
    CELL_READY_S,
    RunningCell,
    answered,
    at,
    running_cell,
    screenshot,
    sit_down,
)
from families import wait_until
from looked_at_scenes import moved

from equi_cell_sim.ground_truth import GroundTruth
from equi_cell_sim.scene_data import scene_request
from equi_core.scene_seeds import TEST_SEED
from equi_rl.sim.scene import Scene
from ur_emulator.client import EmulatorClient

playwright = pytest.importorskip("playwright.sync_api", reason="needs make setup CONSOLE=1")
pytestmark = [pytest.mark.slow, pytest.mark.ros]

_LINE = re.compile(
    r"([AB]): (right|move it) \(by ([+-][\d.]+), ([+-][\d.]+) mm, turn ([+-]\d+) deg"
)
_PATIENCE_S = 90.0


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCell]:
    with running_cell(tmp_path_factory.mktemp("arrange"), "arrange:=true") as running:
        yield running


@pytest.fixture
def page(browser: Any, cell: RunningCell) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1500, "height": 1300})
    opened = context.new_page()
    opened.goto(cell.url)
    yield opened
    context.close()


def put_down(cell: RunningCell, scene: Scene) -> None:
    with EmulatorClient(cell.robot) as emulator:
        emulator.request("set_scene", scene=scene_request(scene))


def said(page: Any) -> str:
    return str(at(page, "state-scene").inner_text())


def told_moves_mm(page: Any) -> dict[str, tuple[float, float]]:
    return {name: (float(x), float(y)) for name, _, x, y, _ in _LINE.findall(said(page))}


def test_misplaced_blocks_are_measured_and_a_right_scene_may_run(
    page: Any, cell: RunningCell
) -> None:
    scene = GroundTruth("block_picking").scene(TEST_SEED)
    order = sorted(range(2), key=lambda index: scene.objects[index].xy_m)  # A is nearest
    by_m = {"A": (0.014, -0.009), "B": (-0.011, 0.006)}
    wrong = scene
    for name, index in zip("AB", order, strict=True):
        wrong = moved(wrong, index, *by_m[name], 0.0)
    playwright.expect(at(page, "state-driver")).to_have_text(
        "driver: HOLD", timeout=1e3 * CELL_READY_S
    )
    put_down(cell, wrong)
    sit_down(page, "Anna")
    at(page, "go-home").click()  # the picture is around the gripper
    answered(page, "go home: at home", _PATIENCE_S)
    wait_until(lambda: "(taken out)" in said(page), _PATIENCE_S, "the cameras' own error")

    def errors_mm() -> list[float]:
        told = told_moves_mm(page)
        return [
            math.dist(told.get(name, (math.inf, 0.0)), (-1e3 * dx, -1e3 * dy))
            for name, (dx, dy) in by_m.items()
        ]

    wait_until(lambda: max(errors_mm()) < 3.0, _PATIENCE_S, "both blocks found to 3 mm")
    assert "not ready" in said(page)
    screenshot(page, "console_scene")
    at(page, "run").click()
    answered(page, "refused: the scene is not arranged")
    assert "ovable" not in page.inner_text("body").replace("taken for the movable one", "")

    put_down(cell, scene)
    wait_until(lambda: "READY" in said(page), _PATIENCE_S, "ready")
    sealed = (cell.output / "sealed" / f"scene-{TEST_SEED}.txt").read_text()
    assert sealed.count("MOVABLE") == 1
    at(page, "run").click()
    playwright.expect(at(page, "running")).to_have_text(
        "episode 1 waits for its label", timeout=240e3
    )
    at(page, "banner").click()  # away from the field of the name
    page.keyboard.press("s")
    playwright.expect(at(page, "rate")).to_have_text(re.compile("1 of 1 succeeded"), timeout=60e3)
    playwright.expect(at(page, "state-scene")).to_have_text(
        re.compile(f"scene {TEST_SEED + 1}: not ready"), timeout=60e3
    )
