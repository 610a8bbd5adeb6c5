# SPDX-License-Identifier: MIT
"""Says at once, in the browser itself, that a press was taken; and says it if nobody answers.

The desk's answer comes from the cell's computer, over a network, and may be late when that computer
is busy. So the page does not wait for it: the line below the buttons changes in the same moment as
the press, and goes when the answer is there. If none comes, the line says so, because a press that
was lost must not look like one that works.
"""

from __future__ import annotations

from nicegui import ui

NO_ANSWER_S = 2.0
"""After so long without an answer the page warns that the press may be lost."""

_SCRIPT = """
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


def answer_presses_at_once(keys: dict[str, str]) -> None:
    """Put the script on the page that is being built.

    Args:
        keys: label by the key that gives it.
    """
    script = _SCRIPT.replace("NO_ANSWER_MS", str(round(1e3 * NO_ANSWER_S)))
    ui.add_body_html(f"<script>{script.replace('KEYS', str(keys))}</script>")


def pressed_line() -> None:
    """Where the page says that a press was taken. Only the script writes here."""
    ui.element("div").classes("w-full text-sm text-orange-700 h-5").props(
        'data-testid="pressed" aria-live="polite"'
    )


def press(words: str) -> str:
    """Attribute that makes an element a button whose press is answered at once."""
    return f'data-press="{words}"'
