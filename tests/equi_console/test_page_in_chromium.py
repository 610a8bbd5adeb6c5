# SPDX-License-Identifier: MIT
"""The page in a real browser, over a cell that only answers presses; no ROS, no physics.

Needs `make setup CONSOLE=1` and a Chromium of the distribution (nothing is downloaded).
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from families import ManagedProcess, ProcessFamily, wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="needs make setup CONSOLE=1")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium"),
]
STAND_IN = Path(__file__).resolve().parents[1] / "fixtures" / "console_stand_in.py"
MOST_SHARE_OF_A_CORE = 0.15

STOPWATCH = """() => {
  window.answered = new Promise(done => {
    let pressed = 0;
    document.addEventListener('click', () => { pressed = performance.now(); }, true);
    new MutationObserver(() => { if (pressed) done(performance.now() - pressed); })
      .observe(document.querySelector('[data-testid="answers"]'), {childList: true, subtree: true});
  });
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ManagedProcess]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    family = ProcessFamily()
    try:
        words = [sys.executable, STAND_IN, str(port), tmp_path_factory.mktemp("console")]
        process = family.start(words, {})
        process.wait_for_text("console: http://", 60.0)
        yield f"http://127.0.0.1:{port}/", process
        process.press_ctrl_c()
    finally:
        family.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, served: tuple[str, ManagedProcess]) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1500, "height": 1200})
    opened = context.new_page()
    opened.goto(served[0])
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


def answered(page: Any, words: str) -> None:
    wait_until(lambda: words in " ".join(at(page, "answer").all_inner_texts()), 10.0, words)


def test_presses_need_the_desk_and_are_answered_within_200_ms(page: Any) -> None:
    assert "NO emergency stop" in at(page, "banner").inner_text()
    at(page, "go-home").click()
    answered(page, "take the desk first")
    sit_down(page, "Anna")
    page.evaluate(STOPWATCH)
    at(page, "go-home").click()
    assert page.evaluate("window.answered") < 200.0
    answered(page, "Anna: go home: done")


def test_a_reload_keeps_the_desk_and_the_answers(page: Any) -> None:
    sit_down(page, "Anna")
    at(page, "pause").click()
    playwright.expect(at(page, "state-driver")).to_have_text("driver: PAUSED")
    page.reload()
    playwright.expect(at(page, "seat")).to_have_text("you have the desk")
    playwright.expect(at(page, "state-driver")).to_have_text("driver: PAUSED")
    answered(page, "Anna: pause: done")
    at(page, "resume").click()
    playwright.expect(at(page, "state-driver")).to_have_text("driver: HOLD")


def test_a_fault_is_reset_only_by_its_name(page: Any, served: tuple[str, ManagedProcess]) -> None:
    sit_down(page, "Anna")
    os.kill(served[1].pid, signal.SIGUSR1)
    playwright.expect(at(page, "fault")).to_contain_text("FAULT PROTECTIVE_STOP")
    at(page, "acknowledge").fill("yes")
    at(page, "reset").click()
    answered(page, "type PROTECTIVE_STOP")
    at(page, "acknowledge").fill("PROTECTIVE_STOP")
    at(page, "reset").click()
    playwright.expect(at(page, "fault")).to_have_count(0)
    at(page, "activate").click()
    playwright.expect(at(page, "state-driver")).to_have_text("driver: HOLD")


def test_two_browsers_do_not_fight(
    page: Any, browser: Any, served: tuple[str, ManagedProcess]
) -> None:
    sit_down(page, "Anna")
    other = browser.new_context().new_page()
    try:
        other.goto(served[0])
        playwright.expect(at(other, "seat")).to_have_text("Anna has the desk")
        at(other, "go-home").click()
        answered(other, "Anna has the desk")
        sit_down(other, "Ben")
        playwright.expect(at(page, "seat")).to_have_text("Ben has the desk")
        at(page, "pause").click()  # anybody may
        playwright.expect(at(other, "state-driver")).to_have_text("driver: PAUSED")
        at(other, "resume").click()
        playwright.expect(at(other, "state-driver")).to_have_text("driver: HOLD")
    finally:
        other.context.close()


def test_ten_images_a_second_cost_little(page: Any, served: tuple[str, ManagedProcess]) -> None:
    shows = "document.querySelector('[data-testid=top] img').naturalWidth"
    wait_until(lambda: page.evaluate(shows) == 420, 10.0, "the picture")
    process = psutil.Process(served[1].pid)
    before = process.cpu_times()
    begun_ms = page.evaluate("performance.now()")
    page.wait_for_timeout(4000)
    after = process.cpu_times()
    passed_s = (page.evaluate("performance.now()") - begun_ms) / 1e3
    share = (after.user + after.system - before.user - before.system) / passed_s
    assert share < MOST_SHARE_OF_A_CORE, f"{100 * share:.0f} % of a core"
