# SPDX-License-Identifier: MIT
"""`make bench-console`: how fast the console's page answers, and what it costs; on a quiet machine.

Presses a button many times in a real browser, over a cell that only answers presses. Prints every
figure beside what is allowed, and ends with 1 if one is missed. Times of a clock belong here and
not in a test: a busy machine would fail it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from console_page import (
    CHROMIUM,
    answered,
    press_times_ms,
    running_stand_in,
    sit_down,
)

MOST_VISIBLE_MS = 200.0
MOST_ANSWERED_MS = 200.0
LEAST_IMAGES_HZ = 9.0
MOST_SHARE_OF_A_CORE = 0.15
MOST_LOAD_MS = 5000.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, prog="make bench-console")
    parser.add_argument("--presses", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=10.0, help="for images and processor time")
    options = parser.parse_args(arguments)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.stderr.write("bench-console: Playwright is missing; run 'make setup CONSOLE=1'\n")
        return 2
    if CHROMIUM is None:
        sys.stderr.write("bench-console: there is no chromium; install the distribution's\n")
        return 2
    before = os.getloadavg()[0]
    with (
        tempfile.TemporaryDirectory() as folder,
        running_stand_in(Path(folder)) as (address, process),
        sync_playwright() as api,
    ):
        browser = api.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_context(viewport={"width": 1500, "height": 1200}).new_page()
        page.goto(address)
        load_ms = float(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))
        images_hz, share = _images(page, process.pid, options.seconds)
        sit_down(page, "Anna")
        times = np.array([_press(page) for _ in range(options.presses)])
        browser.close()
    figures = (
        ("press visible, worst [ms]", times[:, 0].max(), MOST_VISIBLE_MS),
        (
            "press answered by the console, 95 % [ms]",
            np.percentile(times[:, 1], 95),
            MOST_ANSWERED_MS,
        ),
        ("page load [ms]", load_ms, MOST_LOAD_MS),
        ("share of a core [%]", 100 * share, 100 * MOST_SHARE_OF_A_CORE),
        ("time between images [ms]", 1e3 / max(images_hz, 1e-3), 1e3 / LEAST_IMAGES_HZ),
    )
    sys.stdout.write(f"{options.presses} presses; load {before:.1f} before\n")
    for name, found, most in figures:
        verdict = "ok  " if found <= most else "MISS"
        sys.stdout.write(f"{verdict} {name:42} {found:8.1f}  at most {most:.0f}\n")
    for name, column in zip(("visible", "answered"), times.T, strict=True):
        words = ", ".join(f"{value:.0f}" for value in np.percentile(column, [50, 95, 100]))
        sys.stdout.write(f"     press {name}: p50, p95, max {words} ms\n")
    return int(any(found > most for _, found, most in figures))


def _press(page: Any) -> tuple[float, float]:
    """One press, after the answer to the one before is complete."""
    times = press_times_ms(page, "go-home")
    answered(page, "Anna: go home: done")
    page.wait_for_function(
        "!document.querySelector('[data-testid=answers]').innerText.includes('asked ...')"
    )
    return times


def _images(page: Any, pid: int, seconds: float) -> tuple[float, float]:
    """Pictures a second, and the console's share of a core while it sends them."""
    process = psutil.Process(pid)
    page.wait_for_function("document.querySelector('[data-testid=top] img').naturalWidth == 420")
    page.evaluate(
        "performance.clearResourceTimings(); performance.setResourceTimingBufferSize(5000)"
    )
    before, begun_ms = process.cpu_times(), page.evaluate("performance.now()")
    page.wait_for_timeout(1e3 * seconds)
    after, ended_ms = process.cpu_times(), page.evaluate("performance.now()")
    passed_s = (ended_ms - begun_ms) / 1e3
    drawn = "performance.getEntriesByType('resource').filter(e => e.name.includes('/top?')).length"
    used_s = after.user + after.system - before.user - before.system
    return page.evaluate(drawn) / passed_s, used_s / passed_s


if __name__ == "__main__":
    sys.exit(main())
