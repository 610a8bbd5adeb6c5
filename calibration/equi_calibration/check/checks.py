# SPDX-License-Identifier: MIT
"""Lines of a verdict: a quantity, its limit, and what to do when it is exceeded."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One line of the verdict."""

    subject: str
    """A camera, or what else is checked."""
    name: str
    value: float
    limit: float
    unit: str
    passed: bool
    advice: str = ""
    """What is wrong and what to do; empty if passed."""

    @property
    def is_yes_no(self) -> bool:
        """Whether this is a condition rather than a measured value."""
        return self.unit == "" and self.limit == 0.0

    @property
    def value_text(self) -> str:
        """The value as a table shows it."""
        if self.is_yes_no:
            return "yes" if self.passed else "no"
        return f"{self.value:.3g}"

    @property
    def limit_text(self) -> str:
        """The limit as a table shows it."""
        return "" if self.is_yes_no else f"{self.limit:.3g}"


@dataclass(frozen=True)
class Verdict:
    """All lines."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every line passed."""
        return all(check.passed for check in self.checks)

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence per failed line, without repetition."""
        sentences = [
            f"{check.subject}: {check.name} is {check.value:.3g} {check.unit}".rstrip()
            + f" (limit {check.limit:.3g}). {check.advice}"
            for check in self.checks
            if not check.passed
        ]
        return tuple(dict.fromkeys(sentences))


def below(subject: str, name: str, value: float, limit: float, unit: str, advice: str) -> Check:
    """A value that must not exceed its limit; what could not be measured does not pass."""
    passed = math.isfinite(value) and value <= limit
    return Check(subject, name, float(value), limit, unit, passed, "" if passed else advice)


def yes_no(subject: str, name: str, passed: bool, advice: str) -> Check:
    """Something that is so or is not."""
    return Check(subject, name, float(not passed), 0.0, "", passed, "" if passed else advice)
