# SPDX-License-Identifier: MIT
"""Lifecycle nodes and their manager over real ROS: order, refusals, deaths, waiting transitions."""

from __future__ import annotations

import signal
import sys
from typing import Any

import pytest
from families import wait_until

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]
PATIENCE_S = 90.0

# Behaves as its parameters say; prints what its hooks do.
NODE = """
import logging, sys
from equi_ros.lifecycle.managed_node import ManagedNode, TransitionRefused
from equi_ros.parameters import declare
from equi_ros.run_node import run_node

class Part(ManagedNode):
    def __init__(self):
        super().__init__("part")
        declare(self, "fails_to", "", "the hook that fails", read_only=False)
        declare(self, "how", "refusal", "refusal or error", read_only=False)
        declare(self, "go_on", True, "whether activating may end")

    def _hook(self, name):
        print(self.get_name(), name, flush=True)
        if self.get_parameter("fails_to").value == name:
            if self.get_parameter("how").value == "refusal":
                raise TransitionRefused("the bolt is loose")
            raise KeyError("a defect")

    def configure(self):
        self._hook("configure")

    async def activate(self):
        self._hook("activate")
        logging.getLogger("equi_part.core").error("said by a library")
        await self.waiter.until(lambda: self.get_parameter("go_on").value, 600.0)

    def deactivate(self):
        self._hook("deactivate")

    def cleanup(self):
        self._hook("cleanup")

sys.exit(run_node("part", Part))
"""


@pytest.fixture
def start(processes: Any, ros_domain_id: int) -> Any:
    """Starts a node by name, with parameters."""

    def start(name: str, **parameters: str) -> Any:
        words = [word for key, value in parameters.items() for word in ("-p", f"{key}:={value}")]
        return processes.start(
            [sys.executable, "-c", NODE, "--ros-args", "-r", f"__node:={name}", *words],
            {"ROS_DOMAIN_ID": str(ros_domain_id)},
        )

    return start


@pytest.fixture
def manage(processes: Any, ros_domain_id: int) -> Any:
    """Starts the lifecycle manager for some nodes."""

    def manage(*names: str, **parameters: str) -> Any:
        given = {"node_names": f"[{', '.join(names)}]", **parameters}
        words = [word for key, value in given.items() for word in ("-p", f"{key}:={value}")]
        return processes.start(
            [
                sys.executable,
                "-m",
                "equi_ros.lifecycle.lifecycle_manager_node",
                "--ros-args",
                *words,
            ],
            {"ROS_DOMAIN_ID": str(ros_domain_id)},
        )

    return manage


@pytest.mark.slow
def test_nodes_come_up_in_order_and_the_death_of_one_brings_the_others_down(
    start: Any, manage: Any, ros_probe: Any
) -> None:
    from std_srvs.srv import Trigger

    eye, arm = start("eye"), start("arm")
    manager = manage("eye", "arm")
    manager.wait_for_text("every node is up: eye, arm", PATIENCE_S)
    assert ros_probe.lifecycle_state("/arm") == "active"
    answer = ros_probe.call(Trigger, "/lifecycle_manager/is_active", Trigger.Request())
    assert answer.success
    assert answer.message == "eye active, arm active"

    eye.signal_alone(signal.SIGKILL)

    assert manager.wait_for_exit(PATIENCE_S) == 1
    assert "bringing every node down: eye died, or hangs" in manager.output
    assert arm.wait_for_exit(PATIENCE_S) == 0, "a finalized node ends"
    assert [line for line in arm.output.splitlines() if line.startswith("arm ")] == [
        "arm configure",
        "arm activate",
        "arm deactivate",
        "arm cleanup",
    ]


def test_a_node_that_ends_by_itself_brings_the_others_down_at_once(start: Any, manage: Any) -> None:
    eye, arm = start("eye"), start("arm")
    manager = manage("eye", "arm")
    manager.wait_for_text("every node is up: eye, arm", PATIENCE_S)

    eye.signal_alone(signal.SIGTERM)

    assert manager.wait_for_exit(PATIENCE_S) == 1
    assert "bringing every node down: eye has ended" in manager.output
    assert arm.wait_for_exit(PATIENCE_S) == 0


def test_a_refusal_is_told_by_the_manager_with_its_reason_and_nothing_was_activated(
    start: Any, manage: Any
) -> None:
    eye = start("eye")
    start("arm", fails_to="configure")
    manager = manage("eye", "arm")

    assert manager.wait_for_exit(PATIENCE_S) == 1
    assert "arm did not configure (it was unconfigured)" in manager.output
    assert "refused to configure: the bolt is loose" in manager.output
    assert eye.wait_for_exit(PATIENCE_S) == 0
    assert "eye activate" not in eye.output


def test_a_node_left_to_the_operator_is_only_configured_and_may_be_deactivated_again(
    start: Any, manage: Any, ros_probe: Any
) -> None:
    start("eye"), start("arm")
    manager = manage("eye", "arm", manual_activation="[arm]")
    manager.wait_for_text("ros2 lifecycle set /arm activate", PATIENCE_S)
    assert ros_probe.lifecycle_state("/arm") == "inactive"

    assert ros_probe.change_state("/arm", "activate")
    assert ros_probe.change_state("/arm", "deactivate")
    manager.wait_for_text("arm was deactivated; the other nodes stay", PATIENCE_S)
    assert ros_probe.lifecycle_state("/eye") == "active"


def test_while_a_transition_waits_the_node_answers_and_its_libraries_reach_rosout(
    start: Any, ros_probe: Any
) -> None:
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from rcl_interfaces.msg import Log
    from rclpy.qos import DurabilityPolicy, QoSProfile

    start("arm", go_on="false")
    assert ros_probe.change_state("/arm", "configure", PATIENCE_S)
    client = ros_probe.node.create_client(ChangeState, "/arm/change_state")
    wait_until(client.service_is_ready, PATIENCE_S, "the service")
    pending = client.call_async(
        ChangeState.Request(transition=Transition(id=Transition.TRANSITION_ACTIVATE))
    )

    wait_until(
        lambda: ros_probe.lifecycle_state("/arm") == "activating", PATIENCE_S, "it activates"
    )
    assert not ros_probe.change_state("/arm", "activate"), "one transition at a time"
    assert not pending.done()
    rosout = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    said = ros_probe.wait_for_message(
        Log, "/rosout", lambda m: m.msg == "said by a library", qos=rosout
    )
    assert said.name == "arm.equi_part.core"


@pytest.mark.parametrize(
    ("hook", "how", "state", "cleaned_up"),
    [
        ("configure", "refusal", "unconfigured", True),
        ("activate", "refusal", "inactive", False),
        ("configure", "error", "unconfigured", True),
        ("activate", "error", "unconfigured", True),
        ("deactivate", "refusal", "unconfigured", True),
    ],
)
def test_a_failed_transition_leaves_a_state_from_which_one_can_go_on(
    start: Any, ros_probe: Any, hook: str, how: str, state: str, cleaned_up: bool
) -> None:
    node = start("arm", fails_to=hook, how=how)
    for transition in ("configure", "activate", "deactivate"):
        if not ros_probe.change_state("/arm", transition, PATIENCE_S):
            assert transition == hook
            break
    assert ros_probe.lifecycle_state("/arm") == state
    assert ("arm cleanup" in node.output) == cleaned_up
    assert not ros_probe.change_state("/arm", "deactivate"), "impossible here, and no reason to end"
    assert node.is_running


def test_parameters_are_described_and_can_be_changed_while_unconfigured_only(
    start: Any, ros_probe: Any
) -> None:
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import DescribeParameters, SetParameters

    start("arm")
    request = DescribeParameters.Request(names=["how", "go_on"])
    how, go_on = ros_probe.call(
        DescribeParameters, "/arm/describe_parameters", request, PATIENCE_S
    ).descriptors
    assert (how.description, how.read_only) == ("refusal or error", False)
    assert go_on.read_only

    def change() -> Any:
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value="error")
        wanted = SetParameters.Request(parameters=[Parameter(name="how", value=value)])
        return ros_probe.call(SetParameters, "/arm/set_parameters", wanted).results[0]

    assert change().successful
    assert ros_probe.change_state("/arm", "configure")
    refused = change()
    assert not refused.successful
    assert "ros2 lifecycle set /arm cleanup" in refused.reason
    assert ros_probe.change_state("/arm", "cleanup")
    assert change().successful
