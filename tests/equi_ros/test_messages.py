# SPDX-License-Identifier: MIT
"""Stamps, diagnostics, QoS and parameters: the small parts that every node shares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from equi_core.setting_fields import setting
from equi_ros.stamps import nanoseconds, time_message

pytestmark = pytest.mark.ros


@pytest.mark.parametrize("stamp_ns", [0, 1, 999_999_999, 1_000_000_000, 1_722_000_000_123_456_789])
def test_a_stamp_survives_the_way_into_a_message_and_back(stamp_ns: int) -> None:
    message = time_message(stamp_ns)
    assert (message.sec, message.nanosec) == divmod(stamp_ns, 10**9)
    assert nanoseconds(message) == stamp_ns


def test_a_stamp_decoded_from_a_record_is_read_like_one_of_ros() -> None:
    assert nanoseconds(SimpleNamespace(sec=2, nanosec=5)) == 2_000_000_005


def test_diagnostics_carry_the_health_of_every_task_that_has_something_to_say(
    ros_probe: Any,
) -> None:
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

    from equi_ros.diagnostics import DiagnosticsUpdater, Health

    updater = DiagnosticsUpdater(ros_probe.node)
    updater.hardware_id = "serial 7"
    updater.add(lambda: Health("no episode", {"step p50 [ms]": "12"}, DiagnosticStatus.WARN))
    updater.add(lambda: None, "silent")
    updater.add(lambda: Health("active"), "lifecycle")

    message = ros_probe.wait_for_message(DiagnosticArray, "/diagnostics")

    main, lifecycle = message.status
    assert (main.name, main.message, main.level) == ("test_probe", "no episode", b"\x01")
    assert [(value.key, value.value) for value in main.values] == [("step p50 [ms]", "12")]
    assert (lifecycle.name, lifecycle.level) == ("test_probe: lifecycle", b"\x00")
    assert {status.hardware_id for status in message.status} == {"serial 7"}


@pytest.mark.parametrize("topic", ["ROBOT_STATE", "OBSERVATION", "COMMAND", "LATCHED"])
def test_streams_of_which_only_the_newest_message_counts_never_queue(topic: str) -> None:
    from equi_ros import qos

    assert getattr(qos, topic).depth == 1


@dataclass(frozen=True)
class Limits:
    max_age_s: float = 0.5
    centre_m: tuple[float, float] = (0.1, 0.2)
    retries: int = 3
    name: str = "fixed"

    def __post_init__(self) -> None:
        if self.max_age_s <= 0:
            raise ValueError(f"max_age_s is {self.max_age_s}; it must be positive")


@pytest.fixture
def make_node(ros_domain_id: int) -> Iterator[Any]:
    """Makes a node with parameters from a command line."""
    import rclpy
    from rclpy.context import Context

    context = Context()
    nodes = []

    def make(*words: str) -> Any:
        rclpy.init(context=context, args=["--ros-args", *words], domain_id=ros_domain_id)
        nodes.append(rclpy.create_node("settings", context=context))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()
    context.try_shutdown()


def test_each_field_of_a_dataclass_is_a_parameter(make_node: Any) -> None:
    from equi_ros.parameters import declare_settings

    node = make_node("-p", "fusion.max_age_s:=1.5", "-p", "fusion.centre_m:=[0.3, 0.4]")
    limits = declare_settings(node, Limits(), "fusion.", skip=("name",))
    assert limits == Limits(max_age_s=1.5, centre_m=(0.3, 0.4))
    assert node.get_parameter("fusion.retries").value == 3
    assert not node.has_parameter("fusion.name")


def test_a_parameter_is_held_against_the_rules_of_the_dataclass(make_node: Any) -> None:
    from equi_ros.parameters import declare_settings

    with pytest.raises(ValueError, match=r"max_age_s is -1\.0"):
        declare_settings(make_node("-p", "max_age_s:=-1.0"), Limits())


@dataclass(frozen=True)
class Ranged:
    speed_m_s: float = setting(0.2, low=0.0, high=1.0)
    """How fast it may go."""
    names: tuple[str, ...] = setting((), "who takes part")
    low_m: float = 0.1
    high_m: float = 0.3

    def __post_init__(self) -> None:
        if not self.low_m < self.high_m:
            raise ValueError(f"low_m {self.low_m} must lie below high_m {self.high_m}")


def test_a_described_parameter_tells_its_unit_and_range(make_node: Any) -> None:
    from equi_ros.parameters import declare_settings

    node = make_node("-p", "names:=[left, right]")
    assert declare_settings(node, Ranged()).names == ("left", "right")
    speed = node.describe_parameter("speed_m_s")
    assert speed.description == "How fast it may go. [m/s]"
    assert speed.read_only
    (allowed,) = speed.floating_point_range
    assert (allowed.from_value, allowed.to_value) == (0.0, 1.0)


def test_a_list_without_members_is_an_empty_tuple(make_node: Any) -> None:
    from equi_ros.parameters import declare_settings

    assert declare_settings(make_node(), Ranged()).names == ()


@pytest.mark.parametrize("value", ["2.0", ".nan", "fast"])
def test_a_value_out_of_range_or_of_another_type_is_refused_at_the_start(
    make_node: Any, value: str
) -> None:
    from rclpy.exceptions import ParameterException

    from equi_ros.parameters import declare_settings

    with pytest.raises(ParameterException, match="speed_m_s"):
        declare_settings(make_node("-p", f"speed_m_s:={value}"), Ranged())


def test_a_change_that_the_dataclass_would_refuse_is_refused_with_its_own_words(
    make_node: Any,
) -> None:
    from rclpy.parameter import Parameter

    from equi_ros.parameters import declare_settings, read_settings

    node = make_node()
    declare_settings(node, Ranged(), "box.", read_only=False)

    def change(name: str, value: float) -> Any:
        return node.set_parameters([Parameter(f"box.{name}", value=value)])[0]

    refused = change("low_m", 0.4)
    assert (refused.successful, refused.reason) == (False, "low_m 0.4 must lie below high_m 0.3")
    assert not change("speed_m_s", 3.0).successful
    assert change("low_m", 0.2).successful
    assert read_settings(node, Ranged(), "box.").low_m == 0.2


def test_a_read_only_parameter_cannot_be_changed(make_node: Any) -> None:
    from rclpy.parameter import Parameter

    from equi_ros.parameters import declare_settings

    node = make_node()
    declare_settings(node, Ranged())
    (refused,) = node.set_parameters([Parameter("low_m", value=0.2)])
    assert not refused.successful
    assert "read-only" in refused.reason


def test_a_background_node_receives_while_other_work_goes_on(ros_domain_id: int) -> None:
    import threading

    from std_msgs.msg import String

    from equi_ros import qos
    from equi_ros.background_node import BackgroundNode

    received = threading.Event()
    with (
        BackgroundNode("listener", ros_domain_id) as listener,
        BackgroundNode("talker", ros_domain_id) as talker,
    ):
        listener.node.create_subscription(String, "word", lambda _: received.set(), qos.LATCHED)
        talker.node.create_publisher(String, "word", qos.LATCHED).publish(String(data="hello"))
        assert received.wait(60.0)
