# SPDX-License-Identifier: MIT
"""The reference misses nothing: what the sources declare is on its pages, found in another way."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from documentation.reference import generated_pages
from documentation.reference.remedies import REMEDIES

ROOT = Path(__file__).resolve().parents[2]
BASES = [
    *sorted((ROOT / "ros2_ws/src").iterdir()),
    *(ROOT / name for name in ("training", "calibration", "models")),
]
# Parsers that no user sees.
INTERNAL = ("stale_shared_memory.py",)


@pytest.fixture(scope="module")
def page(known) -> dict[str, str]:
    return generated_pages()


def sources(pattern: str = "*.py") -> list[Path]:
    return [
        path for base in BASES for path in sorted(base.rglob(pattern)) if "build" not in path.parts
    ]


def test_every_command_of_every_setup_file_is_listed(page):
    text = page["reference/commands.md"]
    entry = re.compile(r'^\s+"([\w-]+) = \w+[\w.]*:\w+",|\["([\w-]+) = [\w.]+:\w+"\]', re.MULTILINE)
    names = {
        name
        for path in sources("setup.py")
        for match in entry.finditer(path.read_text().partition('"equi.benchmarks"')[0])
        for name in match.groups()
        if name and "ur_emulator.arms" not in path.read_text()[: match.start()][-60:]
    }
    assert {"equi-train", "equi-calibrate", "ur-emulator", "evaluate"} <= names
    missing = {name for name in names if not re.search(rf"## `[^`]*\b{re.escape(name)}\b", text)}
    assert missing <= {"board", "physics"}  # plug-ins, no commands


def test_every_flag_that_the_sources_add_is_listed(page):
    text = page["reference/commands.md"]
    flags = {
        flag
        for path in sources()
        if path.name not in INTERNAL and "/fixtures/" not in str(path)
        for flag in re.findall(r'add_argument\(\s*"(--[\w-]+)"', path.read_text())
    }
    assert len(flags) > 60
    assert sorted(flag for flag in flags if f"`{flag}`" not in text) == []


def test_every_setting_of_a_training_run_is_a_listed_flag(page):
    text = page["reference/commands.md"].partition("## `equi-train robot`")[2].partition("\n## ")[0]
    for name in ("training/config.py", "agents/sac_settings.py"):
        tree = ast.parse((ROOT / "training/equi_rl" / name).read_text())
        for kind in ast.walk(tree):
            if isinstance(kind, ast.ClassDef) and kind.name in ("RobotRun", "SacSettings"):
                fields = [n.target.id for n in kind.body if isinstance(n, ast.AnnAssign)]
                assert len(fields) > 10
                for field in fields:
                    assert field.replace("_", "-") in text, field


@pytest.mark.parametrize(
    "path", sorted((ROOT / "launch").glob("*.launch.py")), ids=lambda p: p.name
)
def test_every_argument_of_a_launch_file_is_listed(page, path):
    text = page["reference/launch.md"].partition(f"## `{path.name}`")[2].partition("\n## ")[0]
    names = re.findall(r'^    Argument\(\s*"(\w+)"', path.read_text(), re.MULTILINE)
    names += [name.lower() for name in re.findall(r"known\.([A-Z_]+),", path.read_text())]
    for name in names:
        if name != "common":
            assert f"`{name}:=`" in text


def test_every_parameter_that_a_node_declares_by_name_is_listed(page):
    text = page["reference/parameters.md"]
    declared = {
        name
        for path in sources()
        if path.name.endswith("_node.py")
        for name in re.findall(
            r'declare(?:_parameter)?\(\s*(?:self, )?"([\w.]+)"', path.read_text()
        )
    }
    assert len(declared) > 15
    assert sorted(name for name in declared if f"`{name}`" not in text) == []
    for prefix in ("limits.", "servo.", "link.", "geometry.", "noise.", "workspace."):
        assert f"| `{prefix}" in text


def test_every_topic_service_and_action_of_a_node_is_listed(page):
    text = page["reference/topics.md"]
    named = re.compile(
        r"create_(?:lifecycle_)?(?:publisher|service)\(\s*\w+, \"(?:~/)?([\w/]+)\"|"
        r"subscribe\(\s*\w+,\s*\"([\w/]+)\""
    )
    names = {
        name
        for path in sources()
        if re.search(r"_node\.py$|/ros_\w+\.py$", str(path)) and "evaluat" not in str(path)
        for match in named.finditer(path.read_text())
        for name in match.groups()
        if name
    }
    assert {"observation", "reset_episode", "robot_state"} <= names
    assert sorted(name for name in names if name not in text) == []
    for action in ("policy/run_episode", "rtde_driver/go_home"):
        assert f"`{action}`" in text
    for service in ("hold", "resume", "stop_motion", "open_gripper", "reset_fault"):
        assert f"`rtde_driver/{service}`" in text


def test_every_interface_is_listed_with_its_comments(page):
    text = page["reference/interfaces.md"]
    files = [p for kind in ("msg", "srv", "action") for p in sources(f"*.{kind}")]
    assert len(files) >= 12
    for path in files:
        assert path.read_text().strip() in text


def test_every_code_is_listed_with_a_cause_and_what_to_do(known, page):
    for code in known["codes"]:
        assert code["meaning"], f"{code['group']} {code['name']}: say in remedies.py what it means"
        assert code["remedy"], f"{code['group']} {code['name']}: say in remedies.py what to do"
        assert f"`{code['name']}`" in page["reference/codes.md"]
    listed = {
        group: {c["name"] for c in known["codes"] if c["group"] == group} for group in REMEDIES
    }
    for group in ("Reason", "Cause", "Refusal"):
        assert set(REMEDIES[group]) == listed[group]
    message = (ROOT / "ros2_ws/src/equi_interfaces/msg/FaultCode.msg").read_text()
    faults = set(re.findall(r"^uint8 ([A-Z_]+) = ", message, re.MULTILINE)) - {"NONE"}
    assert faults == {name.partition(" ")[0] for name in listed["FaultCode"]}


def test_codes_show_the_very_texts_that_are_printed(page):
    text = page["reference/codes.md"]
    assert "the servo process did not respond" in text
    assert "no cloud of ... has arrived yet" in text
    assert "check cable and controller, then reset the fault to reconnect" in text


def test_every_value_of_the_cell_files_is_listed(page):
    import yaml

    text = page["reference/files.md"]
    for path in sorted((ROOT / "launch/cells").glob("*.yaml")):
        blocks = yaml.safe_load(path.read_text())
        shared = dict(blocks["cell"]["ros__parameters"])
        for camera in shared["cameras"]:
            for name in shared.pop(camera):
                assert re.search(rf"`(?:\w+\.)*{name}`", text), (path.name, camera, name)
        for name in [*shared, *shared["geometry"]]:
            assert re.search(rf"`(?:\w+\.)*{name}`", text), (path.name, name)
        for name in blocks["equi_calibrate"]["ros__parameters"]:
            assert f"`{name}`" in text, (path.name, name)


def test_every_field_of_the_contract_of_a_shipped_model_is_listed(page):
    import json

    text = page["reference/files.md"]
    contract = json.loads((ROOT / "models/block_picking/contract.json").read_text())
    fields = {*contract, *contract["image"], *contract["action"], *contract["provenance"]}
    computed = {"contract_sha256"}
    for name in fields - computed:
        assert re.search(rf"`(?:\w+\.)?{name}`", text), name
