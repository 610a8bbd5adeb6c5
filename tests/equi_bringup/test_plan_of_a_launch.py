# SPDX-License-Identifier: MIT
"""What a launch decides before it starts anything: address, policy, evaluation, cameras."""

from __future__ import annotations

import ipaddress
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from equi_bringup.arguments import ArgumentError
from equi_bringup.evaluation import Evaluation
from equi_bringup.operator_side import require_rviz
from equi_bringup.policy_choice import choose_policy
from equi_bringup.realsense import realsense_parameters
from equi_bringup.robot_address import robot_address
from equi_core.contract import PolicyContract
from equi_core.locations.find import NotFoundError

SIM = "127.0.0.2"
PLAN = Evaluation(
    episodes=3,
    seed=7,
    task="block_picking",
    cell="sim",
    driven_by="policy",
    model=Path("/models/block_picking"),
    record=False,
    balanced=True,
    output="",
)


@pytest.fixture
def no_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    monkeypatch.delenv("EQUI_MODELS", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_a_simulated_cell_without_a_namespace_has_the_address_of_its_file() -> None:
    assert robot_address("", SIM, True, "/") == SIM


def test_cells_in_other_namespaces_have_loopback_addresses_of_their_own_always_the_same() -> None:
    addresses = [robot_address("", SIM, True, f"/cell_{number}") for number in range(200)]
    assert len({*addresses, SIM}) == 201
    assert all(ipaddress.ip_address(address).is_loopback for address in addresses)
    assert robot_address("", SIM, True, "/cell_7") == addresses[7]


def test_a_given_address_and_a_real_robots_address_stay() -> None:
    assert robot_address("127.0.0.9", SIM, True, "/left") == "127.0.0.9"
    assert robot_address("", "192.168.1.10", False, "/left") == "192.168.1.10"
    assert robot_address("10.0.0.4", "192.168.1.10", False, "/left") == "10.0.0.4"


@pytest.mark.parametrize("address", ["192.168.1.10", "robot.lab"])
def test_limits_of_the_simulated_cell_stay_on_loopback(address: str) -> None:
    with pytest.raises(ArgumentError, match=f"robot_ip:={address} is not a loopback address"):
        robot_address(address, SIM, True, "/")


def test_the_policy_is_the_given_model_by_path(tmp_path: Path) -> None:
    PolicyContract(task="block_pulling").save(tmp_path / "contract.json")
    choice = choose_policy(str(tmp_path), "block_pulling", "policy", simulated=False)
    assert (choice.folder, choice.driven_by) == (tmp_path, "policy")


@pytest.mark.parametrize("simulated", [True, False])
def test_a_model_of_another_task_is_refused_with_the_task_it_was_trained_for(
    tmp_path: Path, simulated: bool
) -> None:
    PolicyContract(task="drawer_opening").save(tmp_path / "contract.json")
    with pytest.raises(ArgumentError, match="trained for drawer_opening, but task:=block_picking"):
        choose_policy(str(tmp_path), "block_picking", "policy", simulated)


@pytest.mark.usefixtures("no_models")
def test_without_a_policy_the_expert_drives_the_simulated_cell_by_a_contract_of_the_task() -> None:
    choice = choose_policy("", "block_pulling", "policy", simulated=True)
    assert choice.driven_by == "expert"
    assert PolicyContract.load(choice.folder / "contract.json").task == "block_pulling"


@pytest.mark.usefixtures("no_models")
@pytest.mark.parametrize(("model", "simulated"), [("", False), ("mine", True), ("./mine", True)])
def test_a_robot_or_a_named_model_is_never_replaced_by_the_expert(
    model: str, simulated: bool
) -> None:
    with pytest.raises(NotFoundError, match="equi-train and equi-export"):
        choose_policy(model, "block_pulling", "policy", simulated)


def test_the_evaluation_is_labelled_by_the_referee_and_keeps_what_was_asked_for() -> None:
    words = replace(PLAN, record=True, balanced=False, output="/tmp/out").arguments(simulated=True)
    text = " ".join(words)
    assert "--episodes 3 --task block_picking --cell sim --model /models/block_picking" in text
    assert "--seed 7 --driven-by policy --ground-truth" in text
    assert words[-4:] == ["--record", "--any-order", "--output", "/tmp/out"]
    plain = PLAN.arguments(simulated=True)
    assert {"--record", "--any-order", "--output"} & set(plain) == set()


def test_episodes_on_a_robot_are_refused_with_the_command_for_the_operator() -> None:
    with pytest.raises(ArgumentError, match="ros2 run equi_evaluation evaluate --episodes 3"):
        PLAN.arguments(simulated=False)


def test_a_realsense_is_chosen_by_its_serial_and_leaves_the_frames_to_perception() -> None:
    parameters = realsense_parameters("cam_left", "831612073525")
    assert parameters["serial_no"] == "_831612073525"
    assert parameters["pointcloud.enable"] is True
    assert parameters["publish_tf"] is False
    assert parameters["camera_name"] == "cam_left"
    prefixed = realsense_parameters("cam_left", "831612073525", "left_")
    assert prefixed["camera_name"] == "left_cam_left"
    for serial in ("", "any"):
        with pytest.raises(ArgumentError, match=r"cell\.cam_left\.serial"):
            realsense_parameters("cam_left", serial)


def test_a_view_without_rviz_is_refused_and_told_what_else_there_is(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ArgumentError, match=r"no rviz2 on the PATH; install it .*console:=true"):
        require_rviz()
    program = tmp_path / "rviz2"
    program.touch(mode=0o755)
    require_rviz()
