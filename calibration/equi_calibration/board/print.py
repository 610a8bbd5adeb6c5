# SPDX-License-Identifier: MIT
"""Board to paper: a PDF (vector) and a PNG at exact size, with a ruler to check the print by."""

from __future__ import annotations

from pathlib import Path

import cv2
import matplotlib
import numpy as np

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from equi_calibration.board.board import BoardSpec
from equi_calibration.errors import BoardError

PAGES_MM = {"A4": (297.0, 210.0), "A3": (420.0, 297.0), "letter": (279.4, 215.9)}
"""Page sizes in landscape, width and height [mm]."""
RULER_MM = 100
_MM_PER_INCH = 25.4
PNG_PIXELS_PER_MM = 20
"""508 dots per inch: squares and ruler end on whole pixels."""
_RULER_SPACE_MM = 26.0
_PAGE_EDGE_MM = 5.0


def print_board(board: BoardSpec, path: Path, page: str = "A4") -> tuple[Path, Path]:
    """Write `path`.pdf and `path`.png; returns both paths.

    Raises:
        BoardError: the board with its margin and ruler does not fit on the page.
    """
    if page not in PAGES_MM:
        raise BoardError(f"page '{page}' is unknown; choose one of {', '.join(PAGES_MM)}")
    figure = draw_page(board, page)
    pdf, png = path.with_suffix(".pdf"), path.with_suffix(".png")
    pdf.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(pdf)
    figure.savefig(png, dpi=PNG_PIXELS_PER_MM * _MM_PER_INCH)
    return pdf, png


def board_origin_mm(board: BoardSpec, page: str) -> tuple[float, float]:
    """Where the board's origin lies on the page, from its top left corner [mm]."""
    width_mm, _ = PAGES_MM[page]
    return (width_mm - board.width_m * 1000) / 2, _PAGE_EDGE_MM + board.margin_m * 1000


def draw_page(board: BoardSpec, page: str = "A4") -> Figure:
    """The page as a matplotlib figure of its true size."""
    width_mm, height_mm = PAGES_MM[page]
    board_w, board_h = board.width_m * 1000, board.height_m * 1000
    margin = board.margin_m * 1000
    if board_w + 2 * margin > width_mm or (
        board_h + 2 * margin + _RULER_SPACE_MM + _PAGE_EDGE_MM > height_mm
    ):
        raise BoardError(
            f"board of {board_w:.0f} x {board_h:.0f} mm with its margin and ruler does not fit on "
            f"{page} ({width_mm:.0f} x {height_mm:.0f} mm); use a larger page or smaller squares"
        )
    figure = Figure(figsize=(width_mm / _MM_PER_INCH, height_mm / _MM_PER_INCH))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, width_mm)
    axes.set_ylim(height_mm, 0)
    axes.axis("off")
    x0, y0 = board_origin_mm(board, page)
    axes.add_collection(
        PatchCollection(
            [Rectangle((x0 + x, y0 + y), w, h) for x, y, w, h in black_rectangles_mm(board)],
            facecolor="black",
            edgecolor="none",
            antialiased=True,
        )
    )
    _cut_line(axes, x0 - margin, y0 - margin, board_w + 2 * margin, board_h + 2 * margin)
    _ruler(axes, board, x0, y0 + board_h + margin + 8.0)
    return figure


def black_rectangles_mm(board: BoardSpec) -> list[tuple[float, float, float, float]]:
    """Black areas as x, y, width, height in the board frame [mm], squares first, then markers."""
    opencv_board = board.opencv()
    square = board.square_m * 1000
    rectangles = []
    dictionary = opencv_board.getDictionary()
    bits = dictionary.markerSize + 2
    cell = board.marker_m * 1000 / bits
    occupied = set()
    for marker_id, corners in zip(
        np.ravel(opencv_board.getIds()), np.array(opencv_board.getObjPoints()), strict=True
    ):
        left, top = corners[0, 0] * 1000, corners[0, 1] * 1000
        occupied.add((int(left // square), int(top // square)))
        # One pixel per cell, so the image is the bit pattern itself.
        pattern = cv2.aruco.generateImageMarker(dictionary, int(marker_id), bits)
        for row in range(bits):
            column = 0
            while column < bits:
                run = column
                while run < bits and pattern[row, run] == 0:
                    run += 1
                if run > column:
                    rectangles.append(
                        (left + column * cell, top + row * cell, (run - column) * cell, cell)
                    )
                column = max(run, column + 1)
    squares = [
        (column * square, row * square, square, square)
        for row in range(board.rows)
        for column in range(board.columns)
        if (column, row) not in occupied
    ]
    return squares + rectangles


def _cut_line(axes: Axes, x: float, y: float, width: float, height: float) -> None:
    axes.add_patch(
        Rectangle((x, y), width, height, fill=False, edgecolor="0.7", linewidth=0.3, linestyle=":")
    )


def _ruler(axes: Axes, board: BoardSpec, x: float, y: float) -> None:
    for millimetre in range(RULER_MM + 1):
        length = 5.0 if millimetre % 10 == 0 else 3.5 if millimetre % 5 == 0 else 2.0
        # A bar from tick to tick would hide its own width; ticks are centred on their millimetre.
        axes.add_patch(
            Rectangle((x + millimetre - 0.075, y), 0.15, length, facecolor="black", edgecolor=None)
        )
        if millimetre % 10 == 0:
            axes.text(x + millimetre, y + 8.0, str(millimetre), fontsize=6, ha="center")
    text = (
        f"ChArUco {board.columns} x {board.rows}, square {board.square_m * 1000:.2f} mm, "
        f"marker {board.marker_m * 1000:.2f} mm, {board.dictionary}\n"
        f"Print at 100 % (no 'fit to page'). The ruler must measure {RULER_MM}.0 mm;\n"
        "otherwise measure the squares and pass the true size with --square-mm. "
        "Glue to a flat, stiff plate."
    )
    axes.text(x + RULER_MM + 6.0, y + 7.5, text, fontsize=5.5, va="bottom", linespacing=1.5)
