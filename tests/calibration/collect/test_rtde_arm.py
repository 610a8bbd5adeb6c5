# SPDX-License-Identifier: MIT
"""The arm that calibration moves is the one of the cell file, or it is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from calibration_cells import simulated_cell

from equi_calibration.collect.rtde_arm import RtdeArm
from equi_calibration.errors import CollectError
from equi_core.motion.arm_models import ARM_MODELS, UR5
from ur_emulator.launching import EmulatorProcess

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def ur5e() -> Iterator[EmulatorProcess]:
    with EmulatorProcess(model="ur5e", behaviours={"own_links": True}) as emulator:
        yield emulator


@pytest.mark.parametrize("listen_only", [False, True])
def test_another_arm_than_the_cell_files_is_refused_by_name(
    ur5e: EmulatorProcess, listen_only: bool
) -> None:
    cell = dataclasses.replace(simulated_cell(), arm=UR5)
    with (
        pytest.raises(CollectError, match=r"drives a ur5e, but link\.robot_model is ur5;"),
        RtdeArm(cell, ur5e.address, listen_only=listen_only),
    ):
        pass


@pytest.mark.parametrize("listen_only", [False, True])
def test_a_ur5e_of_a_ur5e_cell_is_read(ur5e: EmulatorProcess, listen_only: bool) -> None:
    cell = dataclasses.replace(simulated_cell(), arm=ARM_MODELS["ur5e"])
    with RtdeArm(cell, ur5e.address, listen_only=listen_only) as arm:
        assert np.all(np.isfinite(arm.read().base_from_tcp))
