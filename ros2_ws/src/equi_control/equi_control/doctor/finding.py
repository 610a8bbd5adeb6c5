# SPDX-License-Identifier: MIT
"""One line of the doctor: what was checked, what was found, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Verdict(str, Enum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    """Works, but worse than it could; nothing refuses it."""
    FAIL = "FAIL"
    """The driver would refuse, or the arm would not do what it is told."""
    SKIPPED = "skip"
    """Could not be looked at."""


@dataclass(frozen=True)
class Finding:
    """One check, in one line."""

    check: str
    verdict: Verdict
    found: str
    """What is there, with its unit."""
    repair: str = ""
    """What to do; empty if nothing."""

    def __post_init__(self) -> None:
        if self.verdict in (Verdict.WARN, Verdict.FAIL) and not self.repair:
            raise ValueError(f"finding '{self.check}' has no repair; say what to do")

    def __str__(self) -> str:
        repair = f" -> {self.repair}" if self.repair else ""
        return f"{self.verdict.value:<4}  {self.check:<18}  {self.found}{repair}"


def ok(check: str, found: str) -> Finding:
    """Nothing to do."""
    return Finding(check, Verdict.OK, found)


def warn(check: str, found: str, repair: str) -> Finding:
    """Works, but should be looked at."""
    return Finding(check, Verdict.WARN, found, repair)


def fail(check: str, found: str, repair: str) -> Finding:
    """Must be repaired."""
    return Finding(check, Verdict.FAIL, found, repair)


def skipped(check: str, why: str) -> Finding:
    """Could not be looked at."""
    return Finding(check, Verdict.SKIPPED, why)


def exit_code(findings: Iterable[Finding]) -> int:
    """0 if nothing fails, else 1."""
    return int(any(finding.verdict is Verdict.FAIL for finding in findings))
