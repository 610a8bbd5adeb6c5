# SPDX-License-Identifier: MIT
"""The page of the Python API: modules whose docstrings are shown, in the order of their use."""

from __future__ import annotations

# (heading, modules): what somebody imports from a script of his own.
SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("equi_rl", ("equi_rl.api",)),
    (
        "Recurrent SAC",
        ("equi_rl.recurrent_sac.agent", "equi_rl.recurrent_sac.config", "equi_rl.nets.memories"),
    ),
    ("equi_policy: run a policy on the robot", ("equi_policy.deployed_policy",)),
    ("Contract, observation, action", ("equi_core.contract", "equi_core.action")),
    (
        "Environments and experts",
        ("equi_rl.envs", "equi_rl.envs.registry", "equi_rl.experts.expert"),
    ),
    ("Networks", ("equi_rl.nets.config", "equi_rl.nets.networks")),
    (
        "Training",
        ("equi_rl.training.config", "equi_rl.training.presets", "equi_rl.training.trainer"),
    ),
    ("Calibration files", ("equi_core.calibration",)),
    ("UR emulator", ("ur_emulator.client",)),
)


def api_page() -> str:
    """Markdown with one directive of mkdocstrings per module."""
    lines = [
        "# Python API",
        "",
        "Written from the docstrings. Modules that are not listed here are internal: they change "
        "without notice.",
        "",
    ]
    for heading, modules in SECTIONS:
        lines += [f"## {heading}", ""]
        for module in modules:
            lines += [f"::: {module}", "    options:", "      heading_level: 3", ""]
    return "\n".join(lines)
