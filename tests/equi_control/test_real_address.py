# SPDX-License-Identifier: MIT
"""Limits of a simulated cell never reach an address outside loopback."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import yaml

from equi_control.driver.config import DriverConfig
from equi_control.parameters import read_config
from equi_control.real_address import is_loopback, refuse_loose_limits
from equi_control.rtde.config import LinkConfig, LinkError
from equi_control.servo.config import ServoConfig
from equi_core.motion.safety_limits import SafetyLimits


def config_for(host: str, **servo: Any) -> DriverConfig:
    return DriverConfig(ServoConfig(LinkConfig(host), **servo))


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.2", True),
        ("127.3.4.5", True),
        ("::1", True),
        ("localhost", True),
        ("192.168.1.10", False),
        ("0.0.0.0", False),
        ("robot.lab", False),
        ("127.0.0.2.evil", False),
    ],
)
def test_only_this_computer_is_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize("host", ["192.168.1.10", "robot.lab"])
def test_looser_limits_are_refused_by_name_for_a_real_address(host: str) -> None:
    loose = config_for(host, limits=SafetyLimits(max_command_age_s=1.0), max_state_age_s=0.3)

    with pytest.raises(LinkError) as refused:
        refuse_loose_limits(loose)

    text = str(refused.value)
    assert "limits.max_command_age_s is 1.0 (at most 0.25 for a real robot)" in text
    assert "servo.max_state_age_s is 0.3 (at most 0.1 for a real robot)" in text
    assert host in text


def test_the_same_limits_are_fine_on_loopback_and_stricter_ones_anywhere() -> None:
    refuse_loose_limits(config_for("127.0.0.2", max_state_age_s=0.3))
    refuse_loose_limits(config_for("192.168.1.10"))
    refuse_loose_limits(config_for("192.168.1.10", limits=SafetyLimits(max_speed_m_s=0.1)))


def test_a_watchdog_that_waits_longer_is_refused() -> None:
    config = config_for("192.168.1.10")
    slow = dataclasses.replace(config.servo.link, watchdog_hz=5.0)
    servo = dataclasses.replace(config.servo, link=slow)

    with pytest.raises(LinkError, match=r"link\.watchdog_hz is 5\.0 \(at least 10\.0"):
        refuse_loose_limits(dataclasses.replace(config, servo=servo))


def test_a_value_that_is_not_a_number_is_refused() -> None:
    config = dataclasses.replace(config_for("192.168.1.10"), settle_timeout_s=float("nan"))
    with pytest.raises(LinkError, match="settle_timeout_s is nan"):
        refuse_loose_limits(config)


def test_a_real_cell_whose_file_says_nothing_of_servol_has_the_cautious_values() -> None:
    link = read_config(
        lambda name, default, info: "192.168.1.10" if name == "robot_ip" else default
    )[0].servo.link
    assert (link.lookahead_s, link.gain) == (0.1, 300.0)


def test_the_driver_does_not_start_with_the_simulated_cell_at_a_real_address(
    repository_root: Any,
) -> None:
    cells = repository_root / "ros2_ws/src/equi_bringup/launch/cells"
    blocks = {
        name: yaml.safe_load((cells / f"{name}.yaml").read_text())["rtde_driver"]["ros__parameters"]
        for name in ("sim", "lab")
    }

    def start(cell: str, host: str) -> DriverConfig:
        values = {**blocks[cell], "robot_ip": host}
        return read_config(lambda name, default, info: values.get(name, default))[0]

    assert start("sim", "127.0.0.2").servo.link.watchdog_hz == 5.0
    assert start("sim", "127.0.0.2").servo.link.lookahead_s == 0.05
    assert start("sim", "127.0.0.2").servo.link.gain == 400.0
    assert start("lab", "192.168.1.10").servo.link.lookahead_s == 0.1
    with pytest.raises(LinkError, match="those of a simulated cell"):
        start("sim", "192.168.1.10")
