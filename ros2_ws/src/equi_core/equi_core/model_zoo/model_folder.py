# SPDX-License-Identifier: MIT
"""One model folder: its contract, its measured success, and what is wrong with its files.

Weights are hashed and their header is read; nothing is unpickled and no network is built.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equi_core.belief.probe import ProbeError
from equi_core.belief.probe_file import StoredProbe
from equi_core.contract import ContractError, PolicyContract
from equi_core.files.plain_data import PlainDataError, read_json
from equi_core.locations import folders
from equi_core.statistics import SuccessRate

CONTRACT_FILE = "contract.json"
WEIGHTS_FILE = "policy.safetensors"
EVALUATION_FILE = "evaluation.json"
CARD_FILE = "MODEL_CARD.md"
_LARGEST_HEADER_BYTES = 10_000_000


@dataclass(frozen=True)
class Model:
    """An exported policy on disk."""

    folder: Path
    contract: PolicyContract
    signed: bool
    """Whether the contract carries a digest of itself; without one it drives simulations only."""

    @classmethod
    def load(cls, folder: Path) -> Model:
        """Read the contract of a model folder.

        Raises:
            ContractError: it is missing, malformed, or was changed after export.
        """
        path = folder / CONTRACT_FILE
        contract = PolicyContract.load(path, allow_unsigned=True)
        return cls(folder, contract, "contract_sha256" in json.loads(path.read_text("utf-8")))

    @property
    def name(self) -> str:
        """Name of the folder, by which `model:=` finds it."""
        return self.folder.name

    @property
    def weights_bytes(self) -> int:
        """Size of the weights file; 0 if there is none."""
        path = self.folder / WEIGHTS_FILE
        return path.stat().st_size if path.is_file() else 0

    def success(self) -> SuccessRate | None:
        """Success on unseen scenes, from evaluation.json; None if it was not measured."""
        evaluation = self._evaluation()
        if evaluation is None:
            return None
        return SuccessRate(
            int(evaluation["success"]["successes"]), int(evaluation["success"]["episodes"])
        )

    def problems(self) -> list[str]:
        """What is wrong with the files, one sentence each; empty if the model is intact."""
        found = []
        if not self.signed:
            found.append(
                f"{CONTRACT_FILE} carries no digest of itself (older export): the model drives "
                "simulated cells only; export it again with equi-export"
            )
        found += self._problems_of_weights()
        try:
            StoredProbe.load(self.folder, self.contract)
        except ProbeError as error:
            found.append(str(error))
        try:
            evaluation = self._evaluation()
        except (PlainDataError, KeyError, TypeError, ValueError) as error:
            found.append(f"{EVALUATION_FILE} cannot be read ({error}); evaluate the model again")
        else:
            if evaluation and evaluation.get("weights") != self.contract.weights_sha256:
                found.append(
                    f"{EVALUATION_FILE} was measured with other weights "
                    f"({str(evaluation.get('weights'))[:12]}...); evaluate the model again"
                )
        card = self.folder / CARD_FILE
        if not card.is_file():
            found.append(f"{CARD_FILE} is missing; copy the whole folder, or export it again")
        elif self.contract.weights_sha256 not in card.read_text(encoding="utf-8"):
            found.append(f"{CARD_FILE} describes other weights; export the model again")
        return found

    def _problems_of_weights(self) -> list[str]:
        path = self.folder / WEIGHTS_FILE
        if not path.is_file():
            return [f"{WEIGHTS_FILE} is missing; copy the whole folder again"]
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest != self.contract.weights_sha256:
            return [
                f"{WEIGHTS_FILE} has digest {digest[:12]}..., but {CONTRACT_FILE} names "
                f"{self.contract.weights_sha256[:12] or 'none'}...; it was changed or damaged "
                "after export: copy the whole folder again"
            ]
        problem = _problem_of_safetensors(content)
        return [f"{WEIGHTS_FILE} {problem}; export the model again"] if problem else []

    def _evaluation(self) -> dict[str, Any] | None:
        path = self.folder / EVALUATION_FILE
        if not path.is_file():
            return None
        evaluation: dict[str, Any] = read_json(path)
        SuccessRate(int(evaluation["success"]["successes"]), int(evaluation["success"]["episodes"]))
        return evaluation


def found_models() -> list[Path]:
    """Folders of all models, in the order in which `model:=` looks for them; the first wins."""
    found: dict[str, Path] = {}
    for place in folders.model_folders():
        for contract in sorted(place.glob(f"*/{CONTRACT_FILE}")):
            found.setdefault(contract.parent.name, contract.parent)
    return list(found.values())


def load_all(paths: list[Path]) -> tuple[list[Model], dict[Path, str]]:
    """The models that can be read, and why the others cannot."""
    models, unreadable = [], {}
    for path in paths:
        try:
            models.append(Model.load(path))
        except ContractError as error:
            unreadable[path] = str(error)
    return models, unreadable


def _problem_of_safetensors(content: bytes) -> str:
    """What is wrong with the structure of a safetensors file; empty if nothing is."""
    if len(content) < 8:
        return "is cut short"
    (length,) = struct.unpack("<Q", content[:8])
    if length > min(_LARGEST_HEADER_BYTES, len(content) - 8):
        return "is cut short or no safetensors file"
    try:
        header = json.loads(content[8 : 8 + length])
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name[:2] != "__"]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return "has a header that cannot be read"
    return "" if max(ends, default=0) == len(content) - 8 - length else "is cut short"
