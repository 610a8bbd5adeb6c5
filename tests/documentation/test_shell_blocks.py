# SPDX-License-Identifier: MIT
"""Every command of every page exists, with its flags; tutorials say who types each block."""

from __future__ import annotations

import pytest
from documentation import pages
from documentation.shell_blocks import commands_in, fault_of, read_blocks

PAGES = pages.source_pages()
TUTORIALS = [
    page
    for page in PAGES
    if ("/tutorials/" in page and not page.endswith("README.md"))
    or page.endswith("first_power_up.md")
]


def test_every_command_of_every_page_exists_with_its_flags(known):
    faults, count = [], 0
    for page in PAGES:
        for block in read_blocks((pages.ROOT / page).read_text(encoding="utf-8")):
            for words in commands_in(block.text):
                count += 1
                fault = fault_of(words, known)
                if fault:
                    faults.append(f"{page}:{block.line}: {' '.join(words)}: {fault}")
    assert count > 60
    assert faults == []


@pytest.mark.parametrize("page", TUTORIALS)
def test_every_block_of_a_tutorial_says_who_types_it(page):
    blocks = list(read_blocks((pages.ROOT / page).read_text(encoding="utf-8")))
    assert blocks
    unmarked = [block.line for block in blocks if not block.kind]
    assert not unmarked, f"blocks at lines {unmarked} of {page} have no comment"
    reasons = [block.options.get("name") for block in blocks if block.kind == "not tested"]
    assert all(reasons), "<!-- not tested: reason -->"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("equi-train robot --task x --folder y", ""),
        ("equi-train robot --folde y", "equi-train robot knows no flag --folde"),
        ("equi-trian robot", "no command equi-trian robot"),
        ("equi-audit networks", "networks is none of environment, network, params, training"),
        ("make demo TASK=drawer_opening", ""),
        ("make demos", "make knows no target demos"),
        ("make demo TSK=x", "make knows no variable TSK"),
        ("ros2 launch equi_policy sim2real.launch.py episods:=1", "has no argument episods"),
        ("ros2 launch equi_policy sim2real.launch.py task:=x", "task:=x is none of block_picking"),
        ("ros2 launch equi_policy sim.launch.py", "no launch file sim.launch.py"),
        ("ros2 run equi_evaluation evaluate --episode 5", "knows no flag --episode"),
        ("ros2 topic echo /safety_statu --once", "no node, topic, service or action /safety_statu"),
        (
            "ros2 action send_goal /policy/run_episode equi_interfaces/action/Run '{}'",
            "no interface",
        ),
        ("A=1 ros2 lifecycle get /rtde_driver && cd x > y # z", ""),
    ],
)
def test_a_command_that_does_not_exist_is_found(known, line, fault):
    found = [fault_of(words, known) for words in commands_in(line)]
    assert any(fault in text for text in found) if fault else not any(found)
