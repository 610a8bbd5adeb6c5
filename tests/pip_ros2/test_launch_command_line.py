# SPDX-License-Identifier: MIT
"""The command line of `ros2 launch`: bad input is refused with a reason; --show-args."""

from __future__ import annotations

from pathlib import Path

from launched_programs import SLEEPER


def test_an_unknown_argument_is_refused_with_the_known_ones(call_ros2, launch_file) -> None:
    path = launch_file("DeclareLaunchArgument('robot_ip', default_value='1'),")
    answer = call_ros2("launch", path, "robot_pi:=2")
    assert answer.returncode == 1
    assert "launch argument 'robot_pi' does not exist" in answer.stderr
    assert "Did you mean 'robot_ip'?" in answer.stderr


def test_a_value_outside_the_choices_is_refused(run_ros2, launch_file) -> None:
    path = launch_file(f"DeclareLaunchArgument('mode', choices=['sim', 'real']), {SLEEPER},")
    answer = run_ros2("launch", path, "mode:=virtual")
    assert answer.returncode == 1
    assert 'provided value "virtual" is not valid. Valid options are: [' in answer.stdout
    assert "process started" not in answer.stdout


def test_a_missing_required_argument_is_refused(run_ros2, launch_file) -> None:
    answer = run_ros2("launch", launch_file(f"DeclareLaunchArgument('ip'), {SLEEPER},"))
    assert answer.returncode == 1
    assert "missing required argument 'ip'" in answer.stdout


def test_a_malformed_argument_is_refused(call_ros2, launch_file) -> None:
    answer = call_ros2("launch", launch_file(""), "x:=1", "y=2")
    assert answer.returncode == 1
    assert "malformed launch argument 'y=2'" in answer.stderr


def test_a_syntax_error_shows_file_line_and_code(call_ros2, tmp_path: Path) -> None:
    path = tmp_path / "broken.launch.py"
    path.write_text("import os\nx = (1,\ny = 2\n")
    answer = call_ros2("launch", str(path))
    assert answer.returncode == 1
    assert f"launch file '{path}', line 2: SyntaxError" in answer.stderr
    assert "x = (1," in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_launch_file_that_does_not_exist_is_refused(call_ros2, tmp_path: Path) -> None:
    answer = call_ros2("launch", str(tmp_path / "no.launch.py"))
    assert answer.returncode == 1
    assert "does not exist" in answer.stderr


def test_an_xml_launch_file_is_refused_as_outside_the_subset(call_ros2, tmp_path: Path) -> None:
    (tmp_path / "x.launch.xml").write_text("<launch/>")
    answer = call_ros2("launch", str(tmp_path / "x.launch.xml"))
    assert answer.returncode == 1
    assert "XML or YAML is outside the subset" in answer.stderr


def test_a_missing_package_gets_a_similar_one_suggested(call_ros2, run_ros2, launch_file) -> None:
    answer = call_ros2("launch", "pip_ros2_dmeo", "pair.launch.py")
    assert answer.returncode == 1
    assert "Did you mean 'pip_ros2_demo'" in answer.stderr
    node = "Node(package='pip_ros2_dmeo', executable='talker'),"
    answer = run_ros2("launch", launch_file(node))
    assert answer.returncode == 1
    assert "Did you mean 'pip_ros2_demo'" in answer.stdout


def test_a_launch_file_missing_in_the_package_gets_the_others_listed(call_ros2) -> None:
    answer = call_ros2("launch", "pip_ros2_demo", "pear.launch.py")
    assert answer.returncode == 1
    assert "listener.launch.py, pair.launch.py" in answer.stderr


def test_show_args_describes_the_arguments_and_starts_nothing(call_ros2) -> None:
    answer = call_ros2("launch", "--show-args", "pip_ros2_demo", "pair.launch.py")
    assert answer.returncode == 0
    assert answer.stdout.startswith(
        "Arguments (pass arguments as '<name>:=<value>'):\n\n"
        "    'text':\n        what the talker says\n        (default: 'hi')\n"
    )
    assert "    'marker':*" in answer.stdout
    assert "process started" not in answer.stdout


def test_show_args_of_a_file_without_arguments_says_so(call_ros2, launch_file) -> None:
    assert "No arguments." in call_ros2("launch", "-s", launch_file("")).stdout
