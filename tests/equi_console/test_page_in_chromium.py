# SPDX-License-Identifier: MIT
"""The page in a real browser, over a cell that only answers presses; no ROS, no physics.

Needs `make setup CONSOLE=1` and a Chromium of the distribution (nothing is downloaded).
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from console_page import answered, at, press_times_ms, running_stand_in, sit_down
from families import ManagedProcess, wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="needs make setup CONSOLE=1")
pytestmark = pytest.mark.slow
MOST_SHARE_OF_A_CORE = 0.15


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ManagedProcess]]:
    with running_stand_in(tmp_path_factory.mktemp("console")) as console:
        yield console


@pytest.fixture
def page(browser: Any, served: tuple[str, ManagedProcess]) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1500, "height": 1200})
    opened = context.new_page()
    opened.goto(served[0])
    yield opened
    context.close()


def test_presses_need_the_desk_and_show_before_the_console_answers(page: Any) -> None:
    assert "NO emergency stop" in at(page, "banner").inner_text()
    at(page, "go-home").click()
    answered(page, "take the desk first")
    sit_down(page, "Anna")
    visible_ms, answered_ms = press_times_ms(page, "go-home")
    assert visible_ms <= answered_ms  # how long both take: make bench-console
    answered(page, "Anna: go home: done")
    playwright.expect(at(page, "pressed")).to_have_text("")


def test_a_busy_console_does_not_make_a_press_look_lost(
    page: Any, served: tuple[str, ManagedProcess]
) -> None:
    sit_down(page, "Anna")
    os.kill(served[1].pid, signal.SIGSTOP)  # as busy as can be
    try:
        at(page, "pause").click()
        playwright.expect(at(page, "pressed")).to_have_text("pause: pressed, asking the cell ...")
        playwright.expect(at(page, "pressed")).to_contain_text("NO ANSWER from the console")
    finally:
        os.kill(served[1].pid, signal.SIGCONT)
    playwright.expect(at(page, "state-driver")).to_have_text("driver: PAUSED")
    playwright.expect(at(page, "pressed")).to_have_text("")
    at(page, "resume").click()
    playwright.expect(at(page, "state-driver")).to_have_text("driver: HOLD")


def test_a_busy_browser_does_not_lose_what_was_typed(page: Any) -> None:
    at(page, "name").fill("An")
    page.evaluate("window.sameAsBefore = true")
    # As on a busy machine: nobody answers the console's questions for a while.
    page.evaluate("() => { const end = Date.now() + 11000; while (Date.now() < end) {} }")
    at(page, "pause").click()
    playwright.expect(at(page, "state-driver")).to_have_text("driver: PAUSED", timeout=30e3)
    assert page.evaluate("window.sameAsBefore") is True, "the page was loaded anew"
    playwright.expect(at(page, "name")).to_have_value("An")
    sit_down(page, "Anna")
    at(page, "resume").click()
    playwright.expect(at(page, "state-driver")).to_have_text("driver: HOLD")


def test_a_key_labels_and_is_answered_like_a_button(page: Any) -> None:
    sit_down(page, "Anna")
    at(page, "banner").click()  # away from the field of the name
    page.keyboard.press("s")
    answered(page, "Anna: label: refused: the referee of the simulated cell gives the labels")


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
    os.kill(served[1].pid, signal.SIGUSR2)  # news of the cell must not wipe out what was typed
    playwright.expect(at(page, "fault")).to_contain_text("the slider was moved")
    playwright.expect(at(page, "acknowledge")).to_have_value("PROTECTIVE_STOP")
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
    page.evaluate("performance.clearResourceTimings()")
    page.wait_for_timeout(4000)
    after = process.cpu_times()
    passed_s = (page.evaluate("performance.now()") - begun_ms) / 1e3
    share = (after.user + after.system - before.user - before.system) / passed_s
    drawn = "performance.getEntriesByType('resource').filter(e => e.name.includes('/top?')).length"
    load = "performance.getEntriesByType('navigation')[0].loadEventEnd"
    sys.stdout.write(
        f"page load {page.evaluate(load):.0f} ms, {page.evaluate(drawn) / passed_s:.1f} images/s, "
        f"{100 * share:.1f} % of a core, load {os.getloadavg()[0]:.1f}\n"
    )
    assert share < MOST_SHARE_OF_A_CORE, f"{100 * share:.0f} % of a core"


def own_address() -> str:
    """An address of this computer that others could reach; skips where there is none."""
    for addresses in psutil.net_if_addrs().values():
        for entry in addresses:
            if entry.family == socket.AF_INET and not entry.address.startswith("127."):
                return str(entry.address)
    pytest.skip("this computer has no address but loopback")


def test_a_console_that_others_can_reach_asks_for_its_token(browser: Any, tmp_path: Path) -> None:
    with running_stand_in(tmp_path, own_address()) as (address, _):
        stranger = browser.new_context().new_page()
        bare = address.split("?")[0]
        for wanted in (bare, f"{bare}picture/top", f"{bare}report", f"{bare}?token=guessed"):
            refused = stranger.goto(wanted)
            assert refused.status == 403, wanted
            assert "the token is missing or wrong" in stranger.content()
        stranger.context.close()
        invited = browser.new_context().new_page()
        invited.goto(address)
        sit_down(invited, "Anna")
        at(invited, "go-home").click()
        answered(invited, "Anna: go home: done")
        invited.goto(bare)  # the cookie remembers
        playwright.expect(at(invited, "seat")).to_have_text("you have the desk")
        invited.context.close()
