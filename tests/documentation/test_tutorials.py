# SPDX-License-Identifier: MIT
"""The tutorials can be followed: a script types their blocks, in order, in a folder of its own.

`with: FLAGS` in the comment above a block makes it shorter than what the page shows; `fails` means
that the page promises a failure. The guide of the first power-up has a test with a robot.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from pathlib import Path

import pytest
from documentation import pages
from documentation.shell_blocks import Block, read_blocks
from families import ProcessFamily

ROOT = pages.ROOT
TUTORIALS = [page for page in pages.source_pages() if "/tutorials/" in page]
TYPED = [
    page
    for page in TUTORIALS
    if any(block.kind == "run" for block in read_blocks((ROOT / page).read_text(encoding="utf-8")))
]
_TITLED = re.compile(r'^```python title="([\w.]+)"\n(.*?)^```', re.MULTILINE | re.DOTALL)


class Reader:
    """Follows one page in a fresh folder, in which the repository's folders can be seen."""

    def __init__(self, page: str, folder: Path, processes: ProcessFamily) -> None:
        self._page, self._folder, self._processes = page, folder, processes
        text = (ROOT / page).read_text(encoding="utf-8")
        self.blocks = [block for block in read_blocks(text) if block.kind == "run"]
        for name in ("models", "launch", "training", "env.sh"):
            (folder / name).symlink_to(ROOT / name)
        for name, code in _TITLED.findall(text):
            (folder / name).write_text(code)

    def type_block(self, block: Block) -> None:
        """Type one block as it stands, shortened by its `with`."""
        shorter = block.options.get("with", "")
        text = f"{block.text} {shorter}" if shorter else block.text
        # Sourced here for every block; a reader does it once.
        typed = text if "source env.sh" in text else f". {shlex.quote(str(ROOT))}/env.sh\n{text}"
        typed = typed.replace("source env.sh", f". {shlex.quote(str(ROOT))}/env.sh")
        command = ["bash", "-c", f"set -e\ncd {shlex.quote(str(self._folder))}\n{typed}"]
        process = self._processes.start(command, {**os.environ, "ROS_HOME": str(self._folder)})
        code = process.wait_for_exit(240.0)
        where = f"{self._page}:{block.line}: {text}\n{process.output}"
        assert (code != 0) == ("fails" in block.options), f"code {code}: {where}"
        assert block.options.get("expect", "") in process.output, where


def test_every_tutorial_has_something_that_is_typed():
    index = "ros2_ws/docs/tutorials/README.md"
    assert set(TUTORIALS) - set(TYPED) <= {index}
    assert len(TYPED) >= 6


@pytest.mark.parametrize("page", TYPED)
def test_the_short_commands_of_a_tutorial_work(page, tmp_path, processes):
    reader = Reader(page, tmp_path, processes)
    for block in reader.blocks:
        if "slow" not in block.options:
            reader.type_block(block)


@pytest.mark.slow
@pytest.mark.parametrize("page", TYPED)
def test_a_script_that_types_a_tutorial_gets_to_its_end(page, tmp_path, processes):
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    reader = Reader(page, tmp_path, processes)
    for block in reader.blocks:
        reader.type_block(block)
