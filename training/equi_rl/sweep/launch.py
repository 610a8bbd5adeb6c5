# SPDX-License-Identifier: MIT
"""Becomes a job's process, on whatever machine: ends with its starter, and leaves a note of itself.

    python -m equi_rl.sweep.launch PARENT NICENESS RUN_FOLDER COMMAND...

Loads nothing but the standard library, then replaces itself by the command.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from equi_rl.cluster.work_server import die_with_parent

NODE_VARIABLE = "EQUI_NODE"
_END_LIMIT_S = 20.0
_POLL_S = 0.2


def start(
    command: list[str], run_folder: Path, log: Path, niceness: int
) -> subprocess.Popen[bytes]:
    """Start a job's process; it ends when this thread does."""
    run_folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # one core per process
    launcher = [sys.executable, "-m", __name__, str(os.getpid()), str(niceness), str(run_folder)]
    with open(log, "ab") as stream:
        return subprocess.Popen(
            [*launcher, *command],
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches the sweep, which ends its jobs in order
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a job's process to end, and see to it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(timeout=_END_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_to_end(
    command: list[str], run_folder: str, log: str, niceness: int, sign: str
) -> tuple[int | None, str]:
    """A job on another machine: its exit status and where it ran.

    Args:
        command: of the job.
        run_folder: of the job.
        log: where its output goes.
        niceness: scheduling priority.
        sign: a file that exists where the sweep was started: the disk must be the same one.
    """
    here = machine()
    if not Path(sign).exists():
        return None, (
            f"machine {here} does not see {Path(sign).parent}; put the sweep's folder on a disk"
            " that all machines share"
        )
    process = start(command, Path(run_folder), Path(log), niceness)
    try:
        while (status := process.poll()) is None:
            time.sleep(_POLL_S)
        return status, here
    finally:
        end(process)


def machine() -> str:
    """Host name, and the short name of the node if the cluster has one for it."""
    node = os.environ.get(NODE_VARIABLE, "")
    return socket.gethostname() + (f"/{node}" if node else "")


def main(arguments: list[str]) -> None:
    """Note the attempt, then become the command."""
    parent, niceness, folder, *command = arguments
    die_with_parent(int(parent), signal.SIGTERM)
    os.nice(int(niceness))
    attempt = {"machine": machine(), "pid": os.getpid(), "time": time.time()}
    with open(Path(folder) / "attempts.jsonl", "a") as file:
        file.write(json.dumps(attempt) + "\n")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
