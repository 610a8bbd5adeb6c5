"""Specification of what perception tells people: no chatter, and figures under stable names."""

from __future__ import annotations

import math

import numpy as np
import pytest

from equi_core.observation.builder import FusedObservation
from equi_perception.freshness import Cause, Finding
from equi_perception.perception_report import PerceptionFigures, StatusNews, worth_telling

CAMERAS = ("cam_left", "cam_right")
MOVING = Finding(Cause.ROBOT_MOVING, "the arm is moving")
EARLY = Finding(Cause.CLOUD_BEFORE_REST, "cam_left was taken before the arm came to rest")


def stale(camera: str, age_s: float) -> Finding:
    return Finding(Cause.CLOUD_STALE, f"{camera} is {age_s:.2f} s old, at most 0.40 s is allowed")


def fused(unseen=0.25) -> FusedObservation:
    image = np.zeros((2, 4, 4), np.float32)
    return FusedObservation(image, image[0], unseen, (10, 20), (1, 2), {"fuse": 3.0})


def test_a_step_of_the_arm_is_nothing_to_tell_people_about():
    assert worth_telling([MOVING, EARLY]) == []
    assert worth_telling([MOVING, stale("cam_left", 1.0)]) == [stale("cam_left", 1.0)]


def test_the_first_state_is_news_even_if_all_is_well():
    news = StatusNews()
    assert news.is_news([])
    assert not news.is_news([])


def test_a_growing_age_is_no_news_but_another_camera_is():
    news = StatusNews()
    assert news.is_news([stale("cam_left", 1.0)])
    assert not news.is_news([stale("cam_left", 2.0)])
    assert news.is_news([stale("cam_left", 3.0), stale("cam_right", 1.0)])
    assert news.is_news([])


def test_the_order_of_findings_is_no_news():
    news = StatusNews()
    first, second = stale("cam_left", 1.0), stale("cam_right", 1.0)
    assert news.is_news([first, second])
    assert not news.is_news([second, first])


def test_before_the_first_observation_there_are_ages_only():
    figures = PerceptionFigures(CAMERAS)
    assert figures.values((0.1, math.nan), 0) == {
        "cam_left age [s]": "0.100",
        "cam_right age [s]": "nan",
        "observations": "0",
    }


def test_the_newest_observation_is_described_per_camera():
    figures = PerceptionFigures(CAMERAS)
    figures.count_rejected("cam_right")
    figures.add(fused(), {"fuse": 3.0})
    values = figures.values((0.1, 0.2), 1)
    assert values["unseen fraction"] == "0.2500"
    assert (values["cam_left points in view"], values["cam_right points in view"]) == ("10", "20")
    assert (values["cam_left points on robot"], values["cam_right points on robot"]) == ("1", "2")
    assert values["cam_left clouds out of order"] == "0"
    assert values["cam_right clouds out of order"] == "1"


def test_times_are_quantiles_over_the_newest_200_observations():
    figures = PerceptionFigures(CAMERAS)
    for _ in range(50):
        figures.add(fused(), {"fuse": 1000.0})
    for milliseconds in range(1, 201):
        figures.add(fused(), {"fuse": float(milliseconds)})
    values = figures.values((0.1, 0.2), 250)
    # Of the numbers 1 to 200: the middle lies between the 100th and the 101st.
    assert float(values["fuse p50 [ms]"]) == pytest.approx(100.5)
    assert float(values["fuse p99 [ms]"]) == pytest.approx(198.01)
