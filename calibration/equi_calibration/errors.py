# SPDX-License-Identifier: MIT
"""What can be wrong with a calibration, as types: each names the fault and what to do about it."""

from __future__ import annotations


class CalibrationError(ValueError):
    """Base of all errors of this package; the message names the thing, the value and the remedy."""


class BoardError(CalibrationError):
    """A board that cannot be printed or detected."""


class DatasetError(CalibrationError):
    """A dataset folder that is incomplete, damaged or edited."""


class ForeignImagesError(DatasetError):
    """Images that were not taken by the camera they are filed under."""


class TooFewPosesError(CalibrationError):
    """Not enough usable views to solve for the cameras."""


class ParallelAxesError(CalibrationError):
    """The tool rotated about one axis only, so part of the answer is not determined."""


class SolveError(CalibrationError):
    """The refinement did not reach a meaningful minimum."""


class SceneError(CalibrationError):
    """Depth clouds in which the table or the block cannot be found."""


class CellFileError(CalibrationError):
    """The cell's calibration settings are missing or senseless."""


class CollectError(CalibrationError):
    """The arm or a camera did not do what collecting needs."""


class LatencyError(CalibrationError):
    """Signals from which no delay can be estimated."""
