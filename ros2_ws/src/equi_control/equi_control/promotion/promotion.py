# SPDX-License-Identifier: MIT
"""Which stage a policy may run in, and what it leaves behind as evidence for the next."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable

from equi_control.driver.config import DriverConfig
from equi_control.driver.steps import Outcome, StepReport
from equi_control.promotion.evidence import Evidence, EvidenceError, Stage, Subject
from equi_control.real_address import is_loopback

_LOG = logging.getLogger(__name__)

NEEDED_CLEAN_STEPS = {Stage.REDUCED: 100, Stage.FULL: 200}
"""Steps in a row without refusal or fault, in the stage before."""
_BEFORE = {Stage.REDUCED: Stage.SHADOW, Stage.FULL: Stage.REDUCED}
REDUCED_SPEED_M_S = 0.05
_REDUCED_NEAR_SURFACE_M_S = 0.03
# Refusals that an operator causes say nothing of the policy.
_BY_OPERATOR = ("paused:", "not_active:", "busy:")


class PromotionRefused(RuntimeError):
    """A stage before its time; says what is missing and what to run."""


def stage_of(mode: str) -> Stage:
    """The stage that the parameter `mode` names.

    Raises:
        PromotionRefused: there is none of that name.
    """
    try:
        return Stage(mode)
    except ValueError as error:
        known = ", ".join(stage.value for stage in Stage)
        raise PromotionRefused(f"mode is '{mode}'; it must be one of: {known}") from error


def missing_evidence(stage: Stage, subject: Subject) -> str:
    """What a stage still needs, in one sentence; empty if nothing."""
    before = _BEFORE.get(stage)
    if before is None:
        return ""
    try:
        found = Evidence.load(before, subject)
    except EvidenceError as error:
        return str(error)
    needed = NEEDED_CLEAN_STEPS[stage]
    if found.clean_steps >= needed:
        return ""
    return (
        f"mode:={stage.value} needs {needed} steps in a row of mode:={before.value} without "
        f"refusal or fault, there are {found.clean_steps} ({found.steps} steps, {found.refused} "
        f"refused, {found.faults} faults in {found.path}); run episodes with mode:={before.value}"
    )


def admit(config: DriverConfig, stage: Stage, subject: Subject, i_know: str) -> str:
    """Let a stage begin on a real robot only with its evidence. An emulated one needs none.

    Args:
        config: tells the robot's address.
        stage: what is asked for.
        subject: cell, robot and policy.
        i_know: name of the person who goes without the evidence; empty: nobody.

    Returns:
        What everybody must see while this runs, if somebody goes without the evidence; else empty.

    Raises:
        PromotionRefused: evidence is missing.
    """
    if is_loopback(config.servo.link.host):
        return ""
    missing = missing_evidence(stage, subject)
    if not missing:
        return ""
    if not i_know.strip():
        raise PromotionRefused(
            f"{missing}, or take the responsibility with i_know:='your name', which is logged"
        )
    notice = f"i_know: {i_know.strip()} runs mode {stage.value} without its evidence ({missing})"
    _LOG.error(notice)  # in red on every terminal
    return notice


def limited(config: DriverConfig, stage: Stage) -> DriverConfig:
    """The configuration of a stage: the reduced one only ever slows the arm down."""
    if stage is not Stage.REDUCED:
        return config
    servo = config.servo
    limits = dataclasses.replace(
        servo.limits, max_speed_m_s=min(servo.limits.max_speed_m_s, REDUCED_SPEED_M_S)
    )
    near_m_s = min(servo.near_surface_speed_m_s, _REDUCED_NEAR_SURFACE_M_S)
    slow = dataclasses.replace(servo, limits=limits, near_surface_speed_m_s=near_m_s)
    return dataclasses.replace(config, servo=slow)


class EvidenceRecorder:
    """Counts what happens in a stage; written after every step, so that a crash loses nothing."""

    def __init__(self, stage: Stage, subject: Subject, fault_count: int = 0) -> None:
        try:
            self._evidence = Evidence.load(stage, subject)
        except EvidenceError as error:
            _LOG.warning("%s; counting anew", error)
            self._evidence = Evidence(stage.value, subject)
        self._fault_count = fault_count

    @property
    def evidence(self) -> Evidence:
        """What is known so far."""
        return self._evidence

    def saw(self, reports: Iterable[StepReport], fault_count: int) -> None:
        """Steps that ended, and how many faults there were since the driver started."""
        before = self._evidence
        for report in reports:
            if report.outcome is not Outcome.REJECTED:
                self._evidence = self._evidence.after_step()
            elif not report.reasons or not report.reasons[0].startswith(_BY_OPERATOR):
                self._evidence = self._evidence.after_refusal()
        if fault_count > self._fault_count:
            self._evidence = self._evidence.after_fault()
        self._fault_count = fault_count
        if self._evidence is not before:
            try:
                self._evidence.save()
            except OSError as error:
                _LOG.error("evidence was not written to %s: %s", self._evidence.path, error)
