# SPDX-License-Identifier: MIT
"""Starts emulators for tests and benchmarks, and ends exactly those."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ur_emulator.client import EmulatorClient
from ur_emulator.constants import Ports
from ur_emulator.profile_options import to_arguments

_START_TIMEOUT_S = 120.0


class StartError(RuntimeError):
    """The emulator did not start; carries the reason and the command."""


def free_address() -> str:
    """A loopback address on which no robot is emulated yet."""
    rng = random.Random(os.getpid() ^ time.monotonic_ns())
    for _ in range(100):
        address = f"127.{rng.randint(1, 254)}.{rng.randint(0, 254)}.{rng.randint(2, 254)}"
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            try:
                probe.bind((address, Ports.rtde))
            except OSError:
                continue
            return address
    raise StartError("no free loopback address found in 127.0.0.0/8")


class EmulatorProcess:
    """One emulated robot in its own process; a context manager.

    Args:
        model: `ur5`, `ur5e` or another of `MODELS`.
        profile: `lenient` or `strict`.
        arm: `kinematic`, or one that another package adds.
        delay_scale: factor on the controller's delays; 1 for those of the real one.
        realtime: ask for real-time priority.
        address: loopback address; a free one if not given.
        port_base: seven ports from here on instead of the real ones; ur_rtde needs the real ones.
        scene_file: where the physics arm shows its shapes to simulated cameras.
        behaviours: fields of `Profile` that differ, e.g. `{"speed_slider": 0.2}`.
        conformance_file: a robot's measurements to behave like.
    """

    def __init__(
        self,
        *,
        model: str = "ur5",
        profile: str = "lenient",
        arm: str = "kinematic",
        delay_scale: float = 0.05,
        realtime: bool = True,
        address: str | None = None,
        port_base: int | None = None,
        scene_file: Path | None = None,
        behaviours: Mapping[str, Any] | None = None,
        conformance_file: Path | None = None,
    ) -> None:
        self.address = address or free_address()
        self.ports = Ports() if port_base is None else Ports.block(port_base)
        self._command = [
            *(sys.executable, "-m", "ur_emulator.main"),
            *("--address", self.address, "--arm", arm, "--model", model),
            *("--profile", profile),
            *("--delay-scale", str(delay_scale)),
            *(("--realtime",) if realtime else ()),
            *(() if port_base is None else ("--port-base", str(port_base))),
            *(("--scene-file", str(scene_file)) if scene_file else ()),
            *(("--conformance-file", str(conformance_file)) if conformance_file else ()),
            *to_arguments(behaviours or {}),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.api: EmulatorClient

    def __enter__(self) -> EmulatorProcess:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline_s = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                self.api = EmulatorClient(self.address, 30.0, self.ports.control_api)
                return self
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    self.__exit__()
                    raise StartError(
                        f"no emulator on {self.address}:{self.ports.control_api} ({error}); "
                        f"run by hand to see why: {' '.join(self._command)}"
                    ) from error
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "api"):
            self.api.close()
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        """Process id of the emulator."""
        if self._process is None:
            raise StartError("the emulator was not started")
        return self._process.pid
