# SPDX-License-Identifier: MIT
"""Law: limits of the simulated cell stay on loopback; no check is switched off silently."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from equi_control.driver.config import DriverConfig
from equi_control.real_address import refuse_loose_limits
from equi_control.rtde.config import LinkConfig, LinkError
from equi_control.servo.config import ServoConfig
from equi_core.calibration import ANY_SERIAL, CalibrationRefusedError, CellCalibration
from equi_core.cell_file import CellFile, CellFileError
from equi_core.files.cell_ceilings import BOUNDS, loosened_too_far

CELLS = Path(__file__).resolve().parents[2] / "ros2_ws/src/equi_bringup/launch/cells"
REAL = DriverConfig(ServoConfig(LinkConfig("192.168.1.10")))
EXEMPT = {
    "home_position_m": "a place, no limit; every set-point on the way is kept in the box",
    "home_yaw_rad": "a place, no limit; the way there is kept within limits.yaw_range_rad",
    "use_gripper": "False drives no fingers, and what they hold they keep",
    "connect_timeout_s": "nothing is driven before the robot is connected",
    "servo.realtime_priority": "asks the computer; late cycles are caught by ages and watchdog",
    "servo.link.host": "the address that decides which limits apply",
    "servo.link.geometry": "measured facts of the cell, with ranges of their own",
    "servo.link.robot_model": "a fact; another arm at the address is refused",
    "servo.link.payload_kg": "a fact of the mounted gripper, 0 to 5 kg",
    "servo.link.payload_cog_m": "a fact of the mounted gripper",
}
"""Fields of the driver's configuration that no real address forbids, and why."""
NESTED = {"servo", "servo.link", "servo.limits", "servo.limits.workspace"}
DARING = {
    "arrival_tolerance_m": 0.02,
    "arrival_tolerance_rad": 0.3,
    "settle_timeout_s": 5.0,
    "step_timeout_s": 100.0,
    "min_speed_share": 0.02,
    "gripper_timeout_s": 30.0,
    "gripper_activation_timeout_s": 25.0,
    "servo.contact_deceleration_m_s2": 2.0,
    "servo.limits.max_step_m": 0.1,
    "servo.limits.max_yaw_step_rad": 1.0,
    "servo.limits.max_yaw_from_start_rad": 6.0,
    "servo.limits.max_yaw_rate_rad_s": 3.0,
    "servo.limits.max_yaw_acceleration_rad_s2": 20.0,
    "servo.limits.max_yaw_jerk_rad_s3": 300.0,
    "servo.limits.yaw_range_rad": 6.0,
    "servo.limits.workspace.x_min_m": 0.1,
    "servo.limits.workspace.x_max_m": 0.9,
    "servo.limits.workspace.y_min_m": -0.5,
    "servo.limits.workspace.y_max_m": 0.5,
    "servo.limits.workspace.z_min_m": 0.0,
    "servo.limits.workspace.z_max_m": 0.6,
    "servo.link.lookahead_s": 0.05,
    "servo.link.gain": 400.0,
}
"""What a simulated cell may try and a real one must not."""


def field_names(config: Any = REAL, prefix: str = "") -> list[str]:
    """Every field of the driver's configuration, nested ones by dotted name."""
    names: list[str] = []
    for spec in dataclasses.fields(config):
        name = prefix + spec.name
        nested = name in NESTED
        names += field_names(getattr(config, spec.name), f"{name}.") if nested else [name]
    return names


def with_value(config: Any, name: str, value: Any) -> Any:
    first, _, rest = name.partition(".")
    return dataclasses.replace(
        config, **{first: with_value(getattr(config, first), rest, value) if rest else value}
    )


def value_of(name: str) -> float:
    value: Any = REAL
    for part in name.split("."):
        value = getattr(value, part)
    return float(value)


def is_refused(name: str, value: float) -> bool:
    try:
        refuse_loose_limits(with_value(REAL, name, value))
    except LinkError as refused:
        return name.split(".")[-1] in str(refused)
    return False


@pytest.mark.parametrize("name", [name for name in field_names() if name not in EXEMPT])
def test_every_setting_of_the_driver_has_a_loosest_value_for_a_real_robot(name: str) -> None:
    """A new one must get a bound in `real_address`, or a reason here."""
    value = value_of(name)
    assert not is_refused(name, value), "the default itself"
    assert is_refused(name, 1.05 * value) or is_refused(name, 0.95 * value)


def test_every_exempt_setting_exists_and_has_a_reason() -> None:
    assert set(EXEMPT) <= set(field_names())
    assert all(EXEMPT.values())


@pytest.mark.parametrize(("name", "value"), DARING.items())
def test_what_a_simulated_cell_may_try_is_refused_for_a_real_robot(name: str, value: float) -> None:
    assert is_refused(name, value)


def written(tmp_path: Path, change: Any, cell: str = "lab") -> Path:
    data = yaml.safe_load((CELLS / f"{cell}.yaml").read_text())
    change(data)
    path = tmp_path / "cell.yaml"
    path.write_text(yaml.safe_dump(data))
    return path


@pytest.mark.parametrize("cell", ["sim", "lab"])
def test_the_shipped_cells_keep_their_bounds(cell: str) -> None:
    CellFile.load(CELLS / f"{cell}.yaml")


@pytest.mark.parametrize(
    ("node", "name"), [(node, name) for node, bounds in BOUNDS.items() for name in bounds]
)
def test_no_limit_of_a_real_cell_can_be_loosened_beyond_its_bound(
    tmp_path: Path, node: str, name: str
) -> None:
    bound = BOUNDS[node][name]
    too_loose = bound.real * (0.9 if bound.lower else 1.1)

    def loosen(data: dict[str, Any]) -> None:
        data.setdefault(node, {"ros__parameters": {}})["ros__parameters"][name] = too_loose

    with pytest.raises(CellFileError, match=name.replace(".", r"\.")):
        CellFile.load(written(tmp_path, loosen))


def test_the_simulated_cells_own_settings_are_refused_for_a_real_one(tmp_path: Path) -> None:
    def pretend(data: dict[str, Any]) -> None:
        data["cell"]["ros__parameters"]["simulated"] = False

    with pytest.raises(CellFileError, match="in a real cell"):
        CellFile.load(written(tmp_path, pretend, "sim"))


def test_the_file_of_a_real_cell_cannot_switch_the_calibration_check_off(tmp_path: Path) -> None:
    def switch_off(data: dict[str, Any]) -> None:
        data["depth_fusion"]["ros__parameters"]["ignore_calibration_verdict"] = True

    with pytest.raises(CellFileError, match="ignore_calibration_verdict"):
        CellFile.load(written(tmp_path, switch_off))


@pytest.mark.parametrize("value", [True, "0.1", None, float("nan"), -1.0])
def test_a_limit_that_is_no_number_of_its_range_is_refused(value: object) -> None:
    blocks = {"depth_fusion": {"max_cloud_age_s": value}}
    assert list(loosened_too_far(blocks, simulated=True))


def test_an_empty_camera_serial_is_refused_and_any_skips_the_check(repository_root: Path) -> None:
    """That perception says so aloud: tests/equi_perception/test_depth_fusion_node.py."""
    calibration = CellCalibration.load(repository_root / "calibration/results/sim")
    names = [camera.name for camera in calibration.cameras]
    serials = {camera.name: camera.serial for camera in calibration.cameras}
    calibration.require_usable(names, serials=serials)
    for wrong, word in (("", "no serial number"), ("123", "has serial 123")):
        with pytest.raises(CalibrationRefusedError, match=word):
            calibration.require_usable(names, serials={**serials, names[0]: wrong})
    calibration.require_usable(names, serials={**serials, names[0]: ANY_SERIAL})
