# SPDX-License-Identifier: MIT
"""Soak test: whether any process of the whole cell grows in ten minutes of episodes.

    make soak                                  # ten minutes, block picking, strict emulator
    make soak ARGS="--minutes 30 --task drawer_opening"
    make soak ARGS="--attach 4711"             # watch a launch that runs already

Memory, threads and open files of every process of the launch, and the shared memory that they have
mapped (that of DDS), are read every few seconds. After the first minutes, in which buffers and
caches fill, none may grow.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

_PERIOD_S = 5.0
_SHARED_MEMORY = "/dev/shm/"
MOST_MB = 20.0
"""Growth of a process between the two halves of the time after warming up that is no leak: a leak
of one depth cloud in a thousand is above it within ten minutes."""
MOST_HANDLES = 2
"""The same for threads and open files."""


@dataclass(frozen=True)
class Usage:
    """What one process holds now."""

    resident_mb: float
    threads: int
    files: int


@dataclass(frozen=True)
class Sample:
    """What all processes hold at one time."""

    time_s: float
    processes: Mapping[str, Usage]
    segments: int
    """Files in shared memory that one of them has mapped; those of other launches do not count."""
    segments_mb: float


@dataclass(frozen=True)
class Growth:
    """One process between the first and the second half of the time."""

    process: str
    samples: int
    resident_mb: tuple[float, float]
    """Median of each half."""
    threads: tuple[int, int]
    """Largest of each half."""
    files: tuple[int, int]

    @property
    def problem(self) -> str:
        """What has grown; empty if nothing has."""
        grown_mb = self.resident_mb[1] - self.resident_mb[0]
        if grown_mb > MOST_MB:
            return f"memory grew by {grown_mb:.1f} MB, at most {MOST_MB:g} is allowed"
        for what, (before, after) in (("threads", self.threads), ("open files", self.files)):
            if after - before > MOST_HANDLES:
                return f"{what} grew from {before} to {after}"
        return ""


def descendants(root: int) -> dict[int, str]:
    """Process ids below a process, each with a name: its node, module or command."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
    found: dict[int, str] = {}
    level = {root}
    while level:
        level = {pid for pid, parent in parents.items() if parent in level and pid not in found}
        found.update({pid: _name(pid) for pid in level})
    return found


def _name(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    text = [word.decode("utf-8", "replace") for word in words if word]
    for word in text:
        if word.startswith("__node:="):
            return word.removeprefix("__node:=")
    if any("multiprocessing.resource_tracker" in word for word in text):
        return "resource_tracker"
    if any("multiprocessing.spawn" in word for word in text):
        return "servo process"
    names = [Path(word).name for word in text if not word.startswith("-")]
    return " ".join(names[1:2] if names and names[0].startswith("python") else names[:1])


def usage(pid: int) -> Usage | None:
    """What a process holds; None if it has ended."""
    folder = Path(f"/proc/{pid}")
    try:
        pages = int((folder / "statm").read_text().split()[1])
        return Usage(
            pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
            len(os.listdir(folder / "task")),
            len(os.listdir(folder / "fd")),
        )
    except (OSError, IndexError):
        return None


def take_sample(root: int, began_s: float) -> Sample:
    """Everything now; a process is called by its name and number, so that a new one is new."""
    processes = {}
    segments: dict[str, int] = {}
    for pid, name in descendants(root).items():
        held = usage(pid)
        if held is not None and held.resident_mb > 0:
            processes[f"{name} ({pid})"] = held
            segments |= mapped_segments(pid)
    size_mb = sum(segments.values()) / 1e6
    return Sample(time.monotonic() - began_s, processes, len(segments), size_mb)


def mapped_segments(pid: int) -> dict[str, int]:
    """Shared memory that a process has mapped: size [bytes] by path, a removed file too."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return {}
    found: dict[str, int] = {}
    for line in lines:
        addresses, _, path = line.partition(" ")
        begin, _, end = addresses.partition("-")
        path = path[path.find(_SHARED_MEMORY) :] if _SHARED_MEMORY in path else ""
        if path:
            found[path] = found.get(path, 0) + int(end, 16) - int(begin, 16)
    return found


def growth_of(samples: Sequence[Sample], warm_up_s: float) -> list[Growth]:
    """Each process that lives in both halves of the time after warming up."""
    warm = [sample for sample in samples if sample.time_s >= warm_up_s]
    middle_s = (warm_up_s + samples[-1].time_s) / 2
    found = []
    for name in sorted({name for sample in warm for name in sample.processes}):
        halves: tuple[list[Usage], list[Usage]] = ([], [])
        for sample in warm:
            if name in sample.processes:
                halves[sample.time_s > middle_s].append(sample.processes[name])
        if all(len(half) >= 3 for half in halves):
            first, second = halves
            found.append(
                Growth(
                    name,
                    len(first) + len(second),
                    _pair(*(float(np.median([one.resident_mb for one in h])) for h in halves)),
                    (max(one.threads for one in first), max(one.threads for one in second)),
                    (max(one.files for one in first), max(one.files for one in second)),
                )
            )
    return found


def _pair(first: float, second: float) -> tuple[float, float]:
    return round(first, 1), round(second, 1)


def problems_of(samples: Sequence[Sample], warm_up_s: float) -> list[str]:
    """Everything that has grown, in words; empty if nothing has."""
    growth = growth_of(samples, warm_up_s)
    if not growth:
        return ["no process lived long enough to be judged"]
    problems = [f"{one.process}: {one.problem}" for one in growth if one.problem]
    warm = [sample for sample in samples if sample.time_s >= warm_up_s]
    middle = len(warm) // 2
    before = max(sample.segments for sample in warm[:middle])
    after = max(sample.segments for sample in warm[middle:])
    if after > before + MOST_HANDLES:
        problems.append(f"shared-memory segments grew from {before} to {after}")
    return problems


def watch(root: int, duration_s: float) -> list[Sample]:
    """Sample the processes below one until the time is over or it ends."""
    began_s = time.monotonic()
    samples: list[Sample] = []
    while time.monotonic() - began_s < duration_s and usage(root) is not None:
        samples.append(take_sample(root, began_s))
        time.sleep(_PERIOD_S)
    return samples


def start_cell(task: str, profile: str) -> subprocess.Popen[bytes]:
    """The whole cell, with more episodes than there is time for."""
    return subprocess.Popen(
        [
            *("ros2", "launch", "equi_policy", "sim2real.launch.py"),
            *(f"task:={task}", f"profile:={profile}", "episodes:=1000", "balanced:=false"),
        ],
        start_new_session=True,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run or attach, print a table; 0 only if nothing has grown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_HELP)
    parser.add_argument("--minutes", type=float, default=10.0, help="after warming up")
    parser.add_argument("--warm-up-minutes", type=float, default=2.0)
    parser.add_argument("--task", default="block_picking")
    parser.add_argument("--profile", default="strict", choices=("lenient", "strict"))
    parser.add_argument("--attach", type=int, help="process id of a launch that runs already")
    parser.add_argument("--output", type=Path, help="write every sample to this JSON file")
    options = parser.parse_args(arguments)
    duration_s = 60.0 * (options.minutes + options.warm_up_minutes)
    cell = None if options.attach else start_cell(options.task, options.profile)
    try:
        samples = watch(options.attach if cell is None else cell.pid, duration_s)
    finally:
        if cell is not None:
            os.killpg(cell.pid, signal.SIGINT)
            cell.wait(30.0)
    if options.output:
        options.output.write_text(json.dumps([asdict(sample) for sample in samples]))
    return _report(samples, 60.0 * options.warm_up_minutes)


def _report(samples: Sequence[Sample], warm_up_s: float) -> int:
    if not samples:
        sys.stderr.write("soak: the launch ended before anything was measured\n")
        return 1
    lines = [f"{'process':40} {'MB before, after':>18} {'threads':>9} {'files':>9}"]
    for one in growth_of(samples, warm_up_s):
        memory = f"{one.resident_mb[0]:.1f}, {one.resident_mb[1]:.1f}"
        threads, files = (f"{a}, {b}" for a, b in (one.threads, one.files))
        lines.append(f"{one.process:40} {memory:>18} {threads:>9} {files:>9}  {one.problem}")
    last, first = samples[-1], samples[0]
    lines.append(
        f"shared memory: {first.segments} to {last.segments} files, {last.segments_mb:.0f} MB"
    )
    problems = problems_of(samples, warm_up_s)
    lines += problems or [f"nothing has grown in {last.time_s - warm_up_s:.0f} s"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if problems else 0


_HELP = argparse.RawDescriptionHelpFormatter

if __name__ == "__main__":
    sys.exit(main())
