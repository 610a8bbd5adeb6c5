# SPDX-License-Identifier: MIT
"""What the policy believes about the things it sees: the probe, asked at every raised thing.

On a robot nobody knows where the objects are; they are found in the observation itself, as
connected raised regions that are not the fingers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from equi_core.belief.probe import PARTS, BeliefProbe
from equi_core.contract import ImageSpec
from equi_core.observation.image import finger_mask, pixel_centres_m
from equi_policy.deployed_policy import PolicyState

_LEAST_HEIGHT_M = 0.02
_LEAST_PIXELS = 12
_MOST_OBJECTS = 4


@dataclass(frozen=True)
class ObjectBelief:
    """One thing on the table, and how likely the policy takes it for the movable one."""

    place_m: tuple[float, float]
    """Its middle relative to the gripper, along the axes of the task frame [m]."""
    probability: float
    """Over all things that are seen; they sum to 1."""


@dataclass(frozen=True)
class Glance:
    """What is needed of an observation to find things in it."""

    image: NDArray[np.float32]
    """(2, S, S) as the policy sees it."""
    tcp_z_m: float
    """Height of the gripper above the table [m]."""
    yaw_rad: float
    opening: float


def state_vector(state: PolicyState, parts: tuple[str, ...]) -> NDArray[np.float32]:
    """The parts of the LSTM state that a probe reads, in its order."""
    known = dict(zip(PARTS, (state.hidden, state.cell), strict=True))
    return np.concatenate([known[part].numpy() for part in parts])


def objects_in(glance: Glance, spec: ImageSpec) -> list[tuple[float, float]]:
    """Middles (x, y) of the things in view, relative to the gripper [m]; the largest first."""
    height_m = glance.tcp_z_m + spec.camera_above_tcp_m - glance.image[0]
    raised = height_m > _LEAST_HEIGHT_M
    raised &= ~ndimage.binary_dilation(finger_mask(glance.yaw_rad, glance.opening, spec))
    labels, count = ndimage.label(raised)
    sizes = ndimage.sum_labels(raised, labels, range(1, count + 1))
    largest = sorted(range(1, count + 1), key=lambda label: -sizes[label - 1])[:_MOST_OBJECTS]
    centres = pixel_centres_m(spec)
    found = []
    for label in largest:
        rows, columns = np.nonzero(labels == label)
        if len(rows) >= _LEAST_PIXELS:
            found.append((float(centres[rows].mean()), float(centres[columns].mean())))
    return found


def beliefs(
    probe: BeliefProbe, state: PolicyState, glance: Glance, spec: ImageSpec
) -> list[ObjectBelief]:
    """What the policy believes about each thing in view; empty with less than two of them."""
    places = objects_in(glance, spec)
    if len(places) < 2:
        return []
    shares = probe.belief(state_vector(state, probe.parts), places)
    return [ObjectBelief(place, float(share)) for place, share in zip(places, shares, strict=True)]
