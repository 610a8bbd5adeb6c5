# SPDX-License-Identifier: MIT
"""Arguments of the launch files as data, and what is wrong with those that somebody typed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from equi_core.locations.tasks import known_tasks
from equi_core.scene_seeds import TEST_SEED

BOOLEAN = ("true", "false")


class ArgumentError(ValueError):
    """An argument that is unknown or has a value that is not allowed; names the nearest."""


@dataclass(frozen=True)
class Argument:
    """One argument of a launch file."""

    name: str
    default: str | None
    """None: it must be given."""
    description: str
    choices: tuple[str, ...] | None = None


def cell_argument(default: str = "sim") -> Argument:
    """The argument `cell`; without a default the cell follows from `sim`."""
    text = "cell name, or a path ending in .yaml" + ("" if default else "; empty: sim or lab")
    return Argument("cell", default, text)


ROBOT_IP = Argument("robot_ip", "", "address of the UR controller; empty: the cell's")
MODEL = Argument(
    "model", None, "policy: a name in EQUI_MODELS or installed, or a path with a slash"
)
NAMESPACE = Argument("namespace", "", "ROS namespace of every node of this cell")
FRAME_PREFIX = Argument("frame_prefix", "", "prefix of every frame name, such as 'left_'")
TASK = Argument(
    "task",
    "block_picking",
    "task of the policy; one of your own if EQUI_PLUGINS names its module",
    known_tasks(),
)
SEED = Argument(
    "seed", str(TEST_SEED), "seed of the first scene; the default was not used in training"
)
PROFILE = Argument(
    "profile", "lenient", "how strictly the emulator behaves like a robot", ("lenient", "strict")
)
DRIVEN_BY = Argument(
    "driven_by",
    "policy",
    "expert: the scripted expert, which uses ground truth (simulation only)",
    ("policy", "expert"),
)
MODE = Argument(
    "mode",
    "full",
    "shadow: the driver only listens; reduced: it moves slowly. On a robot each mode needs "
    "evidence from the one before",
    ("shadow", "reduced", "full"),
)
I_KNOW = Argument("i_know", "", "your name, to run a mode without its evidence; logged in red")
CALIBRATION = Argument("calibration", "", "folder of the cameras' calibration; empty: the cell's")
IGNORE_CALIBRATION = Argument(
    "ignore_calibration",
    "false",
    "use a calibration that failed, expired or belongs to another cell; for rehearsals",
    BOOLEAN,
)
AUTOSTART = Argument("autostart", "true", "configure and activate the node; false: you do", BOOLEAN)
COMMON = (ROBOT_IP, NAMESPACE, FRAME_PREFIX)
"""What every launch file of a cell has."""


def refuse_unknown(
    file: str, typed: Iterable[str], words: Sequence[str], known: Iterable[Argument]
) -> None:
    """Refuse an argument that a launch file does not have, which ROS would accept in silence.

    Only where the file itself was asked for: a file that includes it has arguments of its own.

    Args:
        file: the launch file.
        typed: arguments of the launch, each `name:=value`.
        words: the command line of the process.
        known: arguments of the file.

    Raises:
        ArgumentError: names the argument and the nearest known one.
    """
    if Path(file).name not in {Path(word).name for word in words}:
        return
    names = [argument.name for argument in known]
    for text in typed:
        name = text.partition(":=")[0]
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = f"did you mean '{near[0]}'? " if near else ""
            raise ArgumentError(
                f"{Path(file).name} has no argument '{name}'; {hint}Its arguments: "
                f"{', '.join(names)}"
            )


def whole_number(name: str, text: str) -> int:
    """The value of an argument that counts something.

    Raises:
        ArgumentError: it is no whole number, or below zero.
    """
    try:
        number = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        number = None
    if type(number) is not int or number < 0:
        raise ArgumentError(f"{name}:={text} must be a whole number, 0 or more, such as {name}:=5")
    return number
