# SPDX-License-Identifier: MIT
"""The page: Live, State, Act and Protocol. Only shows and presses; decisions are the desk's.

The desk's answer comes from the cell's computer, over a network, and may be late when that computer
is busy. So the page does not wait for it: a script in the browser writes below the buttons, in the
same moment as the press, that it was taken, and takes that back when the answer is there. If none
comes, the line says so: a press that was lost must not look like one that works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nicegui import app, ui

from equi_console.desk import LABELS, URGENT, Action, Desk
from equi_console.episode_worker import EpisodeWorker
from equi_console.seat import SeatTaken
from equi_console.web.page_alarms import Alarms, asks
from equi_console.web.page_live import LivePanel
from equi_console.web.page_state import ProtocolPanel, StatePanel
from equi_console.web.server_options import ServerOptions

if TYPE_CHECKING:
    from equi_console.web.server import Pictures

_REFRESH_S = 0.1
_SLOW_S = 1.0
_NO_EMERGENCY_STOP = (
    "This page is NO emergency stop. A press here may come late or not at all: keep a hand on the "
    "red button."
)
_KEYS = {"s": "success", "f": "failure", "v": "void"}
_COLOURS = {True: "text-green-700", False: "text-red-700", None: "text-gray-500"}
_NO_ANSWER_S = 2.0
"""After so long without an answer the page warns that the press may be lost."""

_PRESS_SCRIPT = """
(() => {
  const line = () => document.querySelector('[data-testid="pressed"]');
  let overdue = 0, watched = null;
  const answered = () => { clearTimeout(overdue); if (line()) line().textContent = ''; };
  const watch = () => {
    const answers = document.querySelector('[data-testid="answers"]');
    if (!answers || answers === watched) return;
    watched = answers;
    new MutationObserver(answered).observe(answers, {childList: true, subtree: true});
  };
  const pressed = words => {
    watch();
    if (!line()) return;
    clearTimeout(overdue);
    line().textContent = words + ': pressed, asking the cell ...';
    overdue = setTimeout(() => {
      line().textContent = words + ': NO ANSWER from the console; the press may not have arrived';
    }, NO_ANSWER_MS);
  };
  document.addEventListener('click', event => {
    const button = event.target.closest('[data-press]');
    if (button) pressed(button.dataset.press);
  }, true);
  document.addEventListener('keydown', event => {
    const typing = event.target.closest('input, textarea, select, button');
    const label = KEYS[event.key];
    if (label && !typing && !event.repeat) pressed('label ' + label);
  }, true);
})();
"""


def build_page(
    desk: Desk, worker: EpisodeWorker, pictures: Pictures, options: ServerOptions
) -> None:
    """Register the page at /."""

    @ui.page("/")
    def show() -> None:
        browser = str(app.storage.browser["id"])
        ui.page_title(f"{options.cell}: {options.task}")
        ui.colors(primary="#2b5c8a")
        _answer_presses_at_once(_KEYS)
        with ui.row().classes("w-full bg-amber-200 p-2 items-center"):
            ui.icon("warning")
            ui.label(_NO_EMERGENCY_STOP).props('data-testid="banner"')
        alarms = ui.column().classes("w-full gap-1")
        with ui.row().classes("w-full no-wrap items-start"):
            with ui.column().classes("grow"):
                live = LivePanel(desk, pictures)
            with ui.column().classes("w-96"):
                act = _ActPanel(desk, worker, browser)
                state = StatePanel(desk)
        protocol = ProtocolPanel(worker)
        alarm = Alarms(desk, browser, alarms)

        def refresh() -> None:
            live.refresh()
            act.refresh()
            alarm.refresh()

        def refresh_slowly() -> None:
            live.refresh_slowly()
            state.refresh()
            protocol.refresh()

        refresh()
        refresh_slowly()
        ui.timer(_REFRESH_S, refresh)
        ui.timer(_SLOW_S, refresh_slowly)


class _ActPanel:
    """Seat, buttons, labels and answers."""

    def __init__(self, desk: Desk, worker: EpisodeWorker, browser: str) -> None:
        self._desk, self._worker, self._browser = desk, worker, browser
        self._shown: tuple[object, ...] = ()
        with ui.card().classes("w-full"):
            ui.label("Act").classes("text-lg font-bold")
            with ui.row().classes("items-end"):
                self._name = ui.input("your name").props('dense data-testid="name"')
                self._take = ui.button("take the desk", on_click=self._sit)
                self._take.props(f'dense data-testid="take" {asks("take the desk")}')
                self._over = ui.button("take over", on_click=self._ask_take_over, color="orange")
                self._over.props('dense data-testid="take-over"')
            self._seat = ui.label().props('data-testid="seat"').classes("text-sm")
            with ui.row():
                for action in (Action.PAUSE, Action.STOP):
                    colour = "red" if action is Action.STOP else "orange"
                    self._button(action, colour)
            with ui.row():
                for action in (Action.ACTIVATE, Action.RESUME, Action.GO_HOME):
                    self._button(action, "primary")
            with ui.row().classes("items-end"):
                ui.button("run one", on_click=lambda: self._press(Action.RUN, episodes=1)).props(
                    f'data-testid="run" {asks("run one")}'
                )
                ui.button("run", on_click=self._run_many).props(
                    f'data-testid="run-many" {asks("run")}'
                )
                self._count = ui.number("episodes", value=5, min=1, precision=0).classes("w-20")
                self._count.props('dense data-testid="count"')
            with ui.row().classes("items-center"):
                ui.label("label")
                for label in LABELS:
                    ui.button(
                        f"{label} ({label[0]})",
                        on_click=lambda label=label: self._press(Action.LABEL, label=label),
                    ).props(f'dense outline data-testid="label-{label}" {asks("label " + label)}')
            self._running = ui.label().props('data-testid="running"').classes("text-sm font-bold")
            _pressed_line()
            self._answers = (
                ui.column().classes("w-full gap-0 text-sm").props('data-testid="answers"')
            )
        with ui.dialog() as self._dialog, ui.card():
            self._question = ui.label()
            with ui.row():
                ui.button("yes, I take over", on_click=self._take_over, color="orange").props(
                    f'data-testid="confirm-take-over" {asks("take over")}'
                )
                ui.button("no", on_click=self._dialog.close)
        ui.keyboard(on_key=self._on_key)

    def refresh(self) -> None:
        """Show who has the desk, what runs, and the newest answers."""
        desk = self._desk
        sitting, mine = desk.seat.sitting, desk.seat.has(self._browser)
        shown = (sitting, desk.running, desk.awaiting_label, desk.answers)
        if shown == self._shown:
            return
        self._shown = shown
        who = "nobody has the desk" if sitting is None else f"{sitting.name} has the desk"
        self._seat.text = "you have the desk" if mine else who
        self._take.set_visibility(sitting is None)
        self._over.set_visibility(sitting is not None and not mine)
        waiting = f"{desk.awaiting_label} waits for its label" if desk.awaiting_label else ""
        self._running.text = waiting or desk.running or "no episode is running"
        self._answers.clear()
        with self._answers:
            for answer in desk.answers[:8]:
                line = f"{answer.time} {answer.who}: {answer.action}: {answer.text}"
                ui.label(line).classes(_COLOURS[answer.ok]).props('data-testid="answer"')

    def _button(self, action: Action, colour: str) -> None:
        hint = "anybody may press this" if action in URGENT else "needs the desk"
        button = ui.button(action.value, on_click=lambda: self._press(action), color=colour)
        name = action.value.replace(" ", "-")
        button.props(f'data-testid="{name}" {asks(action.value)}').tooltip(hint)

    def _press(self, action: Action, **arguments: object) -> None:
        self._desk.press(self._browser, action, **arguments)
        self.refresh()  # visible at once, whatever becomes of it

    def _run_many(self) -> None:
        self._press(Action.RUN, episodes=int(self._count.value or 0))

    def _sit(self) -> None:
        self._seat_request(take_over=False)

    def _ask_take_over(self) -> None:
        sitting = self._desk.seat.sitting
        name = sitting.name if sitting is not None else "nobody"
        self._question.text = f"{name} has the desk and will only watch from now on. Take over?"
        self._dialog.open()

    def _take_over(self) -> None:
        self._dialog.close()
        self._seat_request(take_over=True)

    def _seat_request(self, *, take_over: bool) -> None:
        name = str(self._name.value or "")
        try:
            said = self._desk.seat.take(self._browser, name, take_over=take_over)
            self._desk.say(name.strip(), "desk", said)
        except (SeatTaken, ValueError) as error:
            self._desk.say(name.strip() or "a visitor", "desk", f"refused: {error}", ok=False)
        self.refresh()

    def _on_key(self, event: object) -> None:
        pressed = str(getattr(event, "key", ""))
        if getattr(event, "action", None) and event.action.keydown and pressed in _KEYS:  # type: ignore[attr-defined]
            self._press(Action.LABEL, label=_KEYS[pressed])


def _answer_presses_at_once(keys: dict[str, str]) -> None:
    """Put the script on the page that is being built.

    Args:
        keys: label by the key that gives it.
    """
    script = _PRESS_SCRIPT.replace("NO_ANSWER_MS", str(round(1e3 * _NO_ANSWER_S)))
    ui.add_body_html(f"<script>{script.replace('KEYS', str(keys))}</script>")


def _pressed_line() -> None:
    """Where the page says that a press was taken. Only the script writes here."""
    ui.element("div").classes("w-full text-sm text-orange-700 h-5").props(
        'data-testid="pressed" aria-live="polite"'
    )
