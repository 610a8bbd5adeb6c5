# SPDX-License-Identifier: MIT
"""State: nodes, safety, cameras, calibration. Protocol: the table of episodes with intervals."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from equi_console.desk import Desk
from equi_console.desk_state import NODES
from equi_console.episode_worker import EpisodeWorker


class StatePanel:
    """One line each."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        with ui.card().classes("w-full"):
            ui.label("State").classes("text-lg font-bold")
            self._lines = {
                name: ui.label().classes("text-sm").props(f'data-testid="state-{name}"')
                for name in (
                    *NODES,
                    "driver",
                    "speed",
                    "cameras",
                    "perception",
                    "calibration",
                    "scene",
                )
            }
            self._lines["scene"].classes("font-bold")

    def refresh(self) -> None:
        """Words for everything."""
        state, lines = self._desk.state, self._lines
        for name in NODES:
            lines[name].text = f"{name}: {state.lifecycle.get(name, 'unknown')}"
        lines["driver"].text = f"driver: {state.driver_word}"
        safety, perception = state.safety, state.perception
        if safety is not None:
            lines["speed"].text = (
                f"speed slider {100 * safety.speed_slider:.0f} %, scaling "
                f"{100 * safety.speed_scaling:.0f} %"
            )
        lines["cameras"].text = f"cameras: {state.camera_words}"
        if perception is None:
            words = "not heard; is depth_fusion up?"
        else:
            words = "ready" if perception.ready else "; ".join(perception.reasons) or "waiting"
        lines["perception"].text = f"perception: {words}"
        placement = state.placement
        scene = lines["scene"]
        scene.text = "" if placement is None else str(placement)
        ready = placement is not None and placement.ready
        scene.classes(
            add="text-green-700" if ready else "text-red-700",
            remove="text-red-700" if ready else "text-green-700",
        )
        lines["calibration"].text = f"calibration: {state.calibration}"


class ProtocolPanel:
    """Grows with every episode."""

    def __init__(self, worker: EpisodeWorker) -> None:
        self._worker = worker
        self._shown = -1
        with ui.card().classes("w-full"):
            ui.label("Protocol").classes("text-lg font-bold")
            with ui.row().classes("items-center"):
                self._rate = ui.label().props('data-testid="rate"')
                ui.link("report", "/report", new_tab=True).props('data-testid="report"')
            self._rows = ui.column().classes("w-full gap-1")

    def refresh(self) -> None:
        """Add what is new; the newest first."""
        results = self._worker.store.results
        if len(results) == self._shown:
            return
        self._shown = len(results)
        rate, wanted = self._worker.rate, self._worker.protocol.episodes
        low, high = rate.interval
        self._rate.text = (
            f"{rate.successes} of {rate.episodes} succeeded (95 %: {low:.2f} to {high:.2f}); "
            f"{wanted} wanted"
        )
        self._rows.clear()
        with self._rows:
            for index in range(len(results) - 1, -1, -1):
                self._row(index, results[index])

    def _row(self, index: int, result: Any) -> None:
        colour = "text-green-700" if result.success else "text-red-700"
        with ui.row().classes("items-center w-full no-wrap").props('data-testid="episode"'):
            ui.label(f"{index + 1}").classes("w-8")
            void = " (void)" if result.invalid else ""
            words = f"{result.outcome}{void}, {result.steps} steps, {result.duration_s:.0f} s"
            ui.label(words).classes(f"w-64 {colour}")
            ui.label(f"{result.first_try} first, seed {result.seed}").classes("w-64 text-sm")
            if self._worker.record_of(result) is not None:
                ui.link("record", f"/record/{index}")
                ui.image(f"/filmstrip/{index}").classes("w-96").props("no-spinner")
