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

    def package_roots(self, profile: Profile) -> list[Path]:
        """Folders in which colcon looks for packages."""
        roots = [self.workspace / "src"]
        if profile is Profile.FULL:
            roots.append(self.root / "tests" / "fixtures")
        return [root for root in roots if root.is_dir()]


def child_environment(layout: Layout, ros_prefix: Path | None, run_token: str) -> dict[str, str]:
    """Environment for the commands of setup: the venv first, nothing of another workspace.

    Args:
        layout: Paths of this checkout.
        ros_prefix: Prefix of a sourced ROS 2, whose variables are kept; None with the wheels.
        run_token: Marks the processes of this run, so that the next one can end leftovers.
    """
    environment = dict(os.environ)
    unwanted = [
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "_ROS_WHEELS_BOOTSTRAP_COMPLETE",
        "MAKEFLAGS",
        "MFLAGS",
    ]
    if ros_prefix is None:
        unwanted += ["PYTHONPATH", "AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "COLCON_PREFIX_PATH"]
    for name in unwanted:
        environment.pop(name, None)
    kept = [part for part in environment.get("LD_LIBRARY_PATH", "").split(":") if part]
    kept = [part for part in kept if ros_prefix is not None or "/.venv/" not in f"{part}/"]
    environment.pop("LD_LIBRARY_PATH", None)
    if kept:
        environment["LD_LIBRARY_PATH"] = ":".join(kept)
    if ros_prefix is None:
        environment["AMENT_PREFIX_PATH"] = str(layout.venv)
        environment["CMAKE_PREFIX_PATH"] = str(layout.venv)
    environment["VIRTUAL_ENV"] = str(layout.venv)
    environment["PATH"] = f"{layout.venv / 'bin'}:{environment.get('PATH', os.defpath)}"
    environment["PYTHONNOUSERSITE"] = "1"
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    environment["PIP_NO_INPUT"] = "1"
    environment["EQUI_SETUP_RUN"] = run_token
    return environment
