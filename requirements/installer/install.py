# SPDX-License-Identifier: MIT
"""Brings a checkout from nothing to a working environment: `make setup`.

Run by the system's Python with the standard library alone. Every step leaves a stamp when it has
succeeded, keyed by a hash of its inputs, so that a second run does nothing, and a run after a kill
continues where the last one was.

    make setup                     everything: training, tests and robot
    make setup PROFILE=robot       the robot PC: neither escnn nor pybullet
    make setup PYTHON=python3.12   with another interpreter
    make setup CLUSTER=1           Ray and SLURM as well, for sweeps on more than one machine
    make setup DOCS=1              what builds the documentation site as well
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from . import python_env, stamps
from .commands import say
from .layout import Layout, Profile, SetupError, child_environment
from .ros import sourced_ros_prefix
from .steps import EXTRAS, Context, Step, plan


def main(arguments: list[str] | None = None) -> int:
    """Run the steps that are not done yet; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", choices=[profile.value for profile in Profile], default="full")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    for name, text in EXTRAS.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    parser.add_argument("--quiet", action="store_true", help="say nothing if nothing is to be done")
    options = parser.parse_args(arguments)
    layout = Layout(options.root.resolve())
    try:
        require_writable(layout)
        with only_one_at_a_time(layout):
            extras = frozenset(name for name in EXTRAS if getattr(options, name))
            return install(layout, Profile(options.profile), options.quiet, extras)
    except SetupError as error:
        sys.stderr.write(f"\nsetup stopped: {error}\n  What to do: {error.way_out}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write(
            "\nsetup interrupted. Finished steps are kept: `make setup` continues from there.\n"
        )
        return 130


def install(
    layout: Layout, profile: Profile, quiet: bool, extras: frozenset[str] = frozenset()
) -> int:
    """Do what is not done yet."""
    begun = time.monotonic()
    marker = layout.logs / stamps.RUNNING
    interrupted = marker.exists()
    if interrupted:
        ended = stamps.end_leftovers(marker)
        step_name = stamps.read(marker).get("step", "?")
        say(f"the last setup did not finish (step '{step_name}'): continuing from there")
        if ended:
            say(f"      ended what it had left running: {', '.join(map(str, ended))}")
    ros_prefix = sourced_ros_prefix(layout)
    require_same_ros(layout, ros_prefix)
    token = uuid.uuid4().hex
    context = Context(
        layout=layout,
        profile=profile,
        ros_prefix=ros_prefix,
        environment=child_environment(layout, ros_prefix, token),
        base_python=Path(sys.executable),
        interrupted=interrupted,
        extras=extras,
    )
    python_env.remove_doomed(layout)
    steps = plan(context)
    acted = False
    for number, step in enumerate(steps, start=1):
        if not is_done(layout, step):
            if not acted and ros_prefix is not None:
                say(f"using the sourced ROS 2 at {ros_prefix}")
            acted = True
            stamps.write_atomically(marker, {"step": step.name, "token": token})
            perform(layout, step, f"[{number}/{len(steps)}]")
    marker.unlink(missing_ok=True)
    if acted:
        say(f"ready after {time.monotonic() - begun:.0f} s.")
        say("Next: `source env.sh`, `make test`, `make help`")
    elif not quiet:
        say(f"everything is in place ({profile.value} profile); nothing to do")
    return 0


def is_done(layout: Layout, step: Step) -> bool:
    """True if the step succeeded with the present inputs, and its result is still there."""
    return stamps.read(stamp_path(layout, step)).get("key") == step.key() and step.is_there()


def stamp_path(layout: Layout, step: Step) -> Path:
    """Where the stamp of a step lies: beside what the step has made."""
    folder = layout.stamps if step.inside_environment else layout.logs
    return folder / f"{step.name}.json"


def perform(layout: Layout, step: Step, position: str) -> None:
    """Run one step, and stamp it if it succeeds.

    Raises:
        SetupError: The step failed; names the step.
    """
    log = layout.logs / f"{step.name}.log"
    log.unlink(missing_ok=True)
    say(f"{position} {step.title} ...")
    begun = time.monotonic()
    try:
        step.act(log)
    except SetupError as error:
        raise SetupError(
            f"step {position} '{step.title}' failed.\n{error}", error.way_out
        ) from error
    except OSError as error:
        raise SetupError(
            f"step {position} '{step.title}' failed: {error}",
            "check the free space (`df -h .`) and the rights of this folder, then run again.",
        ) from error
    elapsed_s = time.monotonic() - begun
    stamps.write_atomically(
        stamp_path(layout, step), {"key": step.key(), "seconds": round(elapsed_s, 1)}
    )
    say(f"      done in {elapsed_s:.0f} s")


def require_writable(layout: Layout) -> None:
    """Check that the checkout can be written to before anything is begun.

    Raises:
        SetupError: It cannot.
    """
    try:
        layout.logs.mkdir(parents=True, exist_ok=True)
        for folder in (layout.root, layout.logs, layout.workspace):
            with tempfile.TemporaryFile(dir=folder):
                pass
    except OSError as error:
        raise SetupError(
            f"{layout.root} cannot be written to: {error.strerror}.",
            "make the folder writable for you (`ls -ld`, `mount`), or clone to another place.",
        ) from error


def require_same_ros(layout: Layout, ros_prefix: Path | None) -> None:
    """An environment that was built upon a real ROS 2 is of no use without it.

    Raises:
        SetupError: The ROS 2 that it was built upon is not sourced.
    """
    built_upon = python_env.identity_of(layout).get("ros_prefix", "")
    if built_upon and ros_prefix is None:
        raise SetupError(
            f".venv was set up on top of the ROS 2 at {built_upon}, which is not sourced here.",
            f"source it (`. {built_upon}/setup.bash`) and run again, or `make clean` to start over "
            "without it.",
        )


@contextlib.contextmanager
def only_one_at_a_time(layout: Layout) -> Iterator[None]:
    """Hold the lock of this checkout; the kernel frees it whatever happens to this process."""
    with (layout.logs / "lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another setup is running in this checkout: waiting for it to finish ...")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    raise SystemExit(main())
