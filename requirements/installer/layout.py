# SPDX-License-Identifier: MIT
"""Where the installer puts things, what it may be asked for, and how it fails."""

from __future__ import annotations

import enum
import os
from dataclasses import dataclass
from pathlib import Path


class SetupError(Exception):
    """A step cannot go on. `way_out` says what the user can do about it."""

    def __init__(self, message: str, way_out: str) -> None:
        super().__init__(message)
        self.way_out = way_out


class Profile(enum.Enum):
    """How much is installed."""

    FULL = "full"  # training, tests and robot
    ROBOT = "robot"  # the robot PC: neither escnn nor pybullet


@dataclass(frozen=True)
class Layout:
    """Every path that setup reads or writes, from the root of the checkout."""

    root: Path

    @property
    def requirements(self) -> Path:
        """Pins, package lists and this installer."""
        return self.root / "requirements"

    @property
    def venv(self) -> Path:
        """The virtual environment; with the ROS wheels it is the ament prefix as well."""
        return self.root / ".venv"

    @property
    def stamps(self) -> Path:
        """One file per finished step. Inside the venv, so that both vanish together."""
        return self.venv / ".setup"

    @property
    def logs(self) -> Path:
        """Full output of every step."""
        return self.root / ".cache" / "setup"

    @property
    def workspace(self) -> Path:
        """The colcon workspace."""
        return self.root / "ros2_ws"

    @property
    def python(self) -> Path:
        """The interpreter of the virtual environment."""
        return self.venv / "bin" / "python"


def child_environment(layout: Layout, ros_prefix: Path | None, run_token: str) -> dict[str, str]:
    """Environment for the commands of setup: the venv first, nothing of another workspace.

    Args:
        layout: Paths of this checkout.
        ros_prefix: Prefix of a sourced ROS 2, whose variables are kept; None with the wheels.
        run_token: Marks the processes of this run, so that the next one can end leftovers.
    """
    unwanted = {"PYTHONHOME", "_ROS_WHEELS_BOOTSTRAP_COMPLETE", "MAKEFLAGS", "MFLAGS"}
    added = {}
    if ros_prefix is None:
        unwanted |= {"PYTHONPATH", "COLCON_PREFIX_PATH"}
        added = {"AMENT_PREFIX_PATH": str(layout.venv), "CMAKE_PREFIX_PATH": str(layout.venv)}
        libraries = os.environ.get("LD_LIBRARY_PATH", "").split(":")
        # What `source env.sh` has added belongs to the environment that may be replaced now.
        kept = [part for part in libraries if part and "/.venv/" not in f"{part}/"]
        added["LD_LIBRARY_PATH"] = ":".join(kept)
    return {
        **{name: value for name, value in os.environ.items() if name not in unwanted},
        **added,
        "VIRTUAL_ENV": str(layout.venv),
        "PATH": f"{layout.venv / 'bin'}:{os.environ.get('PATH', os.defpath)}",
        "PYTHONNOUSERSITE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "EQUI_SETUP_RUN": run_token,
    }
