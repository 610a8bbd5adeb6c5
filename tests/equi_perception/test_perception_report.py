# SPDX-License-Identifier: MIT
"""Specification of what perception reports: no chatter, and metrics under stable names."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equi_core.observation.builder import FusedObservation
from equi_perception.freshness import Cause, Issue
from equi_perception.perception_report import PerceptionMetrics, StatusDebouncer, reportable

CAMERAS = ("cam_left", "cam_right")
MOVING = Issue(Cause.ROBOT_MOVING, "the arm is moving")
EARLY = Issue(Cause.CLOUD_BEFORE_REST, "cam_left was taken before the arm came to rest")


def stale(camera: str, age_s: float) -> Issue:
    return Issue(Cause.CLOUD_STALE, f"{camera} is {age_s:.2f} s old, at most 0.40 s is allowed")


def fused(unseen=0.25) -> FusedObservation:
    image = np.zeros((2, 4, 4), np.float32)
    return FusedObservation(image, image[0], unseen, (10, 20), (1, 2), {"fuse": 3.0})


def test_a_step_of_the_arm_is_not_reportable():
    assert reportable([MOVING, EARLY]) == []
    assert reportable([MOVING, stale("cam_left", 1.0)]) == [stale("cam_left", 1.0)]


def test_the_first_status_counts_as_a_change_even_if_all_is_well():
    status = StatusDebouncer()
    assert status.changed([])
    assert not status.changed([])


def test_a_growing_age_is_no_change_but_another_camera_is():
    status = StatusDebouncer()
    assert status.changed([stale("cam_left", 1.0)])
    assert not status.changed([stale("cam_left", 2.0)])
    assert status.changed([stale("cam_left", 3.0), stale("cam_right", 1.0)])
    assert status.changed([])


def test_the_order_of_issues_is_no_change():
    status = StatusDebouncer()
    first, second = stale("cam_left", 1.0), stale("cam_right", 1.0)
    assert status.changed([first, second])
    assert not status.changed([second, first])


def test_before_the_first_observation_there_are_ages_only():
    metrics = PerceptionMetrics(CAMERAS)
    assert metrics.values((0.1, math.nan), 0) == {
        "cam_left age [s]": "0.100",
        "cam_right age [s]": "nan",
        "observations": "0",
    }


def test_the_newest_observation_is_described_per_camera():
    metrics = PerceptionMetrics(CAMERAS)
    metrics.count_rejected("cam_right")
    metrics.add(fused(), {"fuse": 3.0})
    values = metrics.values((0.1, 0.2), 1)
    assert values["unseen fraction"] == "0.2500"
    assert (values["cam_left points in view"], values["cam_right points in view"]) == ("10", "20")
    assert (values["cam_left points on robot"], values["cam_right points on robot"]) == ("1", "2")
    assert values["cam_left clouds out of order"] == "0"
    assert values["cam_right clouds out of order"] == "1"


def test_times_are_quantiles_over_the_newest_200_observations():
    metrics = PerceptionMetrics(CAMERAS)
    for _ in range(50):
        metrics.add(fused(), {"fuse": 1000.0})
    for milliseconds in range(1, 201):
        metrics.add(fused(), {"fuse": float(milliseconds)})
    values = metrics.values((0.1, 0.2), 250)
    # Of the numbers 1 to 200: the middle lies between the 100th and the 101st.
    assert float(values["fuse p50 [ms]"]) == pytest.approx(100.5)
    assert float(values["fuse p99 [ms]"]) == pytest.approx(198.01)
