# SPDX-License-Identifier: MIT
"""The report of an evaluation: one HTML file, everything inside, no network needed."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import cv2
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from equi_core.html_report import data_uri, render_report
from equi_core.statistics import SuccessRate
from equi_evaluation.episode_video import filmstrip, load_frames
from equi_evaluation.protocol import FirstTry, Protocol
from equi_evaluation.recording import RecordingError
from equi_evaluation.results import EpisodeResult, load_results, load_settings

_SUCCESS_COLOUR, _FAILURE_COLOUR, _RATE_COLOUR = "#1f7a4d", "#b3261e", "#2b5c8a"
_OPEN_EPISODES = 3
# Stages as the nodes name them in their diagnostics, in words.
_STAGES = {
    "exposure_to_observation": "exposure of the cameras to observation",
    "observation_to_command": "observation to command",
    "command_to_motion": "command to motion of the arm",
    "motion": "motion, gripper included",
    "step": "whole step",
    "inference": "inference of the network",
    "fusion": "fusion of the clouds",
}


def write_report(folder: Path, filmstrips: int = 12) -> Path:
    """Write `report.html` into an evaluation folder and return its path."""
    settings = load_settings(folder)
    results = load_results(folder)
    protocol = Protocol(
        episodes=int(settings["episodes"]),
        seed=int(settings["seed"]),
        balanced=bool(settings["balanced"]),
    )
    counted = protocol.counted(results)
    rows = success_rows(counted)
    steps = [result.steps for result in counted if result.success]
    failures = Counter((result.outcome, result.reason) for result in counted if not result.success)
    page = render_report(
        resources.files(__package__).joinpath("report.html.j2").read_text(encoding="utf-8"),
        settings=settings,
        counted=counted,
        total=rows.get("all episodes", SuccessRate(0, 0)),
        success_rows=rows,
        mean_steps=sum(steps) / len(steps) if steps else None,
        surplus=sum(not result.invalid for result in results) - len(counted),
        invalid=sum(result.invalid for result in results),
        failures=failures.most_common(),
        latencies_ms={
            _in_words(stage): quantiles
            for stage, quantiles in next(
                (result.latencies_ms for result in reversed(results) if result.latencies_ms), {}
            ).items()
        },
        written=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        plot=_plot(counted),
        episodes=_episodes(folder, results, counted, filmstrips),
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def success_rows(counted: Sequence[EpisodeResult]) -> dict[str, SuccessRate]:
    """Success overall and by which object was tried first."""
    groups = {
        "all episodes": list(counted),
        "movable object tried first": _tried(counted, FirstTry.MOVABLE),
        "immovable object tried first": _tried(counted, FirstTry.IMMOVABLE),
        "no object reached": _tried(counted, FirstTry.NONE),
    }
    return {
        name: SuccessRate(sum(result.success for result in group), len(group))
        for name, group in groups.items()
        if group
    }


def _tried(results: Sequence[EpisodeResult], kind: FirstTry) -> list[EpisodeResult]:
    return [result for result in results if result.first_try == kind.value]


def _plot(counted: Sequence[EpisodeResult]) -> str:
    """Histogram of steps and running success rate as an image address; empty without episodes."""
    if not counted:
        return ""
    figure = Figure(figsize=(10, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    for success, colour in ((True, _SUCCESS_COLOUR), (False, _FAILURE_COLOUR)):
        steps = [result.steps for result in counted if result.success is success]
        label = "success" if success else "failure"
        left.hist(steps, bins=range(0, 56, 2), color=colour, alpha=0.8, label=label)
    left.set(xlabel="steps", ylabel="episodes", title="Episode length")
    left.yaxis.set_major_locator(MaxNLocator(integer=True))
    left.legend(frameon=False)
    numbers = range(1, len(counted) + 1)
    rates = [SuccessRate(sum(r.success for r in counted[:n]), n) for n in numbers]
    lows, highs = zip(*(rate.interval for rate in rates), strict=True)
    right.plot(numbers, [rate.rate for rate in rates], color=_RATE_COLOUR)
    right.fill_between(numbers, lows, highs, color=_RATE_COLOUR, alpha=0.15)
    right.set(xlabel="episodes", ylabel="success rate", ylim=(0, 1.02), title="Running rate, 95 %")
    right.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    return data_uri(buffer.getvalue(), "image/svg+xml")


def _episodes(
    folder: Path,
    results: Sequence[EpisodeResult],
    counted: Sequence[EpisodeResult],
    filmstrips: int,
) -> list[dict[str, object]]:
    """Every episode for the template, a few of them with a filmstrip."""
    inside = {result.episode_id for result in counted}
    # Failures first: they are what one wants to see.
    shown = {
        result.episode_id
        for result in sorted(results, key=lambda item: item.success)[:filmstrips]
        if result.record
    }
    return [
        {
            "result": result,
            "counted": result.episode_id in inside,
            "open": result.episode_id in shown and number < _OPEN_EPISODES,
            "filmstrip": _strip(folder / result.record) if result.episode_id in shown else "",
            "video": _beside(folder, f"{result.record}.mp4"),
            "recording": _beside(folder, result.record),
        }
        for number, result in enumerate(results)
    ]


def _in_words(stage: str) -> str:
    """`policy: step` -> `policy: whole step`."""
    node, colon, name = stage.rpartition(": ")
    return f"{node}{colon}{_STAGES.get(name, name.replace('_', ' '))}"


def _beside(folder: Path, name: str) -> str:
    """A file or folder beside the report as the address of a link; empty if it is not there."""
    return quote(name) if name.strip(".") and (folder / name).exists() else ""


def _strip(recording: Path) -> str:
    """The filmstrip of a recording as an image address; empty if there is none."""
    try:
        strip = filmstrip(load_frames(recording))
    except RecordingError:
        return ""
    if strip is None:
        return ""
    coded, data = cv2.imencode(".jpg", strip, [cv2.IMWRITE_JPEG_QUALITY, 80])
    return data_uri(data.tobytes(), "image/jpeg") if coded else ""
