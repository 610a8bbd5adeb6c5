"""The report of an evaluation: one HTML file, everything inside, no network needed."""

from __future__ import annotations

import base64
import html
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from equi_core.statistics import SuccessRate
from equi_evaluation.pictures import filmstrip, load_frames
from equi_evaluation.protocol import FirstTry, Protocol
from equi_evaluation.recording import RecordError
from equi_evaluation.results import EpisodeResult, load_results, load_settings

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:1000px;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;margin:.6rem 0}
td,th{padding:.25rem .7rem;border-bottom:1px solid #ddd;text-align:left}th{font-weight:600}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}img{max-width:100%}
.big{font-size:1.9rem;font-weight:650}.ok{color:#2a7a4b}.no{color:#b23b3b}.soft{color:#777}
details{margin:.3rem 0}summary{cursor:pointer}
"""


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
    parts = [
        f"<h1>{html.escape(str(settings['task']))}: evaluation of {len(counted)} episodes</h1>",
        _headline(settings, counted, results),
        _failures(counted),
        _latency(results),
        _plots(counted),
        _episodes(folder, results, counted, filmstrips),
        _settings(settings),
    ]
    page = (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>Evaluation</title>"
        f"<style>{_STYLE}</style><body>{''.join(parts)}</body></html>"
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


def _headline(
    settings: Mapping[str, Any], counted: Sequence[EpisodeResult], results: Sequence[EpisodeResult]
) -> str:
    rows = success_rows(counted)
    total = rows.get("all episodes", SuccessRate(0, 0))
    low, high = total.interval
    lines = "".join(
        f"<tr><td>{name}</td><td class=n>{rate.successes} / {rate.episodes}</td>"
        f"<td class=n>{rate.rate:.2f}</td><td class=n>{rate.interval[0]:.2f} to "
        f"{rate.interval[1]:.2f}</td></tr>"
        for name, rate in rows.items()
    )
    surplus = len([r for r in results if not r.invalid]) - len(counted)
    invalid = len([r for r in results if r.invalid])
    driver = html.escape(str(settings.get("driven_by", "policy")))
    return (
        f"<p><span class=big>{total.rate:.0%}</span> success, 95 % interval {low:.0%} to "
        f"{high:.0%}; driven by the <b>{driver}</b> in cell "
        f"<b>{html.escape(str(settings.get('cell', '')))}</b>.</p>"
        "<table><tr><th>episodes</th><th class=n>successes</th><th class=n>rate</th>"
        f"<th class=n>95 % (Wilson)</th></tr>{lines}</table>"
        f"<p class=soft>{surplus} further episodes were recorded but not counted (their half was "
        f"full); {invalid} were invalid.</p>"
    )


def _failures(counted: Sequence[EpisodeResult]) -> str:
    failed = [result for result in counted if not result.success]
    if not failed:
        return "<h2>Failures</h2><p>None.</p>"
    counts = Counter((result.outcome, result.reason) for result in failed)
    rows = "".join(
        f"<tr><td>{html.escape(outcome)}</td><td>{html.escape(reason)}</td>"
        f"<td class=n>{count}</td></tr>"
        for (outcome, reason), count in counts.most_common()
    )
    return (
        "<h2>Failures</h2><table><tr><th>outcome</th><th>reason</th><th class=n>episodes</th></tr>"
        f"{rows}</table>"
    )


def _latency(results: Sequence[EpisodeResult]) -> str:
    newest = next((result.latencies_ms for result in reversed(results) if result.latencies_ms), {})
    if not newest:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(stage)}</td><td class=n>{values.get('p50', float('nan')):.1f}</td>"
        f"<td class=n>{values.get('p99', float('nan')):.1f}</td></tr>"
        for stage, values in newest.items()
    )
    return (
        "<h2>Latency budget</h2><table><tr><th>stage</th><th class=n>p50 [ms]</th>"
        f"<th class=n>p99 [ms]</th></tr>{rows}</table>"
    )


def _plots(counted: Sequence[EpisodeResult]) -> str:
    if not counted:
        return ""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8))
    for success, colour in ((True, "#2a7a4b"), (False, "#b23b3b")):
        steps = [result.steps for result in counted if result.success is success]
        left.hist(
            steps, bins=range(0, 56, 2), color=colour, alpha=0.8, label="ok" if success else "not"
        )
    left.set(xlabel="steps", ylabel="episodes", title="Length of the episodes")
    left.legend(frameon=False)
    rate = []
    for index in range(1, len(counted) + 1):
        part = SuccessRate(sum(r.success for r in counted[:index]), index)
        rate.append((index, part.rate, *part.interval))
    xs = [row[0] for row in rate]
    right.plot(xs, [row[1] for row in rate], color="#2b5c8a")
    right.fill_between(
        xs, [row[2] for row in rate], [row[3] for row in rate], color="#2b5c8a", alpha=0.15
    )
    right.set(xlabel="episodes", ylabel="success", ylim=(0, 1.02), title="Running rate, 95 %")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    plt.close(figure)
    return f"<h2>Episodes at a glance</h2>{buffer.getvalue().decode().split('?>', 1)[-1]}"


def _episodes(
    folder: Path,
    results: Sequence[EpisodeResult],
    counted: Sequence[EpisodeResult],
    filmstrips: int,
) -> str:
    inside = {result.episode_id for result in counted}
    # Failures first: they are what one wants to look at.
    shown = {
        result.episode_id
        for result in sorted(results, key=lambda item: item.success)[:filmstrips]
        if result.record
    }
    blocks: list[str] = []
    for result in results:
        mark = "<span class=ok>success</span>" if result.success else "<span class=no>no</span>"
        count = "" if result.episode_id in inside else " <span class=soft>(not counted)</span>"
        body = (
            f"<p>{html.escape(result.outcome)}: {html.escape(result.reason)}; "
            f"label by {html.escape(result.label_source)}; {result.duration_s:.1f} s; record "
            f"{html.escape(result.record or 'none')}</p>"
        )
        if result.episode_id in shown:
            body += _strip(folder / result.record)
        opened = " open" if result.episode_id in shown and len(blocks) < 3 else ""
        blocks.append(
            f"<details{opened}><summary>{html.escape(result.episode_id)}, seed {result.seed}: "
            f"{mark} after {result.steps} steps, {html.escape(result.first_try)} first{count}"
            f"</summary>{body}</details>"
        )
    return "<h2>Every episode</h2>" + "".join(blocks)


def _strip(record: Path) -> str:
    try:
        picture = filmstrip(load_frames(record))
    except RecordError:
        return ""
    if picture is None:
        return ""
    coded, data = cv2.imencode(".jpg", picture, [cv2.IMWRITE_JPEG_QUALITY, 80])
    if not coded:
        return ""
    text = base64.b64encode(data.tobytes()).decode()
    return f"<img alt='filmstrip' src='data:image/jpeg;base64,{text}'>"


def _settings(settings: Mapping[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{html.escape(str(name))}</td><td>{html.escape(str(value))}</td></tr>"
        for name, value in settings.items()
    )
    return f"<h2>Settings</h2><table>{rows}</table>"
