# SPDX-License-Identifier: MIT
"""URScript uploads as far as the emulator reads them: whole programs, register offset, path."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ur_emulator.lines import LineReader

CONTROL_SCRIPT_NAME = "rtde_control"
_MAX_BYTES = 1_000_000
# Lower and upper half of the registers: what the script's two versions use.
_OFFSETS = ("0", "24")
_LARGEST = 1e6
_OFFSET_MARKER = "# int register offset"
_PATH_MARKER = "# inject move path"
_NUMBER = r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?"
_PATH_MOVE = re.compile(
    rf"(movej|movel|movep)\((p?)\[([^\]]*)\]\s*,\s*a=({_NUMBER})\s*,\s*v=({_NUMBER})"
    rf"\s*,\s*r=({_NUMBER})\)"
)


class ScriptError(ValueError):
    """A script that a controller would refuse to compile; says why."""


@dataclass(frozen=True)
class PathMove:
    """One waypoint of an uploaded path: six finite numbers, and finite settings."""

    kind: str
    is_pose: bool
    values: tuple[float, ...]
    acceleration: float
    speed: float
    blend_m: float

    @classmethod
    def parse(cls, match: tuple[str, ...]) -> PathMove:
        """A waypoint from the groups of `_PATH_MOVE`; raises ScriptError."""
        kind, pose, values, *settings = match
        try:
            numbers = tuple(float(value) for value in values.split(","))
            acceleration, speed, blend_m = (float(value) for value in settings)
        except ValueError as error:
            raise ScriptError(f"path: {error}") from error
        # Written this way round, because every comparison with NaN is false.
        if len(numbers) != 6 or not all(
            abs(value) < _LARGEST for value in (*numbers, acceleration, speed, blend_m)
        ):
            raise ScriptError(f"path: {kind} needs six finite numbers, got {values[:80]!r}")
        return cls(kind, pose == "p", numbers, acceleration, speed, blend_m)


@dataclass(frozen=True)
class Upload:
    """A complete program text."""

    name: str
    text: str

    @property
    def is_control_script(self) -> bool:
        """Whether this is ur_rtde's own control script."""
        return self.name == CONTROL_SCRIPT_NAME and _OFFSET_MARKER in self.text

    @property
    def register_offset(self) -> int:
        """First register the script uses: the digits that begin the line after its marker."""
        _, _, rest = self.text.partition(_OFFSET_MARKER)
        following = rest.split("\n", 2)[1] if "\n" in rest else ""
        digits = re.match(r"\s*([0-9]+)", following)
        if digits is None:
            return 0
        if digits.group(1) not in _OFFSETS:
            raise ScriptError(
                f"register offset is {digits.group(1)[:20]}; allowed: {', '.join(_OFFSETS)}"
            )
        return int(digits.group(1))

    @property
    def path(self) -> tuple[PathMove, ...]:
        """Moves injected into the script, in order."""
        _, _, rest = self.text.partition(_PATH_MARKER)
        # The injected lines stand alone between the marker and the end of that function.
        body = re.split(r"\n\s+end\b", rest, maxsplit=1)[0]
        return tuple(PathMove.parse(match) for match in _PATH_MOVE.findall(body))


class UploadReader:
    """Collects text in whatever pieces it arrives and yields complete programs."""

    def __init__(self) -> None:
        self._reader = LineReader(_MAX_BYTES)
        self._lines: list[str] = []
        self._name: str | None = None
        self._size = 0

    def feed(self, data: bytes) -> list[Upload]:
        """Programs completed by these bytes; a line outside any program is one by itself.

        Raises:
            LineTooLongError: a line longer than any program.
        """
        complete: list[Upload] = []
        for raw in self._reader.feed(data):
            line = raw.decode("utf-8", "replace")
            if self._name is None:
                start = re.match(r"\s*(?:def|sec)\s+(\w+)\s*\(", line)
                if start:
                    self._name, self._lines, self._size = start.group(1), [line], len(line)
                elif line.strip():
                    complete.append(Upload("", line.strip()))
                continue
            self._lines.append(line)
            # With the line break, as it stands in the text.
            self._size += len(line) + 1
            if line.rstrip() == "end" or self._size > _MAX_BYTES:
                complete.append(Upload(self._name, "\n".join(self._lines)))
                self._name = None
        return complete
