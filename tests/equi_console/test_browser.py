# SPDX-License-Identifier: MIT
"""The console in a real browser, on the simulated cell: an episode, a fault, a take-over, a reload.

Needs `make setup CONSOLE=1` and a Chromium of the distribution (nothing is downloaded).
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from families import ProcessFamily, wait_until
from ros_domains import reserved_domain

from equi_control.rtde.dashboard import Dashboard
from ur_emulator.client import EmulatorClient
from ur_emulator.launching import free_address

playwright = pytest.importorskip("playwright.sync_api", reason="needs make setup CONSOLE=1")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.ros,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium"),
]

READY_S = 180.0
EPISODE_S = 240.0
SCREENSHOTS = os.environ.get("EQUI_SCREENSHOTS", "")
"""Folder for new screenshots of the documentation; empty: none are made."""

STOPWATCH = """() => {
  window.answered = new Promise(done => {
    let pressed = 0;
    document.addEventListener('click', () => { pressed = performance.now(); }, true);
    new MutationObserver(() => { if (pressed) done(performance.now() - pressed); })
      .observe(document.querySelector('[data-testid="answers"]'), {childList: true, subtree: true});
  });
}"""


@dataclass(frozen=True)
class RunningCell:
    url: str
    robot: str


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCell]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    robot = free_address()
    output = tmp_path_factory.mktemp("console")
    command = shutil.which("ros2")
    assert command is not None
    family = ProcessFamily()
    try:
        with reserved_domain() as domain:
            launched = family.start(
                [
                    *(command, "launch", "equi_policy", "sim2real.launch.py"),
                    *("task:=block_picking", "console:=true", f"console_port:={port}"),
                    *(f"robot_ip:={robot}", f"output:={output}"),
                ],
                {"ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"},
            )
            launched.wait_for_text("console: http://", READY_S)
            yield RunningCell(f"http://127.0.0.1:{port}/", robot)
            launched.press_ctrl_c()
            launched.wait_for_exit(60.0)
    finally:
        family.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, cell: RunningCell) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1500, "height": 1300})
    opened = context.new_page()
    opened.goto(cell.url)
    yield opened
    context.close()


def at(page: Any, test_id: str) -> Any:
    return page.locator(f'[data-testid="{test_id}"]')


def sit_down(page: Any, name: str) -> None:
    at(page, "name").fill(name)
    button = "take" if at(page, "take").is_visible() else "take-over"
    at(page, button).click()
    if button == "take-over":
        at(page, "confirm-take-over").click()
    playwright.expect(at(page, "seat")).to_have_text("you have the desk")


def wait_for_driver(page: Any, word: str, timeout_s: float = READY_S) -> None:
    playwright.expect(at(page, "state-driver")).to_have_text(
        f"driver: {word}", timeout=1e3 * timeout_s
    )


def answers(page: Any) -> list[str]:
    return list(at(page, "answer").all_inner_texts())


def test_an_episode_from_the_browser_with_a_reload_in_its_middle(page: Any) -> None:
    assert "NO emergency stop" in at(page, "banner").inner_text()
    wait_for_driver(page, "HOLD")
    at(page, "run").click()
    wait_until(lambda: "take the desk first" in " ".join(answers(page)), 5.0, "the refusal")
    sit_down(page, "Anna")
    playwright.expect(at(page, "state-perception")).to_have_text(
        "perception: ready", timeout=1e3 * READY_S
    )
    page.evaluate(STOPWATCH)
    at(page, "run").click()
    answered_ms = page.evaluate("window.answered")
    running = at(page, "running")
    playwright.expect(running).to_have_text(re.compile(r"episode 1: step [1-9]"), timeout=120e3)
    page.reload()
    playwright.expect(at(page, "seat")).to_have_text("you have the desk")
    playwright.expect(at(page, "running")).to_have_text(re.compile("episode 1"))
    playwright.expect(at(page, "episode")).to_have_count(1, timeout=1e3 * EPISODE_S)
    playwright.expect(at(page, "rate")).to_have_text(re.compile("of 1 succeeded"))
    shows_picture = "document.querySelector('[data-testid=top] img').naturalWidth"
    assert page.evaluate(shows_picture) == 420
    report = page.request.get(f"{page.url.rstrip('/')}/report")
    assert report.ok
    assert "block_picking" in report.text()
    strip = page.request.get(f"{page.url.rstrip('/')}/filmstrip/0")
    assert strip.headers["content-type"] == "image/jpeg"
    _screenshot(page, "console_episode")
    assert answered_ms < 200.0, f"the press was answered after {answered_ms:.0f} ms"


def test_a_fault_is_reset_only_by_its_name(page: Any, cell: RunningCell) -> None:
    sit_down(page, "Anna")
    wait_for_driver(page, "HOLD")
    with EmulatorClient(cell.robot) as emulator:
        emulator.request("protective_stop")
    playwright.expect(at(page, "fault")).to_contain_text("PROTECTIVE_STOP", timeout=30e3)
    _screenshot(page, "console_fault")
    at(page, "acknowledge").fill("yes")
    at(page, "reset").click()
    wait_until(lambda: "type PROTECTIVE_STOP" in " ".join(answers(page)), 5.0, "the refusal")
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
        wait_until(lambda: "Anna has the desk" in " ".join(answers(other)), 5.0, "the refusal")
        sit_down(other, "Ben")
        playwright.expect(at(page, "seat")).to_have_text("Ben has the desk")
        at(page, "go-home").click()
        wait_until(lambda: "Ben has the desk" in " ".join(answers(page)), 5.0, "the refusal")
        at(page, "pause").click()
        wait_for_driver(other, "PAUSED", 30.0)
        at(other, "resume").click()
        wait_for_driver(other, "HOLD", 30.0)
    finally:
        other.context.close()


def _screenshot(page: Any, name: str) -> None:
    if SCREENSHOTS:
        path = Path(SCREENSHOTS) / f"{name}.jpg"
        page.screenshot(path=str(path), type="jpeg", quality=60, full_page=True)
