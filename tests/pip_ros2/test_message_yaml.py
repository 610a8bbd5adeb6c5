# SPDX-License-Identifier: MIT
"""Messages to YAML and back, without a ROS graph."""

from __future__ import annotations

import pytest
import yaml
from geometry_msgs.msg import PolygonStamped, PoseWithCovariance
from hypothesis import given, settings
from hypothesis import strategies as st
from pip_ros2_cli.errors import CommandError
from pip_ros2_cli.message_yaml import Style, field_of, fill_message, message_to_yaml, plain_value
from std_msgs.msg import Float64MultiArray, String, UInt8MultiArray
from test_msgs.msg import Arrays, BasicTypes, BoundedSequences, Strings, UnboundedSequences

finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")))
def test_any_text_survives_the_way_through_yaml(text: str) -> None:
    copy = String()
    fill_message(copy, yaml.safe_load(message_to_yaml(String(data=text))))
    assert copy.data == text


@settings(deadline=None)
@given(st.lists(finite, max_size=20))
def test_any_array_survives_the_way_through_yaml(values: list[float]) -> None:
    message = Float64MultiArray(data=values)
    copy = Float64MultiArray()
    fill_message(copy, yaml.safe_load(message_to_yaml(message)))
    assert copy == message


@pytest.mark.parametrize(
    "message_type", [BasicTypes, Arrays, BoundedSequences, UnboundedSequences, Strings]
)
def test_every_kind_of_field_survives_the_way_through_yaml(message_type) -> None:
    message, copy = message_type(), message_type()
    fill_message(copy, yaml.safe_load(message_to_yaml(message)))
    assert copy == message


def test_fields_keep_their_order_and_nest_by_indentation() -> None:
    message = PolygonStamped()
    message.header.frame_id = "base_link"
    assert message_to_yaml(message) == (
        "header:\n  stamp:\n    sec: 0\n    nanosec: 0\n  frame_id: base_link\n"
        "polygon:\n  points: []\n"
    )


def test_long_arrays_and_texts_are_truncated_only_on_demand() -> None:
    numbers, word = UInt8MultiArray(data=bytes(range(10))), String(data="abcdef")
    assert plain_value(numbers, "", Style())["data"] == list(range(10))
    assert plain_value(numbers, "", Style(truncate_length=2))["data"] == [0, 1, "..."]
    assert plain_value(word, "", Style(truncate_length=2)) == {"data": "ab..."}
    assert plain_value(word, "", Style(no_str=True)) == {"data": "<string length: <6>>"}


def test_fixed_arrays_and_sequences_are_told_apart_without_contents() -> None:
    plain = plain_value(PoseWithCovariance(), "", Style(no_arr=True))
    assert plain["covariance"] == "<array type: double[36]>"


def test_a_field_is_found_by_its_path() -> None:
    message = PoseWithCovariance()
    message.pose.position.y = 2.5
    message.covariance[7] = 0.25
    assert field_of(message, "pose.position.y") == (2.5, "double")
    assert field_of(message, "covariance[7]")[0] == 0.25
    with pytest.raises(CommandError, match="Point has x, y, z"):
        field_of(message, "pose.position.w")
    with pytest.raises(CommandError, match="out of bounds"):
        field_of(message, "covariance[36]")


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"pose": {"position": {"x": "abc"}}}, "'x' of Point takes double, got 'abc'"),
        ({"pose": 3}, "'pose' takes a dictionary"),
        ({"covariance": 3}, "'covariance' takes a list"),
        ({"covariance": [1.0]}, "covariance"),
        ({"psoe": {}}, "Did you mean 'pose'?"),
    ],
)
def test_values_that_do_not_fit_name_the_field(values, complaint) -> None:
    with pytest.raises(CommandError) as refusal:
        fill_message(PoseWithCovariance(), values)
    assert complaint in str(refusal.value)


def test_integers_and_exponents_become_floats_where_floats_are_due() -> None:
    message = PoseWithCovariance()
    fill_message(message, yaml.safe_load("{pose: {position: {x: 1, y: 1e-3}}}"))
    assert (message.pose.position.x, message.pose.position.y) == (1.0, 0.001)
