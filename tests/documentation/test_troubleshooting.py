# SPDX-License-Identifier: MIT
"""Every message that the troubleshooting page quotes is one that a program prints."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "ros2_ws/docs/troubleshooting.md"
# Printed by others: the shell, Python, ros2, ur_rtde.
FOREIGN = {"ModuleNotFoundError", "ros2: command not found", "already in use", "ros2 topic list"}
FOREIGN |= {"ros2 topic echo", "Transitioning failed"}


def quoted_messages() -> list[str]:
    rows = re.findall(r"^\| (?!you see|---)(.*?) \|", PAGE.read_text(), re.MULTILINE)
    return sorted({text for row in rows for text in re.findall(r"`([^`]+)`", row)} - FOREIGN)


@lru_cache
def printed_texts() -> str:
    """Every string of the sources, one per line; values of f-strings are `...`."""
    found = [(ROOT / "requirements/installer/setup.sh").read_text()]
    for folder in ("ros2_ws/src", "training", "calibration", "models", "requirements"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
                elif isinstance(node, ast.JoinedStr):
                    parts = (
                        str(p.value) if isinstance(p, ast.Constant) else "..." for p in node.values
                    )
                    found.append("".join(parts))
    messages = (ROOT / "ros2_ws/src/equi_interfaces").rglob("*.msg")
    return "\n".join([*found, *(path.read_text() for path in messages)])


@pytest.mark.parametrize("message", quoted_messages())
def test_a_quoted_message_is_printed_by_a_program(message):
    parts = [re.escape(part.strip()) for part in message.split("...") if part.strip()]
    assert re.search(r"[^\n]*".join(parts), printed_texts()), message


def test_the_page_quotes_enough_to_be_searched():
    assert len(quoted_messages()) > 20
