# SPDX-License-Identifier: MIT
"""What can be wrong with a model folder or an input, as types."""

from __future__ import annotations


class PolicyError(ValueError):
    """Base of everything this package refuses."""


class LayoutError(PolicyError):
    """The contract's network layout cannot be built; names the entry."""

    def __init__(self, entry: str, problem: str) -> None:
        super().__init__(f"contract field 'network.{entry}': {problem}")
        self.field_name = f"network.{entry}"


class WeightsError(PolicyError):
    """The weights file is missing, damaged, foreign, or does not fit the contract."""

    def __init__(self, field_name: str, problem: str) -> None:
        super().__init__(f"{field_name}: {problem}")
        self.field_name = field_name


class ChangedProbeError(PolicyError):
    """The probe beside a model was changed after it was fitted, or is another model's."""


class ObservationError(PolicyError):
    """An observation or state of the wrong shape, or with a number that is not finite."""
