# SPDX-License-Identifier: MIT
"""Reading a SLAC run folder: its settings, its networks, the policy that it has trained."""

from __future__ import annotations

from pathlib import Path

import torch

from equi_rl.nets.checkpoint import CheckpointError
from equi_rl.nets.weights_digest import weights_digest
from equi_rl.slac.config import AGENT, SlacRun
from equi_rl.slac.learner import SlacLearner
from equi_rl.training.run_folder import RunFolder, RunFolderError


def is_slac_run(folder: Path) -> bool:
    """Whether a folder holds a run of SLAC."""
    try:
        config = RunFolder(folder).read_config()["config"]
    except RunFolderError:
        return False
    return bool(config.get("agent") == AGENT)


def load_learner(folder: Path) -> SlacLearner:
    """The networks of the newest checkpoint of a run; raises CheckpointError without one."""
    stored = RunFolder(folder)
    run = SlacRun.from_mapping(stored.read_config()["config"])
    checkpoint = stored.load_checkpoint()
    if checkpoint is None:
        raise CheckpointError(f"{folder} holds no checkpoint yet; wait for the first one")
    learner = SlacLearner(run)
    learner.restore_networks({name: torch.from_numpy(a) for name, a in checkpoint[0].items()})
    learner.updates = int(checkpoint[1]["learner"]["updates"])
    return learner


def policy_digest(learner: SlacLearner) -> str:
    """Digest of all weights that act."""
    acting = {
        f"{prefix}.{name}": parameter
        for prefix, network in (("encoder", learner.model.encoder), ("actor", learner.sac.actor))
        for name, parameter in network.named_parameters()
    }
    return weights_digest(acting)
