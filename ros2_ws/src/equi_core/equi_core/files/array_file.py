# SPDX-License-Identifier: MIT
"""Arrays of an .npz file, with one error for whatever can be wrong with the file."""

from __future__ import annotations

import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What zipfile, zlib and numpy raise on damaged archives, headers and data."""


class ArrayFileError(ValueError):
    """A file that holds no arrays, or not those that are wanted; says why."""


def read_arrays(path: Path, names: Iterable[str] | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of a file by name; nothing in it is unpickled.

    Args:
        path: .npz file.
        names: the wanted ones, each of which must be there; None: all.

    Raises:
        ArrayFileError: the file is damaged, or lacks an array.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            if not hasattr(file, "files"):
                raise ArrayFileError("holds a single array, not named ones")
            wanted = list(file.files) if names is None else list(names)
            missing = [name for name in wanted if name not in file.files]
            if missing:
                raise ArrayFileError(f"lacks the array '{missing[0]}'")
            return {name: file[name] for name in wanted}
    except ArrayFileError:
        raise
    except _DAMAGE as error:
        reason = " ".join(str(error).split())[:200]
        raise ArrayFileError(f"is damaged ({type(error).__name__}: {reason})") from error
