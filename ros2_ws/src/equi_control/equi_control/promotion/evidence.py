# SPDX-License-Identifier: MIT
"""Evidence of a stage: how many steps a policy made in a cell, and what went wrong; one file each.

`~/.ros/equi/promotion/<cell>/<robot>/<contract>/<stage>.json`: what was seen with an emulated robot
says nothing of a real one. A digest shows hand edits; a file that was edited is no evidence. A
refusal or a fault sets the count of clean steps back to zero.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from typing import Any

from equi_core.files.plain_data import PlainDataError, read_json
from equi_core.locations.folders import own_folder
from equi_core.strict_fields import FieldError, plain_fields, read_fields

FORMAT_VERSION = 1


class Stage(str, Enum):
    """How far a policy may go in a cell."""

    SHADOW = "shadow"
    """Nothing moves."""
    REDUCED = "reduced"
    """At a crawl."""
    FULL = "full"
    """Up to the limits of the cell file."""


class EvidenceError(ValueError):
    """A file that is no evidence; says why, and what to do."""


@dataclass(frozen=True)
class Subject:
    """Of what something is evidence; anything else starts anew."""

    cell: str
    robot_ip: str
    contract_sha256: str
    """Of the policy."""

    @property
    def folder(self) -> Path:
        """Where its evidence is kept."""
        host = self.robot_ip.replace("/", "_")
        return own_folder("promotion") / self.cell / host / self.contract_sha256[:16]


@dataclass(frozen=True)
class Evidence:
    """What happened in one stage."""

    stage: str
    subject: Subject
    steps: int = 0
    """Steps that were carried out, or in shadow would have been."""
    clean_steps: int = 0
    """Of these, since the last refusal or fault."""
    refused: int = 0
    faults: int = 0
    updated_utc: str = ""
    format_version: int = FORMAT_VERSION

    def after_step(self) -> Evidence:
        """One more step without a refusal."""
        return dataclasses.replace(
            self, steps=self.steps + 1, clean_steps=self.clean_steps + 1, updated_utc=_now()
        )

    def after_refusal(self) -> Evidence:
        """One more step that was refused."""
        return dataclasses.replace(
            self, refused=self.refused + 1, clean_steps=0, updated_utc=_now()
        )

    def after_fault(self) -> Evidence:
        """One more latched fault."""
        return dataclasses.replace(self, faults=self.faults + 1, clean_steps=0, updated_utc=_now())

    @property
    def path(self) -> Path:
        """Where it is kept."""
        return self.subject.folder / f"{self.stage}.json"

    def save(self) -> None:
        """Write the file with its digest; a reader sees the old file or the whole new one."""
        plain = plain_fields(self)
        plain["content_sha256"] = _digest(plain)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_name(self.path.name + ".partial")
        partial.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
        os.replace(partial, self.path)

    @classmethod
    def load(cls, stage: Stage, subject: Subject) -> Evidence:
        """What is kept of a stage; empty evidence if there is no file.

        Raises:
            EvidenceError: the file is damaged, was edited, or is of something else.
        """
        empty = cls(stage.value, subject)
        if not empty.path.is_file():
            return empty
        again = f"remove it and run mode:={stage.value} again"
        try:
            data = read_json(empty.path)
            stated = data.pop("content_sha256", None) if isinstance(data, dict) else None
            found = read_fields(cls, data)
        except (PlainDataError, FieldError) as error:
            raise EvidenceError(f"{empty.path}: {error}; {again}") from error
        if stated != _digest(plain_fields(found)):
            raise EvidenceError(f"{empty.path} was edited by hand or is damaged; {again}")
        if (found.stage, found.subject) != (stage.value, subject):
            raise EvidenceError(f"{empty.path} is of another stage, robot or policy; {again}")
        return found


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _digest(plain: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
