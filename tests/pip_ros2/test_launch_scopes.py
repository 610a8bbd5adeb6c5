# SPDX-License-Identifier: MIT
"""Which value a launch argument has where: defaults, choices, groups and included files."""

from __future__ import annotations

from pathlib import Path

import pytest
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    GroupAction,
    IncludeLaunchDescription,
    OpaqueFunction,
    SetEnvironmentVariable,
    SetLaunchConfiguration,
)
from launch.conditions import IfCondition
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, ThisLaunchFileDir
from launch_probe import Probe, run

pytestmark = pytest.mark.usefixtures("quiet_and_contained")


def write_launch_file(folder: Path, name: str, entities: str) -> str:
    path = folder / name
    path.write_text(
        "from launch import LaunchDescription\n"
        "from launch.actions import *\n"
        "from launch.actions import DeclareLaunchArgument, SetLaunchConfiguration\n"
        f"def generate_launch_description():\n    return LaunchDescription([{entities}])\n"
    )
    return str(path)


def test_a_declared_default_applies_only_where_nothing_is_set() -> None:
    probe = Probe()
    run(
        SetLaunchConfiguration("given", "outside"),
        DeclareLaunchArgument("given", default_value="default"),
        DeclareLaunchArgument("free", default_value=["from ", LaunchConfiguration("given")]),
        probe(LaunchConfiguration("given"), ", ", LaunchConfiguration("free")),
    )
    assert probe.seen == ["outside, from outside"]


def test_a_required_argument_without_value_fails_the_launch(capsys) -> None:
    probe = Probe()
    code, _ = run(DeclareLaunchArgument("robot_ip", description="address"), probe("after"))
    assert (code, probe.seen) == (1, [])
    assert 'Required launch argument "robot_ip"' in capsys.readouterr().out


def test_a_value_that_is_not_among_the_choices_fails_the_launch(capsys) -> None:
    code, _ = run(
        SetLaunchConfiguration("mode", "slow"),
        DeclareLaunchArgument("mode", choices=["sim", "real"]),
    )
    output = capsys.readouterr().out
    assert code == 1
    assert '"mode" provided value "slow" is not valid' in output
    assert "['sim', 'real']" in output


def test_a_default_outside_the_choices_is_refused_when_written() -> None:
    with pytest.raises(RuntimeError, match="not among the choices"):
        DeclareLaunchArgument("mode", default_value="x", choices=["sim", "real"])


def test_a_scoped_group_keeps_its_changes_to_itself(monkeypatch) -> None:
    monkeypatch.setenv("EQUI_SCOPE", "outer")
    probe = Probe()
    shown = (LaunchConfiguration("x"), " ", EnvironmentVariable("EQUI_SCOPE"))
    run(
        SetLaunchConfiguration("x", "outer"),
        GroupAction(
            [
                probe(*shown),
                SetLaunchConfiguration("x", "inner"),
                SetEnvironmentVariable("EQUI_SCOPE", "inner"),
                probe(*shown),
            ]
        ),
        probe(*shown),
    )
    assert probe.seen == ["outer outer", "inner inner", "outer outer"]


def test_an_unscoped_group_leaves_its_changes_behind() -> None:
    probe = Probe()
    group = GroupAction([], scoped=False, launch_configurations={"x": "kept"})
    run(group, probe(LaunchConfiguration("x")))
    assert probe.seen == ["kept"]


def test_a_group_without_forwarding_sees_only_what_it_is_given(monkeypatch) -> None:
    probe = Probe()
    inside = probe(
        LaunchConfiguration("x", default="-"),
        LaunchConfiguration("y", default="-"),
        EnvironmentVariable("EQUI_LATE", default_value="-"),
    )
    monkeypatch.delenv("EQUI_LATE", raising=False)
    run(
        SetLaunchConfiguration("x", "1"),
        SetEnvironmentVariable("EQUI_LATE", "set"),
        GroupAction(
            [inside], forwarding=False, launch_configurations={"y": LaunchConfiguration("x")}
        ),
        probe(LaunchConfiguration("x"), EnvironmentVariable("EQUI_LATE")),
    )
    assert probe.seen == ["-1-", "1set"]


def test_what_a_group_without_forwarding_keeps_is_read_in_the_environment_of_the_start(
    monkeypatch,
) -> None:
    monkeypatch.setenv("EQUI_SCOPE", "start")
    probe = Probe()
    run(
        SetEnvironmentVariable("EQUI_SCOPE", "later"),
        GroupAction(
            [probe(LaunchConfiguration("kept"))],
            forwarding=False,
            launch_configurations={"kept": EnvironmentVariable("EQUI_SCOPE")},
        ),
    )
    assert probe.seen == ["start"]


def test_an_include_has_no_scope_of_its_own(tmp_path: Path) -> None:
    path = write_launch_file(
        tmp_path,
        "inner.launch.py",
        "DeclareLaunchArgument('a', default_value='x'), SetLaunchConfiguration('b', 'set inside')",
    )
    probe = Probe()
    include = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(path), launch_arguments=[("a", "given")]
    )
    run(include, probe(LaunchConfiguration("a"), ", ", LaunchConfiguration("b")))
    assert probe.seen == ["given, set inside"]


def test_an_include_in_a_scoped_group_leaves_nothing_behind(tmp_path: Path) -> None:
    path = write_launch_file(tmp_path, "inner.launch.py", "SetLaunchConfiguration('b', 'inside')")
    probe = Probe()
    include = IncludeLaunchDescription(PythonLaunchDescriptionSource(path))
    run(GroupAction([include]), probe(LaunchConfiguration("b", default="gone")))
    assert probe.seen == ["gone"]


def test_an_include_that_misses_a_required_argument_fails_before_it_is_visited(
    tmp_path: Path, capsys
) -> None:
    path = write_launch_file(tmp_path, "inner.launch.py", "DeclareLaunchArgument('ip')")
    code, _ = run(
        SetLaunchConfiguration("ip", "set, but not given to the include"),
        IncludeLaunchDescription(PythonLaunchDescriptionSource(path)),
    )
    assert code == 1
    assert "missing required argument 'ip'" in capsys.readouterr().out


def test_the_folder_of_the_launch_file_is_that_of_the_file_being_visited(tmp_path: Path) -> None:
    inner = tmp_path / "sub"
    inner.mkdir()
    write = "DeclareLaunchArgument('dir', default_value=ThisLaunchFileDir())"
    path = write_launch_file(inner, "inner.launch.py", write)
    Path(path).write_text(
        "from launch.substitutions import ThisLaunchFileDir\n" + Path(path).read_text()
    )
    probe = Probe()
    after = OpaqueFunction(function=lambda context: ThisLaunchFileDir().perform(context))
    code, _ = run(
        IncludeLaunchDescription(PythonLaunchDescriptionSource(path)),
        probe(LaunchConfiguration("dir")),
        after,
    )
    assert probe.seen == [str(inner)]
    assert code == 1, "outside of a launch file the substitution fails"


def test_arguments_of_included_files_are_declared_arguments_too(tmp_path: Path) -> None:
    path = write_launch_file(
        tmp_path, "inner.launch.py", "DeclareLaunchArgument('deep', default_value='1')"
    )
    description = LaunchDescription(
        [
            DeclareLaunchArgument("top", default_value="0"),
            GroupAction(
                [IncludeLaunchDescription(PythonLaunchDescriptionSource(path))],
                condition=IfCondition("true"),
            ),
        ]
    )
    arguments = {a.name: a._conditionally_included for a in description.get_launch_arguments()}
    assert arguments == {"top": False, "deep": True}
