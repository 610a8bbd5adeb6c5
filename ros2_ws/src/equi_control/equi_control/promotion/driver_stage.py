# SPDX-License-Identifier: MIT
"""The stage of one driver: read from its parameters, admitted, and counted as evidence.

Knows no ROS: the node hands in how a parameter is declared and read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from equi_control.driver.config import DriverConfig
from equi_control.driver.driver import Driver
from equi_control.driver.steps import StepReport
from equi_control.parameters import Declare
from equi_control.promotion.evidence import Stage, Subject
from equi_control.promotion.promotion import EvidenceRecorder, admit, limited, stage_of
from equi_control.shadow.shadow_driver import ShadowDriver
from equi_core.contract import PolicyContract
from equi_core.setting_fields import SettingInfo

AnyDriver = Driver | ShadowDriver

_INFOS = {
    "mode": SettingInfo(
        "shadow: listen only, nothing can move; reduced: at a crawl; full. On a real robot each "
        "needs the evidence of the one before"
    ),
    "i_know": SettingInfo(
        "name of the person who runs a mode without its evidence; logged and shown to everybody"
    ),
    "cell": SettingInfo("name of the cell, to which the evidence belongs"),
}


class DriverStage:
    """What a driver may do, and what it leaves as evidence."""

    def __init__(self, declare: Declare) -> None:
        """Declare and read the parameters.

        Raises:
            PromotionRefused: no stage has the name in `mode`.
        """
        self._mode = str(declare("mode", Stage.FULL.value, _INFOS["mode"]))
        self._i_know = str(declare("i_know", "", _INFOS["i_know"]))
        self._cell = str(declare("cell", "", _INFOS["cell"])) or "unnamed"
        self._contract = str(declare("contract", "", SettingInfo("contract.json of the policy")))
        self._recorder: EvidenceRecorder | None = None
        self.notice = ""
        """What everybody must see while this runs; empty if nothing."""

    def make_driver(self, config: DriverConfig) -> AnyDriver:
        """The driver of this stage.

        Raises:
            PromotionRefused: the mode is unknown, or its evidence is missing.
        """
        stage = stage_of(self._mode)
        path = Path(self._contract).expanduser()
        digest = PolicyContract.load(path, allow_unsigned=True).sha256 if self._contract else "none"
        subject = Subject(self._cell, config.servo.link.host, digest)
        self.notice = admit(config, stage, subject, self._i_know)
        self._recorder = EvidenceRecorder(stage, subject)
        config = limited(config, stage)
        return ShadowDriver(config) if stage is Stage.SHADOW else Driver(config)

    def saw(self, reports: Iterable[StepReport], fault_count: int) -> None:
        """Count steps that ended, and faults."""
        if self._recorder is not None:
            self._recorder.saw(reports, fault_count)
