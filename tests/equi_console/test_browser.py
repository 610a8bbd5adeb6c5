# SPDX-License-Identifier: MIT
"""The console in a real browser, on the simulated cell: an episode, a fault, a take-over, a reload.

Needs `make setup CONSOLE=1` and a Chromium of the distribution (nothing is downloaded).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from console_page import (
    CELL_READY_S,
    RunningCell,
    answered,
    at,
    press_times_ms,
    running_cell,
    screenshot,
    sit_down,
)
from families import wait_until

from equi_control.rtde.dashboard import Dashboard
from ur_emulator.client import EmulatorClient

playwright = pytest.importorskip("playwright.sync_api", reason="needs make setup CONSOLE=1")
pytestmark = [pytest.mark.slow, pytest.mark.ros]

EPISODE_S = 240.0


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCell]:
    with running_cell(tmp_path_factory.mktemp("console")) as running:
        yield running


@pytest.fixture
def page(browser: Any, cell: RunningCell) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1500, "height": 1300})
    opened = context.new_page()
    opened.goto(cell.url)
    yield opened
    context.close()


def wait_for_driver(page: Any, word: str, timeout_s: float = CELL_READY_S) -> None:
    playwright.expect(at(page, "state-driver")).to_have_text(
        f"driver: {word}", timeout=1e3 * timeout_s
    )


def test_an_episode_from_the_browser_with_a_reload_in_its_middle(page: Any) -> None:
    assert "NO emergency stop" in at(page, "banner").inner_text()
    wait_for_driver(page, "HOLD")
    at(page, "run").click()
    answered(page, "take the desk first")
    sit_down(page, "Anna")
    playwright.expect(at(page, "state-perception")).to_have_text(
        "perception: ready", timeout=1e3 * CELL_READY_S
    )
    visible_ms, answered_ms = press_times_ms(page, "run")
    sys.stdout.write(f"press: visible {visible_ms:.0f} ms, answered {answered_ms:.0f} ms\n")
    assert visible_ms <= answered_ms
    running = at(page, "running")
    playwright.expect(running).to_have_text(re.compile(r"episode 1: step [1-9]"), timeout=120e3)
    page.reload()
    playwright.expect(at(page, "seat")).to_have_text("you have the desk")
    playwright.expect(at(page, "running")).to_have_text(re.compile("episode 1"))
    playwright.expect(at(page, "episode")).to_have_count(1, timeout=1e3 * EPISODE_S)
    playwright.expect(at(page, "rate")).to_have_text(re.compile("of 1 succeeded"))
    shows_picture = "document.querySelector('[data-testid=top] img').naturalWidth"
    # A picture that is being replaced has no width for a moment.
    wait_until(lambda: page.evaluate(shows_picture) == 420, 10.0, "the picture")
    report = page.request.get(f"{page.url.rstrip('/')}/report")
    assert report.ok
    assert "block_picking" in report.text()
    strip = page.request.get(f"{page.url.rstrip('/')}/filmstrip/0")
    assert strip.headers["content-type"] == "image/jpeg"
    screenshot(page, "console_episode")


def test_n_episodes_run_one_after_the_other(page: Any) -> None:
    sit_down(page, "Anna")
    wait_for_driver(page, "HOLD")
    before = at(page, "episode").count()
    at(page, "count").fill("2")
    at(page, "run-many").click()
    answered(page, "2 episodes asked for")
    at(page, "run").click()
    answered(page, "is running; stop it first")
    playwright.expect(at(page, "episode")).to_have_count(before + 2, timeout=2e3 * EPISODE_S)
    playwright.expect(at(page, "rate")).to_have_text(re.compile(f"of {before + 2} succeeded"))
    playwright.expect(at(page, "running")).to_have_text("no episode is running")


def test_a_fault_is_reset_only_by_its_name(page: Any, cell: RunningCell) -> None:
    sit_down(page, "Anna")
    wait_for_driver(page, "HOLD")
    with EmulatorClient(cell.robot) as emulator:
        emulator.request("protective_stop")
    playwright.expect(at(page, "fault")).to_contain_text("PROTECTIVE_STOP", timeout=30e3)
    screenshot(page, "console_fault")
    at(page, "acknowledge").fill("yes")
    at(page, "reset").click()
    answered(page, "type PROTECTIVE_STOP")
    with Dashboard(cell.robot) as dashboard:
        wait_until(
            lambda: (
                dashboard.ask("unlock protective stop") != ""
                and "NORMAL" in dashboard.ask("safetymode")
            ),
            30.0,
            "the unlocking",
        )
    at(page, "acknowledge").fill("PROTECTIVE_STOP")
    at(page, "reset").click()
    playwright.expect(at(page, "fault")).to_have_count(0, timeout=60e3)
    wait_for_driver(page, "IDLE", 60.0)
    at(page, "activate").click()
    wait_for_driver(page, "HOLD", 60.0)


def test_two_browsers_do_not_fight(page: Any, browser: Any, cell: RunningCell) -> None:
    sit_down(page, "Anna")
    other = browser.new_context().new_page()
    try:
        other.goto(cell.url)
        playwright.expect(at(other, "seat")).to_have_text("Anna has the desk")
        at(other, "go-home").click()
        answered(other, "Anna has the desk")
        sit_down(other, "Ben")
        playwright.expect(at(page, "seat")).to_have_text("Ben has the desk")
        at(page, "go-home").click()
        answered(page, "Ben has the desk")
        at(page, "pause").click()
        wait_for_driver(other, "PAUSED", 30.0)
        at(other, "resume").click()
        wait_for_driver(other, "HOLD", 30.0)
    finally:
        other.context.close()
