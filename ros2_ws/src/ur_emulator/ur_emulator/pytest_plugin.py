# SPDX-License-Identifier: MIT
"""Fixtures for the tests of a program that talks to a UR robot.

Put `pytest_plugins = ["ur_emulator.pytest_plugin"]` into the top-level conftest.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ur_emulator.launching import EmulatorProcess


@pytest.fixture(scope="module")
def ur5_emulator() -> Iterator[EmulatorProcess]:
    """A UR5 (CB3, 125 Hz) for the tests of one module; connect to `.address`, inject by `.api`."""
    with EmulatorProcess(model="ur5") as emulator:
        yield emulator


@pytest.fixture(scope="module")
def ur5e_emulator() -> Iterator[EmulatorProcess]:
    """As `ur5_emulator`, with an e-Series controller (500 Hz)."""
    with EmulatorProcess(model="ur5e") as emulator:
        yield emulator


@pytest.fixture(scope="module")
def strict_ur5_emulator() -> Iterator[EmulatorProcess]:
    """As `ur5_emulator`, with the strict profile: as unforgiving as a real arm."""
    with EmulatorProcess(model="ur5", profile="strict") as emulator:
        yield emulator
