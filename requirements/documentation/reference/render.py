# SPDX-License-Identifier: MIT
"""The catalogue as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_KINDS = {"make": 1, "ros2": 2}
_GENERATED = "*Generated from the code by `make docs`.*"


def commands_page(commands: Sequence[Mapping[str, Any]]) -> str:
    """Every command and flag."""
    lines = [
        "# Commands and flags",
        "",
        f"After `source env.sh`. {_GENERATED}",
        "",
        "`--help` prints the same; every command takes it. ROS nodes take ROS arguments only "
        "(`--ros-args`), see [Nodes and parameters](parameters.md).",
        "",
    ]
    # What people type by name first, then targets of make, then executables of ROS packages.
    for command in sorted(commands, key=lambda item: _KINDS.get(item["words"][0], 0)):
        words = " ".join(command["words"])
        lines += [f"## `{words}`", "", _escaped(command["text"]), ""]
        rows = [
            [
                ", ".join(f"`{name}`" for name in flag["names"]),
                _value(flag["values"]),
                _code(flag["default"]),
                _escaped(flag["text"]),
            ]
            for flag in command["flags"]
        ]
        lines += _table(("argument", "value", "default", "meaning"), rows)
    return _page(lines)


def launch_page(files: Sequence[Mapping[str, Any]]) -> str:
    """Every launch argument."""
    lines = [
        "# Launch files and arguments",
        "",
        "`ros2 launch equi_bringup FILE NAME:=VALUE`; `equi_policy sim2real.launch.py` is the same "
        f"file. {_GENERATED}",
        "",
    ]
    for file in files:
        lines += [f"## `{file['file']}`", "", _escaped(file["text"]), ""]
        rows = [
            [
                f"`{item['name']}:=`",
                "required" if item["default"] is None else _code(item["default"]),
                ", ".join(f"`{choice}`" for choice in item["choices"]),
                _escaped(item["text"]),
            ]
            for item in file["arguments"]
        ]
        lines += _table(("argument", "default", "allowed", "meaning"), rows)
    return _page(lines)


def nodes_page(nodes: Sequence[Mapping[str, Any]]) -> str:
    """Every node with its parameters."""
    lines = [
        "# Nodes and parameters",
        "",
        f"Parameters come from the block of the node in the cell file. {_GENERATED}",
        "",
        "*fixed*: read when the node starts. The others can be set while the node is unconfigured. "
        "`ros2 param describe /NODE NAME` shows the same.",
        "",
    ]
    for node in nodes:
        kind = "lifecycle node" if node["lifecycle"] else "node"
        lines += [
            f"## `{node['name']}` ({node['executable']})",
            "",
            f"{_escaped(node['text'])} A {kind} of `{node['package']}`: "
            f"`ros2 run {node['package']} {node['executable']}`.",
            "",
        ]
        rows = [
            [
                f"`{item['name']}`",
                _code(_shown(item["default"])),
                _escaped(item["range"]),
                "fixed" if item["read_only"] else "",
                _escaped(item["text"]),
            ]
            for item in node["parameters"]
        ]
        lines += _table(("parameter", "default", "range", "", "meaning"), rows)
    return _page(lines)


def topics_page(nodes: Sequence[Mapping[str, Any]]) -> str:
    """Every topic, service and action of every node."""
    lines = [
        "# Topics, services, actions",
        "",
        f"Names are relative to the namespace of the cell. {_GENERATED}",
        "",
        "Every node also has `/rosout` and the parameter services; lifecycle nodes have "
        "`<node>/heartbeat`, `<node>/transition_event` and the services of `lifecycle_msgs`.",
        "",
        "## Topics",
        "",
    ]
    topics: dict[tuple[str, str], dict[str, list[str]]] = {}
    for node in nodes:
        for way in ("publishes", "subscribes"):
            for stream in node[way]:
                entry = topics.setdefault(
                    (stream["topic"], stream["type"]),
                    {"publishes": [], "subscribes": [], "qos": []},
                )
                entry[way].append(node["name"])
                if way == "publishes":
                    entry["qos"].append(stream["qos"])
    rows = [
        [
            f"`{topic}`",
            f"`{kind}`",
            _names(entry["publishes"]),
            _names(entry["subscribes"]),
            "; ".join(dict.fromkeys(entry["qos"])),
        ]
        for (topic, kind), entry in sorted(topics.items())
    ]
    lines += _table(("topic", "type", "published by", "read by", "QoS"), rows)
    for title, key, name in (("Services", "services", "service"), ("Actions", "actions", "action")):
        lines += [f"## {title}", ""]
        offered = sorted(
            {(item[name], item["type"], node["name"]) for node in nodes for item in node[key]}
        )
        lines += _table(
            (name, "type", "offered by"), [[f"`{n}`", f"`{k}`", f"`{by}`"] for n, k, by in offered]
        )
    return _page(lines)


def interfaces_page(files: Iterable[tuple[str, str]]) -> str:
    """Every message, service and action definition."""
    lines = ["# Messages", "", f"Unit, frame and meaning stand beside each field. {_GENERATED}", ""]
    for name, text in files:
        lines += [f"## `{name}`", "", "```text", text, "```", ""]
    return _page(lines)


def settings_page(tables: Sequence[Mapping[str, Any]]) -> str:
    """Fields of the files that are read."""
    lines = [
        "# Fields of files",
        "",
        f"The cell file (blocks `cell` and `equi_calibrate`) and the policy contract. {_GENERATED}",
        "",
        "Other blocks of a cell file are ROS parameters: [Nodes and parameters](parameters.md). "
        "Settings of a training run are flags of `equi-train`: [Commands and flags](commands.md).",
        "",
    ]
    for table in tables:
        lines += [f"## `{table['class']}` ({table['file']})", "", _escaped(table["text"]), ""]
        rows = [
            [f"`{f['name']}`", _code(f["type"]), _code(f["default"]), _escaped(f["text"])]
            for f in table["fields"]
        ]
        lines += _table(("field", "type", "default", "meaning"), rows)
    return _page(lines)


_GROUPS = {
    "FaultCode": (
        "Faults of the driver",
        "Latched: the arm is stopped until `reset_fault` succeeds. `ros2 topic echo /safety_status "
        "--once` shows the code, the reason and what to do.",
    ),
    "Reason": (
        "Why a step was changed or refused",
        "In `executed_command.reasons`; codes ending in `_clipped` and `_limited` mean that the "
        "step was done, but shorter or slower.",
    ),
    "Cause": ("Why there is no observation", "In `perception_status.reasons`."),
    "Refusal": (
        "Why the policy does not act on an observation",
        "In `diagnostics` of the policy, and in its log where it matters.",
    ),
}


def codes_page(codes: Sequence[Mapping[str, Any]]) -> str:
    """Every stable code: what is printed, what it means, what to do."""
    lines = [
        "# Fault codes and reasons",
        "",
        "Every code that the nodes publish, with the text they print; `...` stands for values. "
        f"{_GENERATED}",
        "",
    ]
    for group, (title, text) in _GROUPS.items():
        lines += [f"## {title}", "", text, ""]
        rows = [
            [
                f"`{code['name']}`",
                "<br>".join(f"*{_escaped(words)}*" for words in code["texts"]),
                _escaped(code["meaning"]),
                _escaped(code["remedy"]),
            ]
            for code in codes
            if code["group"] == group
        ]
        lines += _table(("code", "printed", "cause", "what to do"), rows)
    return _page(lines)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(names))


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def _code(text: str) -> str:
    return f"`{text}`" if text and text != "required" else text


def _value(text: str) -> str:
    return text if "`" in text or not text else f"`{text}`"


def _escaped(text: str) -> str:
    """Text for a cell of a table; outside of code, `<` and `*` would be read as markup."""
    parts = text.replace("|", "\\|").split("`")
    parts[::2] = [part.replace("<", "&lt;").replace("*", "\\*") for part in parts[::2]]
    return "`".join(parts)


def _page(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"
