# SPDX-License-Identifier: MIT
"""Banners across the page: fault with its acknowledgement, missing evidence, shadow mode."""

from __future__ import annotations

from nicegui import ui

from equi_console.desk import Action, Desk
from equi_console.desk_state import SafetyView


class Alarms:
    """One banner each; none while all is well."""

    def __init__(self, desk: Desk, browser: str, column: ui.column) -> None:
        self._desk, self._browser, self._column = desk, browser, column
        self._shown: object = None
        self._fault_words: ui.label | None = None

    def refresh(self) -> None:
        """Draw the banners anew when others are needed.

        What only changes its words is changed in place: somebody may be typing there.
        """
        state, safety = self._desk.state, self._desk.state.safety
        silent = state.driver_word == "SILENT"
        shown = (silent, *_needed(safety))
        if shown == self._shown:
            if safety is not None and self._fault_words is not None:
                self._fault_words.text = _words_of(safety)
            return
        self._shown, self._fault_words = shown, None
        self._column.clear()
        with self._column:
            if silent:
                self._banner("the driver is not heard", "bg-gray-300", "silent")
            if safety is None:
                return
            if safety.i_know:
                self._banner(safety.i_know, "bg-red-600 text-white font-bold", "i-know")
            if safety.is_shadow:
                words = "SHADOW: the driver only listens; nothing can move"
                self._banner(words, "bg-blue-200", "shadow")
            if safety.fault:
                self._fault()

    def _banner(self, text: str, classes: str, test_id: str) -> None:
        with ui.row().classes(f"w-full p-2 {classes}"):
            ui.label(text).props(f'data-testid="{test_id}"')

    def _fault(self) -> None:
        safety = self._desk.state.safety
        if safety is None:
            return
        with ui.row().classes("w-full p-2 bg-red-200 items-center"):
            with ui.column().classes("gap-0 grow"):
                self._fault_words = ui.label(_words_of(safety)).classes("font-bold")
                self._fault_words.props('data-testid="fault"')
                ui.label(f"What to do: {safety.operator_action}")
            typed = ui.input(f"type {safety.fault_name}").props('dense data-testid="acknowledge"')

            def reset() -> None:
                acknowledged = str(typed.value or "")
                self._desk.press(
                    self._browser,
                    Action.RESET_FAULT,
                    acknowledged=acknowledged,
                    fault_count=safety.fault_count,
                )

            ui.button("reset fault", on_click=reset, color="red").props(
                f'data-testid="reset" {asks("reset fault")}'
            )


def _needed(safety: SafetyView | None) -> tuple[object, ...]:
    """What decides which banners there are, and for which fault."""
    if safety is None:
        return ()
    fault = (safety.fault, safety.fault_count, safety.operator_action)
    return (safety.i_know, safety.is_shadow, *fault)


def _words_of(safety: SafetyView) -> str:
    return f"FAULT {safety.fault_name}: {'; '.join(safety.causes)}"


def asks(words: str) -> str:
    """Attribute that makes an element a button whose press is answered at once."""
    return f'data-press="{words}"'
