# SPDX-License-Identifier: MIT
"""Puts the SPDX licence line first into Python files that lack it; exit code 1 if it had to.

python requirements/architecture/licence_lines.py FILE ...
"""

from __future__ import annotations

import sys
from pathlib import Path

LINE = "# SPDX-License-Identifier: MIT\n"


def has_line(path: Path) -> bool:
    """True if the file begins with the line, after a `#!` if there is one; empty files pass."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return not lines or LINE in lines[: 2 if lines[0].startswith("#!") else 1]


def add_line(path: Path) -> None:
    """Put the line first, or second after a `#!`."""
    text = path.read_text(encoding="utf-8")
    shebang, rest = "", text
    if text.startswith("#!"):
        shebang, _, rest = text.partition("\n")
        shebang += "\n"
    path.write_text(f"{shebang}{LINE}{rest}", encoding="utf-8")


def main(paths: list[str]) -> int:
    """Repair the files; returns 1 if one was changed, as a hook should."""
    without = [Path(path) for path in paths if not has_line(Path(path))]
    for path in without:
        add_line(path)
        sys.stdout.write(f"licence line added: {path}\n")
    return 1 if without else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
