# SPDX-License-Identifier: MIT
"""A real browser for the tests of the console: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from console_page import CHROMIUM


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser without windows; nothing is downloaded. Its event loop ends with the module."""
    api = pytest.importorskip("playwright.sync_api", reason="needs make setup CONSOLE=1")
    if CHROMIUM is None:
        pytest.skip("needs Debian's chromium")
    with api.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()
