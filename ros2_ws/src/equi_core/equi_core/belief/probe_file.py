# SPDX-License-Identifier: MIT
"""A probe beside its model: `probe.json`, with the digests of the model it was fitted to.

A file of its own: the model's contract and weights do not change by it. Its own digest shows
changes; a probe of another model is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from equi_core.belief.probe import BeliefProbe, PlaneBasis, ProbeError
from equi_core.contract import PolicyContract
from equi_core.files.plain_data import PlainDataError, read_json
from equi_core.strict_fields import FieldError, plain_fields, read_fields

PROBE_FILE = "probe.json"
CARD_FILE = "PROBE_CARD.md"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class LagResult:
    """How well the belief tells the two objects apart, at one moment of the episodes."""

    moment: str
    """`before contact`, or `contact + n`: n steps after the first contact."""
    auc: float
    samples: int
    episodes: int


@dataclass(frozen=True)
class StoredProbe:
    """What `probe.json` holds."""

    task: str
    contract_sha256: str
    """Of the model."""
    weights_sha256: str
    """Of the model."""
    group: str
    parts: tuple[str, ...]
    channels: int
    widths_m: tuple[float, ...]
    weights: tuple[tuple[float, ...], ...]
    fitted_seeds: tuple[int, int]
    """First and last scene that it was fitted to."""
    tested_seeds: tuple[int, int]
    """First and last scene that it was tested on."""
    results: tuple[LagResult, ...] = field(default_factory=tuple)
    format_version: int = FORMAT_VERSION

    @property
    def probe(self) -> BeliefProbe:
        """The probe itself.

        Raises:
            ProbeError: the numbers do not fit together.
        """
        try:
            weights = np.array(self.weights, dtype=np.float64)
        except ValueError as error:
            raise ProbeError("weights are not a table of numbers; run equi-probe again") from error
        return BeliefProbe(
            self.group, self.parts, self.channels, PlaneBasis(self.widths_m), weights
        )

    def save(self, folder: Path) -> Path:
        """Write it into a model folder; a reader sees the old file or the whole new one."""
        plain = plain_fields(self)
        plain["content_sha256"] = _digest(plain)
        path = folder / PROBE_FILE
        partial = path.with_name(path.name + ".partial")
        partial.write_text(json.dumps(plain, separators=(",", ":")) + "\n", encoding="utf-8")
        os.replace(partial, path)
        return path

    @classmethod
    def load(cls, folder: Path, contract: PolicyContract) -> StoredProbe | None:
        """The probe of a model; None if it has none.

        Raises:
            ProbeError: the file is damaged, was changed, or is of another model.
        """
        path = folder / PROBE_FILE
        if not path.is_file():
            return None
        again = "run equi-probe on this model, or remove the file"
        try:
            data = read_json(path)
            stated = data.pop("content_sha256", None) if isinstance(data, dict) else None
            stored = read_fields(cls, data)
        except (PlainDataError, FieldError) as error:
            raise ProbeError(f"{path}: {error}; {again}") from error
        if stored.format_version != FORMAT_VERSION:
            raise ProbeError(f"{path} has format {stored.format_version}, not 1; {again}")
        if stated != _digest(plain_fields(stored)):
            raise ProbeError(f"{path} was changed after it was fitted; {again}")
        if (stored.contract_sha256, stored.weights_sha256) != (
            contract.sha256,
            contract.weights_sha256,
        ):
            raise ProbeError(
                f"{path} is a probe of another model ({stored.task}, contract "
                f"{stored.contract_sha256[:12]}..., this one is {contract.sha256[:12]}...); {again}"
            )
        stored.probe  # noqa: B018 - refuses numbers that do not fit together
        return stored


def _digest(plain: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
