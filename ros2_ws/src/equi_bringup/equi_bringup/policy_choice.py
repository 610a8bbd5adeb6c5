# SPDX-License-Identifier: MIT
"""Which policy drives: the installed or given one, or the scripted expert in its place."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from equi_core.contract import PolicyContract
from equi_core.locations.find import NotFoundError, find_model


@dataclass(frozen=True)
class PolicyChoice:
    """A folder with a contract, and who acts by it."""

    folder: Path
    driven_by: str
    """policy or expert."""


def choose_policy(model: str, task: str, driven_by: str, simulated: bool) -> PolicyChoice:
    """The policy of a launch; without a trained one the expert drives, if the cell is simulated.

    Raises:
        NotFoundError: the model that was given does not exist, or a robot has none for its task.
    """
    try:
        return PolicyChoice(find_model(model or task), driven_by)
    except NotFoundError as error:
        if model or not simulated:
            raise NotFoundError(
                f"{error}; train a policy with equi-train and equi-export, or give model:=<folder>"
            ) from error
    stand_in = Path(tempfile.mkdtemp(prefix="equi_expert_"))
    PolicyContract(task=task).save(stand_in / "contract.json")
    return PolicyChoice(stand_in, "expert")
