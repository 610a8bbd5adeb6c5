# SPDX-License-Identifier: MIT
"""The board on paper: exact size, a ruler to check it by, and senseless boards refused."""

from __future__ import annotations

import re

import cv2
import numpy as np
import pytest

from equi_calibration.board.board import BoardSpec
from equi_calibration.board.print import PNG_PIXELS_PER_MM, RULER_MM, board_origin_mm, print_board
from equi_calibration.errors import BoardError


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    return print_board(BoardSpec(), tmp_path_factory.mktemp("board") / "board")


def test_corners_lie_on_the_page_where_the_definition_says_to_a_hundredth_of_a_millimetre(printed):
    board, (_, png) = BoardSpec(), printed
    image = cv2.imread(str(png), cv2.IMREAD_GRAYSCALE)
    found, ids, _, _ = cv2.aruco.CharucoDetector(board.opencv()).detectBoard(image)
    refined = cv2.cornerSubPix(image, found, (20, 20), (-1, -1), (3, 100, 1e-4)).reshape(-1, 2)
    # Pixel centres are whole numbers, so a place on paper is half a pixel more.
    place_mm = (refined + 0.5) / PNG_PIXELS_PER_MM
    expected_mm = board.corners_m()[ids.ravel(), :2] * 1000 + board_origin_mm(board, "A4")
    assert len(ids) == board.corner_count
    np.testing.assert_allclose(place_mm, expected_mm, atol=0.01)


def test_the_check_ruler_is_a_hundred_millimetres_long(printed):
    image = cv2.imread(str(printed[1]), cv2.IMREAD_GRAYSCALE)
    board = BoardSpec()
    x0, y0 = board_origin_mm(board, "A4")
    row = round((y0 + board.height_m * 1000 + board.margin_m * 1000 + 9.0) * PNG_PIXELS_PER_MM)
    left = round((x0 - 1) * PNG_PIXELS_PER_MM)
    line = image[row, left : left + (RULER_MM + 3) * PNG_PIXELS_PER_MM] < 128
    starts = np.flatnonzero(np.diff(line.astype(int)) == 1)
    assert len(starts) == RULER_MM + 1
    assert (starts[-1] - starts[0]) / PNG_PIXELS_PER_MM == pytest.approx(RULER_MM, abs=0.06)


def test_the_pdf_page_is_a4(printed):
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", printed[0].read_bytes())
    width_mm, height_mm = (float(value) / 72 * 25.4 for value in box.groups())
    assert (width_mm, height_mm) == pytest.approx((297.0, 210.0), abs=0.01)


def test_a_board_that_does_not_fit_on_the_page_is_refused(tmp_path):
    with pytest.raises(BoardError, match="does not fit on A4"):
        print_board(BoardSpec(columns=10), tmp_path / "board")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"square_m": 40.0}, "lengths are in metres"),
        ({"marker_m": 0.039}, "marker_m"),
        ({"columns": 2}, "too few corners"),
        ({"dictionary": "DICT_9X9"}, "unknown to OpenCV"),
        ({"columns": 12, "rows": 12}, "larger dictionary"),
        ({"margin_m": float("nan")}, "margin_m"),
    ],
)
def test_a_senseless_board_is_refused_by_name(change, message):
    with pytest.raises(BoardError, match=message):
        BoardSpec(**change)


def test_a_board_survives_being_written_and_read():
    board = BoardSpec(square_m=0.0398)
    assert BoardSpec.from_dict(board.as_dict()) == board
    with pytest.raises(BoardError, match=r"'board\.rows' is missing"):
        BoardSpec.from_dict({"columns": 6})
