# SPDX-License-Identifier: MIT
"""The operator's guide can be followed: a script types its blocks against the strict emulator.

Every shell block of the guide is either typed here or marked `<!-- person -->`. What is typed
stands in the guide alone; this file knows only how to read it.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from documentation.shell_blocks import Block, read_blocks
from families import ManagedProcess, ProcessFamily, wait_until

from equi_control.rtde.dashboard import Dashboard
from ur_emulator import EmulatorClient

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "ros2_ws" / "docs" / "first_power_up.md"
BLOCKS = list(read_blocks(GUIDE.read_text(encoding="utf-8")))


def test_every_shell_block_is_typed_by_the_test_or_left_to_a_person():
    fences = GUIDE.read_text(encoding="utf-8").count("```bash")
    assert len([block for block in BLOCKS if block.kind != "end"]) == fences
    unmarked = [block.line for block in BLOCKS if not block.kind]
    assert not unmarked, f"blocks at lines {unmarked} of {GUIDE.name} have no comment"
    assert len([block for block in BLOCKS if block.kind == "run"]) >= 8


def test_what_only_a_person_can_check_is_marked():
    lines = GUIDE.read_text(encoding="utf-8").splitlines()
    by_hand = [number for number, line in enumerate(lines) if line.startswith("**By hand**")]
    assert len(by_hand) >= 5
    for number in by_hand:
        assert lines[number + 1] == "<!-- person -->", f"{GUIDE.name}:{number + 1}"


@pytest.mark.parametrize(
    "word",
    [
        "EtherNet/IP, PROFINET and Modbus",
        "Do not jog while the driver is connected",
        "it slows everything, servo streams too",
        "sim:=false",
        "Do not press play",
        "equi-conformance",
    ],
)
def test_the_guide_names_the_traps(word):
    assert word in GUIDE.read_text(encoding="utf-8")


RESET = next(block.text for block in BLOCKS if "reset_fault" in block.text)
"""What the guide says about resetting a fault: look at it, then acknowledge its number."""
BUSY_COMPUTER = {1: "CONNECTION_LOST", 6: "WATCHDOG"}
"""Faults that a computer with other work on it causes at a real cell's strict times."""
MOST_RESETS = 4


class Script:
    """Types the guide, each block in a shell of its own, and resets as the guide says."""

    def __init__(self, processes: ProcessFamily, environment: dict[str, str]) -> None:
        self._processes, self._environment = processes, environment
        self._terminals: dict[str, ManagedProcess] = {}
        self._resets = 0

    def type_block(self, block: Block) -> None:
        """Do what one block says."""
        if block.kind == "terminal":
            started = self._type(block.text)
            started.wait_for_text(block.options["ready"], 90.0)
            self._terminals[block.options["name"]] = started
        elif block.kind == "end":
            ended = self._terminals.pop(block.options["name"])
            ended.press_ctrl_c()
            ended.wait_for_exit(60.0)
        elif block.kind == "run":
            self._run(block)

    def _run(self, block: Block) -> None:
        typed = self._type(block.text)
        code = typed.wait_for_exit(240.0)
        expected = block.options.get("expect", "")
        if code == int(block.options.get("code", 0)) and expected in typed.output:
            return
        if "driver" in self._terminals and self._recovered(block):
            self._run(block)
            return
        said = "\n".join(f"[{name}] {item.output}" for name, item in self._terminals.items())
        pytest.fail(
            f"{GUIDE.name}:{block.line} ended with code {code}, '{expected}' expected:\n"
            f"{block.text}\n{typed.output}\n{said}"
        )

    def stop_and_reset(self, address: str) -> None:
        """A protective stop in mid-work; at the pendant and the keyboard what the guide says."""
        before = self._resets
        with EmulatorClient(address) as api:
            api.request("protective_stop")
            wait_until(
                lambda: api.status()["safety_mode"] == "PROTECTIVE_STOP", 10.0, "the arm stops"
            )

            def enabled() -> bool:
                """The pendant's button, which works after five seconds."""
                with Dashboard(address) as dashboard:
                    dashboard.ask("unlock protective stop")
                return bool(api.status()["safety_mode"] == "NORMAL")

            wait_until(enabled, 30.0, "the robot is enabled again")
        status, answer = self._acknowledge(2)
        assert re.search(r"fault:\s+value: 2\b", status), status
        assert "success=True" in answer, f"{status}\n{answer}"
        self._run(next(block for block in BLOCKS if "driver activate" in block.text))
        self._resets = before

    def _acknowledge(self, number: int) -> tuple[str, str]:
        """Type the guide's block with the numbers that it shows; both answers."""
        look, reset = RESET.splitlines()
        status = self._type(look)
        status.wait_for_exit(60.0)
        counted = re.search(r"fault_count: (\d+)", status.output)
        reset = reset.replace("value: 2", f"value: {number}")
        reset = reset.replace("fault_count: 1", f"fault_count: {counted[1] if counted else 0}")
        answer = self._type(reset)
        answer.wait_for_exit(60.0)
        return status.output, answer.output

    def _recovered(self, block: Block) -> bool:
        """Whether a fault of the busy computer was latched, and could be reset."""
        status = self._type(RESET.splitlines()[0])
        status.wait_for_exit(60.0)
        fault = re.search(r"fault:\s+value: (\d+)", status.output)
        number = int(fault[1]) if fault else 0
        if number not in BUSY_COMPUTER or self._resets == MOST_RESETS:
            return False
        self._resets += 1
        _, answer = self._acknowledge(number)
        if "activate" not in block.text:
            self._type("ros2 lifecycle set /rtde_driver activate").wait_for_exit(60.0)
        return "success=True" in answer

    def _type(self, text: str) -> ManagedProcess:
        preamble = BLOCKS[0].text
        command = ["bash", "-c", f"set -e\ncd {shlex.quote(str(ROOT))}\n{preamble}\n{text}"]
        return self._processes.start(command, self._environment)


@pytest.mark.slow
@pytest.mark.ros
def test_a_script_that_types_the_guide_brings_the_arm_home(
    tmp_path: Path, processes: ProcessFamily, ros_domain_id: int, loopback_address: str
) -> None:
    assert BLOCKS[0].text.startswith("source env.sh")
    script = Script(
        processes,
        {
            **os.environ,
            "ROS_DOMAIN_ID": str(ros_domain_id),
            "ROBOT_IP": loopback_address,
            "CELL": str(tmp_path / "first_cell.yaml"),
            "REPORT": str(tmp_path / "first.json"),
            "ROS_HOME": str(tmp_path / "ros"),  # the cell has no calibration yet
        },
    )
    for block in BLOCKS:
        if "driver deactivate" in block.text:
            script.stop_and_reset(loopback_address)
        script.type_block(block)
