# SPDX-License-Identifier: MIT
"""Arguments of a launch: unknown ones are refused by the file itself, numbers are read strictly."""

from __future__ import annotations

import pytest

from equi_bringup.arguments import (
    ROBOT_IP,
    TASK,
    ArgumentError,
    cell_argument,
    refuse_unknown,
    whole_number,
)

FILE = "/opt/share/equi_bringup/launch/sim2real.launch.py"
KNOWN = (TASK, ROBOT_IP, cell_argument())
ASKED_FOR = ["/usr/bin/ros2", "launch", "equi_policy", "sim2real.launch.py"]


def test_a_mistyped_argument_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ArgumentError) as caught:
        refuse_unknown(FILE, ["task:=block_picking", "robot_pi:=127.0.0.3"], ASKED_FOR, KNOWN)
    assert "sim2real.launch.py has no argument 'robot_pi'; did you mean 'robot_ip'?" in str(
        caught.value
    )
    assert "task, robot_ip, cell" in str(caught.value)


def test_an_argument_like_no_other_is_refused_without_a_hint() -> None:
    with pytest.raises(ArgumentError, match="no argument 'zzz'; Its arguments"):
        refuse_unknown(FILE, ["zzz:=1"], ASKED_FOR, KNOWN)


def test_known_arguments_pass_also_with_an_equals_sign_in_their_value() -> None:
    refuse_unknown(FILE, ["task:=a:=b", "cell:="], [*ASKED_FOR[:2], f"./launch{FILE}"], KNOWN)


def test_a_file_that_includes_ours_may_have_arguments_of_its_own() -> None:
    refuse_unknown(FILE, ["left_arm:=true"], ["ros2", "launch", "my_lab", "all.launch.py"], KNOWN)


@pytest.mark.parametrize("text", ["-1", "2.0", "two", "", "True", "1;2", "'5'"])
def test_what_is_no_count_is_refused_by_name_and_value(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"episodes:=.* must be a whole number"):
        whole_number("episodes", text)


def test_a_count_is_read() -> None:
    assert whole_number("episodes", "0") == 0
    assert whole_number("seed", " 900000000") == 900_000_000
