# SPDX-License-Identifier: MIT
"""Takes blanks from the ends of lines and ends files with one newline; exit code 1 if it had to.

python requirements/architecture/file_ends.py FILE ...
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def repaired(text: str, keep_trailing_blanks: bool) -> str:
    """The text as it should be; Markdown keeps two blanks, which break a line."""
    if not keep_trailing_blanks:
        text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return f"{text.rstrip()}\n" if text.strip() else ""


def main(paths: list[str]) -> int:
    """Repair the files; returns 1 if one was changed, as a hook should."""
    changed = False
    for path in map(Path, paths):
        text = path.read_text(encoding="utf-8")
        wanted = repaired(text, path.suffix == ".md")
        if wanted != text:
            path.write_text(wanted, encoding="utf-8")
            sys.stdout.write(f"repaired: {path}\n")
            changed = True
    return 1 if changed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
