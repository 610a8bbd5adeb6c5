# SPDX-License-Identifier: MIT
"""Running the commands of a step: output to a log, signs of life, causes of failure explained."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from .layout import SetupError

HEARTBEAT_S = 20.0
POLL_S = 0.1
TAIL_LINES = 12

# Machine-dependent chatter of pip that would hide the cause of a failure.
_NOISE = re.compile(
    r"WARNING: Location|is ignored|\[notice\]|^\s*$|DEPRECATION|Looking in (indexes|links)"
)
# Pattern in the output, likely cause, way out. The first match decides: without a network pip ends
# with a misleading 'no matching distribution'.
_CAUSES = (
    (
        "No space left on device",
        "the disk is full",
        "free about 6 GB (`df -h .`), then run again.",
    ),
    (
        "Temporary failure (in name resolution|resolving)|Name or service not known|ProxyError"
        "|Connection refused|Network is unreachable|NewConnectionError|(Connect|Read)Timeout"
        "|Max retries exceeded|Could not (fetch URL|resolve)|No route to host|Unable to connect to",
        "the network cannot be reached",
        "check the connection and the proxy settings (`python3 -m pip config list`), then run "
        "again: what is already installed stays.",
    ),
    (
        "Could not get lock|dpkg frontend lock",
        "another program is installing Debian packages",
        "wait until it has finished, then run again.",
    ),
    (
        "Read-only file system|Permission denied",
        "a file or folder cannot be written",
        "make the folder of this checkout writable for you, or clone it elsewhere, then run again.",
    ),
    (
        r"Unknown compiler\(s\)|gfortran: (command )?not found|No CMAKE_\w+_COMPILER could be found"
        r"|error: command '\S*(gcc|cc|g\+\+|c\+\+)'|unable to execute '\S*(gcc|cc)'",
        "a compiler is missing or failed",
        "install the compilers (`sudo apt-get install -y build-essential gfortran cmake`), "
        "then run again.",
    ),
    (
        "Killed|MemoryError|cannot allocate memory",
        "the machine ran out of memory",
        "close other programs, then run again: what is already done stays done.",
    ),
    (
        "No matching distribution found|ResolutionImpossible",
        "a pinned package does not exist for this Python or machine",
        "try Python 3.11 on x86_64 (`make setup PYTHON=python3.11`).",
    ),
)


def say(text: str) -> None:
    """One line for the user."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(
    command: Sequence[str | Path],
    log: Path,
    environment: Mapping[str, str],
    cwd: Path | None = None,
) -> None:
    """Run a command with its output appended to a log, and show that it is alive.

    Raises:
        SetupError: The command failed; carries the end of its output and the likely cause.
    """
    words = [str(word) for word in command]
    log.parent.mkdir(parents=True, exist_ok=True)
    begin = log.stat().st_size if log.exists() else 0
    with log.open("a", encoding="utf-8", errors="replace") as stream:
        stream.write(f"$ {' '.join(words)}\n")
        stream.flush()
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                cwd=cwd,
                start_new_session=True,  # so that the whole family can be ended at once
            )
        except OSError as error:
            raise SetupError(
                f"cannot start {words[0]}: {error.strerror}",
                "run `make doctor` to see what is missing.",
            ) from error
        try:
            _watch(process, log)
        except BaseException:
            _end_family(process)
            raise
    if process.returncode != 0:
        raise _explain(words, process.returncode, log, begin)


def _watch(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for a process; on a terminal keep one changing line, elsewhere a line now and then."""
    started = time.monotonic()
    live = sys.stdout.isatty()
    patience_s = POLL_S if live else HEARTBEAT_S
    while True:
        try:
            process.wait(timeout=patience_s)
            break
        except subprocess.TimeoutExpired:
            text = f"      {time.monotonic() - started:5.0f} s  {_last_line(log)}"
            if live:
                width = max(20, shutil.get_terminal_size().columns - 1)
                sys.stdout.write(f"\r\x1b[2K{text[:width]}")
                sys.stdout.flush()
            else:
                say(text[:120])
    if live:
        sys.stdout.write("\r\x1b[2K")
        sys.stdout.flush()


def _end_family(process: subprocess.Popen[bytes]) -> None:
    for signal_number, patience_s in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
        try:
            os.killpg(process.pid, signal_number)
            process.wait(timeout=patience_s)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _last_line(log: Path) -> str:
    with log.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        lines = _useful_lines(stream, max(0, stream.tell() - 2000))
    return lines[-1].strip() if lines else ""


def _useful_lines(stream: BinaryIO, begin: int) -> list[str]:
    stream.seek(begin)
    text = stream.read().decode("utf-8", "replace").replace("\r", "\n")
    return [line.rstrip() for line in text.splitlines() if not _NOISE.search(line)]


def _explain(words: list[str], code: int, log: Path, begin: int) -> SetupError:
    with log.open("rb") as stream:
        lines = _useful_lines(stream, begin)
    end = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    tail = "\n".join(f"    | {line[:200]}" for line in lines[-TAIL_LINES:])
    command = " ".join(words)
    command = command if len(command) <= 160 else f"{command[:157]}..."
    cause = ""
    way_out = "read the log, repair the cause, then run again: finished steps are not repeated."
    for pattern, name, advice in _CAUSES:
        if re.search(pattern, "\n".join(lines)):
            cause, way_out = f"Likely cause: {name}.\n", advice
            break
    return SetupError(f"`{command}` failed ({end}).\n{tail}\n{cause}Full log: {log}", way_out)
