# SPDX-License-Identifier: MIT
"""`make baselines`: an environment of its own for other people's agents, beside `.venv`.

A finished one is left as it is until `requirements/baselines.txt` changes.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from . import stamps
from .commands import run, say
from .layout import Layout, SetupError

ENVIRONMENT_NAME = ".venv-baselines"
_STAMP = "baselines.json"


def install(layout: Layout) -> int:
    """Make the environment, unless it is there already."""
    pins = layout.requirements / "baselines.txt"
    venv = layout.root / ENVIRONMENT_NAME
    wanted = {"key": stamps.digest([pins, sys.version])}
    if stamps.read(venv / _STAMP) == wanted:
        say(f"{ENVIRONMENT_NAME} is in place; nothing to do")
        return 0
    log = layout.logs / "baselines.log"
    log.unlink(missing_ok=True)
    unwanted = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LD_LIBRARY_PATH"}
    environment = {name: text for name, text in os.environ.items() if name not in unwanted}
    say(f"making {ENVIRONMENT_NAME} (1.3 GB) ...")
    shutil.rmtree(venv, ignore_errors=True)
    run([sys.executable, "-m", "venv", venv], log, environment)
    (venv / "COLCON_IGNORE").touch()
    python = venv / "bin" / "python"
    pip = ["-m", "pip", "install", "--no-compile", "--progress-bar", "off"]
    run([python, *pip, "-r", pins], log, environment)
    stamps.write_atomically(venv / _STAMP, wanted)
    say("done. Next: `equi-train dreamer --help`, `equi-sweep dreamer --folder runs/dreamer`")
    return 0


def main() -> int:
    """Entry point; returns the exit status."""
    try:
        return install(Layout(Path(__file__).resolve().parents[2]))
    except SetupError as error:
        sys.stderr.write(f"\nmake baselines stopped: {error}\n  What to do: {error.way_out}\n")
        return 1


if __name__ == "__main__":
    raise SystemExit(main())
