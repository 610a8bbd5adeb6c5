# SPDX-License-Identifier: MIT
"""Names that stored files carry from earlier versions, and what they are called now.

Run folders, tables of curves and their texts are read through this module, so that the rest of the
code knows the present names only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SETTINGS: Mapping[str, str] = {
    # robot runs
    "warm_up_updates": "imitation.updates",
    "hand_over_within": "expert_takeover_within",
    "hand_over_grows_to": "expert_takeover_grows_to",
    "capacity": "replay_capacity",
    "imitation.warm_up_updates": "imitation.learning_rate_warmup_updates",
    "imitation.policy_rate": "imitation.policy_ema",
    "sac.trace": "sac.td_lambda",
    "sac.target_rate": "sac.tau",
    "sac.critic_first_updates": "sac.critic_warmup_updates",
    "sac.updated_critic_judges": "sac.actor_uses_updated_critic",
    "sac.policy_rate": "sac.policy_ema",
    # CarFlag runs
    "a2c.return_mix": "a2c.gae_lambda",
}
"""Dotted name of a setting in an old ``config.json``: its name now."""

REMOVED: Mapping[str, Any] = {"imitate_successes": False}
"""Dotted name of a setting that is gone: the value of a run that is the same without it."""

COLUMNS: Mapping[str, str] = {"speciality": "overrides"}
"""Column of an old table of curves: its name now."""

_REPLAY_FOLDERS = ("replay", "memory")


def current_settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a run under their present names; nested, and with those of now as they are."""
    current: dict[str, Any] = {}
    for name, value in flatten(stored).items():
        if name in REMOVED and value == REMOVED[name]:
            continue
        *outer, last = SETTINGS.get(name, name).split(".")
        inner = current
        for part in outer:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return current


def current_row(row: Mapping[str, str]) -> dict[str, str]:
    """A row of a table of curves under its present column names, overrides in present words."""
    current = {COLUMNS.get(name, name): value for name, value in row.items()}
    if "overrides" in current:
        words = (_current_override(text) for text in current["overrides"].split(", "))
        current["overrides"] = ", ".join(words)
    return current


def setting_in_words(name: str) -> str:
    """How tables and figures write a setting: ``sac.policy_ema`` is `policy ema`."""
    return name.removeprefix("sac.").replace(".", " ").replace("_", " ")


def replay_folder(run_folder: Path) -> Path:
    """Where the episodes of a run lie; `replay` if there are none yet."""
    candidates = [run_folder / name for name in _REPLAY_FOLDERS]
    return next((folder for folder in candidates if folder.is_dir()), candidates[0])


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings as ``{"a.b": value}``."""
    if not isinstance(value, Mapping):
        return {prefix: value}
    flat: dict[str, Any] = {}
    for key, item in value.items():
        flat.update(flatten(item, f"{prefix}.{key}" if prefix else str(key)))
    return flat


def _current_override(text: str) -> str:
    """One override, such as `policy rate 1`, in present words."""
    for old, new in SETTINGS.items():
        words = setting_in_words(old)
        if text.startswith(words + " "):
            return setting_in_words(new) + text[len(words) :]
    return text
