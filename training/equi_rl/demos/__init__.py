"""Demonstrations: played by experts, kept in one compact file, shown as pictures and video."""

from __future__ import annotations

from equi_rl.demos.recording import DemoError, DemoSet, play_demo

__all__ = ["DemoError", "DemoSet", "play_demo"]
