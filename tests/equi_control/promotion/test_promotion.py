# SPDX-License-Identifier: MIT
"""Promotion: a real robot moves only after shadow, and fast only after slow."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from equi_control.driver.config import DriverConfig
from equi_control.driver.steps import Outcome
from equi_control.promotion.evidence import Evidence, EvidenceError, Stage, Subject
from equi_control.promotion.promotion import (
    NEEDED_CLEAN_STEPS,
    EvidenceRecorder,
    PromotionRefused,
    admit,
    limited,
    stage_of,
)
from equi_control.rtde.config import LinkConfig
from equi_control.servo.config import ServoConfig

REAL = "192.168.1.10"
SUBJECT = Subject("lab", REAL, "ab" * 32)


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ROS_HOME", str(tmp_path))


def config(host: str = REAL) -> DriverConfig:
    return DriverConfig(ServoConfig(LinkConfig(host)))


def report(outcome: Outcome, *reasons: str) -> Any:
    return SimpleNamespace(outcome=outcome, reasons=reasons)


def record(stage: Stage, steps: int, subject: Subject = SUBJECT) -> EvidenceRecorder:
    recorder = EvidenceRecorder(stage, subject)
    recorder.saw([report(Outcome.COMPLETED)] * steps, 0)
    return recorder


def test_shadow_needs_nothing_and_the_stages_after_it_need_the_one_before() -> None:
    assert admit(config(), Stage.SHADOW, SUBJECT, "") == ""
    with pytest.raises(PromotionRefused, match=r"mode:=reduced needs 100 steps .* there are 0"):
        admit(config(), Stage.REDUCED, SUBJECT, "")
    record(Stage.SHADOW, NEEDED_CLEAN_STEPS[Stage.REDUCED])
    assert admit(config(), Stage.REDUCED, SUBJECT, "") == ""
    with pytest.raises(PromotionRefused, match="run episodes with mode:=reduced"):
        admit(config(), Stage.FULL, SUBJECT, "")
    record(Stage.REDUCED, NEEDED_CLEAN_STEPS[Stage.FULL])
    assert admit(config(), Stage.FULL, SUBJECT, "") == ""


@pytest.mark.parametrize(
    "other",
    [
        Subject("lab", REAL, "cd" * 32),
        Subject("lab", "127.0.0.2", "ab" * 32),
        Subject("attic", REAL, "ab" * 32),
    ],
    ids=["policy", "emulated robot", "cell"],
)
def test_evidence_of_something_else_does_not_count(other: Subject) -> None:
    record(Stage.SHADOW, 500, other)
    with pytest.raises(PromotionRefused, match="there are 0"):
        admit(config(), Stage.REDUCED, SUBJECT, "")


@pytest.mark.parametrize("spoiled_by", ["refusal", "fault"])
def test_a_refusal_or_a_fault_begins_the_count_anew(spoiled_by: str) -> None:
    recorder = record(Stage.SHADOW, NEEDED_CLEAN_STEPS[Stage.REDUCED])
    if spoiled_by == "refusal":
        recorder.saw([report(Outcome.REJECTED, "outside_workspace: 0.08 m")], 0)
    else:
        recorder.saw([], 1)
    with pytest.raises(PromotionRefused, match=r"there are 0 .100 steps"):
        admit(config(), Stage.REDUCED, SUBJECT, "")


def test_what_an_operator_causes_is_no_refusal_of_the_policy() -> None:
    recorder = record(Stage.SHADOW, 10)
    recorder.saw([report(Outcome.REJECTED, "paused: an operator holds the arm")], 0)
    assert recorder.evidence.clean_steps == 10


def test_evidence_goes_on_after_a_restart_and_counts_each_fault_once() -> None:
    record(Stage.SHADOW, 60)
    again = record(Stage.SHADOW, 30)
    again.saw([], 1)
    again.saw([report(Outcome.CLIPPED, "workspace_z: raised")], 1)
    found = Evidence.load(Stage.SHADOW, SUBJECT)
    assert (found.steps, found.clean_steps, found.faults) == (91, 1, 1)


def test_an_edited_file_is_no_evidence() -> None:
    recorder = record(Stage.SHADOW, 5)
    path = recorder.evidence.path
    path.write_text(path.read_text().replace('"clean_steps": 5', '"clean_steps": 500'))
    with pytest.raises(EvidenceError, match="edited by hand"):
        Evidence.load(Stage.SHADOW, SUBJECT)
    with pytest.raises(PromotionRefused, match="edited by hand"):
        admit(config(), Stage.REDUCED, SUBJECT, "")
    assert record(Stage.SHADOW, 1).evidence.steps == 1


def test_who_goes_without_evidence_is_named_for_everybody_to_see() -> None:
    notice = admit(config(), Stage.FULL, SUBJECT, " R. Meyer ")
    assert notice.startswith("i_know: R. Meyer runs mode full without its evidence")
    with pytest.raises(PromotionRefused):
        admit(config(), Stage.FULL, SUBJECT, "  ")


def test_an_emulated_robot_needs_no_evidence() -> None:
    assert admit(config("127.0.0.2"), Stage.FULL, SUBJECT, "") == ""


def test_reduced_only_ever_slows_the_arm() -> None:
    cell = config()
    slow = limited(cell, Stage.REDUCED)
    assert slow.servo.limits.max_speed_m_s == 0.05
    assert slow.servo.near_surface_speed_m_s == 0.03
    crawling = dataclasses.replace(
        cell.servo, limits=dataclasses.replace(cell.servo.limits, max_speed_m_s=0.01)
    )
    kept = limited(dataclasses.replace(cell, servo=crawling), Stage.REDUCED)
    assert kept.servo.limits.max_speed_m_s == 0.01
    assert limited(cell, Stage.FULL) is cell


def test_an_unknown_mode_is_refused_by_name() -> None:
    with pytest.raises(PromotionRefused, match=r"mode is 'turbo'.*shadow, reduced, full"):
        stage_of("turbo")
