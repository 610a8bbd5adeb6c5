# SPDX-License-Identifier: MIT
"""Which policy drives: the installed or given one, or the scripted expert in its place."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from equi_bringup.arguments import ArgumentError
from equi_core.contract import ContractError, PolicyContract
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
        ArgumentError: the model was trained for another task.
    """
    try:
        folder = find_model(model or task)
        _require_task(folder, task)
        return PolicyChoice(folder, driven_by)
    except NotFoundError as error:
        if model or not simulated:
            raise NotFoundError(
                f"{error}; train a policy with equi-train and equi-export, or give model:=<folder>"
            ) from error
    stand_in = Path(tempfile.mkdtemp(prefix="equi_expert_"))
    PolicyContract(task=task).save(stand_in / "contract.json")
    return PolicyChoice(stand_in, "expert")


def _require_task(folder: Path, task: str) -> None:
    """Refuse a policy of another task: it would act, and on the wrong thing."""
    try:
        trained_for = PolicyContract.load(folder / "contract.json", allow_unsigned=True).task
    except ContractError:
        return  # the nodes refuse it, with the reason
    if trained_for != task:
        raise ArgumentError(
            f"the model in {folder} was trained for {trained_for}, but task:={task}; give "
            f"task:={trained_for}, or another model:="
        )
