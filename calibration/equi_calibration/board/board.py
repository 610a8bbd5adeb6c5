# SPDX-License-Identifier: MIT
"""The ChArUco board: its definition, and the OpenCV object made from it.

Board frame: origin in the corner of the first square, x along the columns, y along the rows, z into
the board, so a camera that looks at the print sees x to the right and y downwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from equi_calibration.errors import BoardError
from equi_core.strict_fields import FieldError, read_fields

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class BoardSpec:
    """A chessboard with ArUco markers in its white squares."""

    columns: int = 6
    """Squares along x."""
    rows: int = 4
    """Squares along y."""
    square_m: float = 0.040
    """Side of a square as measured on the print [m]."""
    marker_m: float = 0.028
    """Side of a marker [m]. Smaller than usual: the white frame around it is what lets corners be
    refined to a few hundredths of a pixel at low resolution."""
    dictionary: str = "DICT_4X4_50"
    """Name of a predefined OpenCV dictionary."""
    margin_m: float = 0.008
    """White border around the squares; detection needs some [m]."""

    def __post_init__(self) -> None:
        if self.columns < 3 or self.rows < 3:
            raise BoardError(
                f"a board of {self.columns} x {self.rows} squares has too few corners; "
                "use at least 3 x 3"
            )
        for name in ("square_m", "marker_m", "margin_m"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise BoardError(f"board {name} = {value} must be a positive length in metres")
        if self.square_m > 0.5:
            raise BoardError(
                f"board square_m = {self.square_m} is {self.square_m * 1000:.0f} mm; "
                "lengths are in metres, so 40 mm is 0.040"
            )
        if not 0.4 * self.square_m <= self.marker_m <= 0.9 * self.square_m:
            raise BoardError(
                f"marker_m = {self.marker_m} must be 0.4 .. 0.9 of square_m = {self.square_m}"
            )
        if not isinstance(getattr(cv2.aruco, self.dictionary, None), int):
            raise BoardError(
                f"dictionary '{self.dictionary}' is unknown to OpenCV; use for example DICT_4X4_50"
            )
        needed = len(self.opencv().getIds())
        available = len(_dictionary(self.dictionary).bytesList)
        if needed > available:
            raise BoardError(
                f"the board needs {needed} markers, {self.dictionary} has {available}; "
                "choose a larger dictionary"
            )

    @property
    def width_m(self) -> float:
        """Extent of the squares along x [m]."""
        return self.columns * self.square_m

    @property
    def height_m(self) -> float:
        """Extent of the squares along y [m]."""
        return self.rows * self.square_m

    @property
    def corner_count(self) -> int:
        """Number of inner chessboard corners."""
        return (self.columns - 1) * (self.rows - 1)

    @property
    def centre_m(self) -> FloatArray:
        """Centre (3,) of the squares in the board frame [m]."""
        return np.array([self.width_m / 2, self.height_m / 2, 0.0])

    def corners_m(self) -> FloatArray:
        """Inner corners (corner_count, 3) in the board frame, in the order of their ids [m]."""
        x, y = np.meshgrid(np.arange(1, self.columns), np.arange(1, self.rows))
        flat = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
        return flat * self.square_m

    def outline_m(self) -> FloatArray:
        """Corners (4, 3) of the printed plate, margin included, in the board frame [m]."""
        low, x, y = -self.margin_m, self.width_m + self.margin_m, self.height_m + self.margin_m
        return np.array([[low, low, 0.0], [x, low, 0.0], [x, y, 0.0], [low, y, 0.0]])

    def opencv(self) -> cv2.aruco.CharucoBoard:
        """The board as OpenCV knows it."""
        return cv2.aruco.CharucoBoard(
            (self.columns, self.rows), self.square_m, self.marker_m, _dictionary(self.dictionary)
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BoardSpec:
        """Read plain values; unknown or missing keys and wrong types are refused by name."""
        try:
            return read_fields(cls, values, "board")
        except FieldError as error:
            raise BoardError(f"board definition: {error}") from error


def default_tcp_from_board(board: BoardSpec) -> FloatArray:
    """(4, 4) of a plate that the fingers hold by its upper edge, print towards -x of the TCP.

    The fingers close along the TCP's x axis on the plate's margin; the rows run out along z.
    """
    pose = np.eye(4)
    pose[:3, :3] = [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    pose[:3, 3] = [0.002, -board.width_m / 2, 0.020]
    return pose


def _dictionary(name: str) -> cv2.aruco.Dictionary:
    return cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, name))
