# SPDX-License-Identifier: MIT
"""URScript uploads as far as the emulator reads them: whole programs, register offset, path."""

from __future__ import annotations

import re
from dataclasses import dataclass

CONTROL_SCRIPT_NAME = "rtde_control"
_MAX_BYTES = 1_000_000
_OFFSET_MARKER = "# int register offset"
_PATH_MARKER = "# inject move path"
_NUMBER = r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?"
_PATH_MOVE = re.compile(
    rf"(movej|movel|movep)\((p?)\[([^\]]*)\]\s*,\s*a=({_NUMBER})\s*,\s*v=({_NUMBER})"
    rf"\s*,\s*r=({_NUMBER})\)"
)


@dataclass(frozen=True)
class PathMove:
    """One waypoint of an uploaded path."""

    kind: str
    is_pose: bool
    values: tuple[float, ...]
    acceleration: float
    speed: float
    blend_m: float


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
        digits = re.match(r"\s*(\d+)", following)
        return int(digits.group(1)) if digits else 0

    @property
    def path(self) -> tuple[PathMove, ...]:
        """Moves injected into the script, in order."""
        _, _, rest = self.text.partition(_PATH_MARKER)
        # The injected lines stand alone between the marker and the end of that function.
        body = re.split(r"\n\s+end\b", rest, maxsplit=1)[0]
        return tuple(
            PathMove(
                kind=match[0],
                is_pose=match[1] == "p",
                values=tuple(float(value) for value in match[2].split(",")),
                acceleration=float(match[3]),
                speed=float(match[4]),
                blend_m=float(match[5]),
            )
            for match in _PATH_MOVE.findall(body)
        )


class UploadReader:
    """Collects text in whatever pieces it arrives and yields complete programs."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""
        self._name: str | None = None
        self._size = 0

    def feed(self, data: bytes) -> list[Upload]:
        """Programs completed by these bytes; a line outside any program is one by itself."""
        *lines, self._rest = (self._rest + data.decode("utf-8", "replace")).split("\n")
        complete: list[Upload] = []
        for line in lines:
            if self._name is None:
                start = re.match(r"\s*(?:def|sec)\s+(\w+)\s*\(", line)
                if start:
                    self._name, self._lines, self._size = start.group(1), [line], len(line)
                elif line.strip():
                    complete.append(Upload("", line.strip()))
                continue
            self._lines.append(line)
            self._size += len(line)
            if line.rstrip() == "end" or self._size > _MAX_BYTES:
                complete.append(Upload(self._name, "\n".join(self._lines)))
                self._name = None
        return complete
