# SPDX-License-Identifier: MIT
"""Files that appear whole or not at all, also when the process is killed while writing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


class NotWrittenError(OSError):
    """A file that could not be written, as on a full disk; says which, and that nothing is lost."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror)
        self._sentence = (
            f"{path} cannot be written: {error.strerror or error}; what was there before is "
            "unchanged. Make room, then continue with --resume"
        )

    def __str__(self) -> str:
        return self._sentence


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces `path` at the end of the block; an exception leaves it.

    Raises:
        NotWrittenError: the disk is full or refuses for another reason.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise NotWrittenError(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that a reader (or a crash) sees old or new content, never half of it."""
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
