# SPDX-License-Identifier: MIT
"""A process or node gets what its launch file says; its output and its exit code are reported."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from launched_programs import SLEEPER


def test_the_console_looks_like_that_of_ros(start, launch_file) -> None:
    path = launch_file(
        """
        LogInfo(msg='good morning'),
        ExecuteProcess(cmd=['sh', '-c', 'echo out; echo err >&2; printf tail'], output='screen'),
        ExecuteProcess(cmd=['sh', '-c', 'exit 3'], name='failing'),
        """
    )
    launch = start("launch", path)
    assert launch.finish() == 1
    text = launch.output
    assert re.search(r"^\[INFO\] \[launch\]: All log files can be found below /", text, re.M)
    assert "[INFO] [launch.user]: good morning" in text
    assert re.search(r"^\[INFO\] \[sh-1\]: process started with pid \[\d+\]$", text, re.M)
    for line in ("[sh-1] out", "[sh-1] err", "[sh-1] tail"):
        assert line in launch.lines
    assert re.search(r"^\[INFO\] \[sh-1\]: process has finished cleanly \[pid \d+\]$", text, re.M)
    died = r"process has died \[pid \d+, exit code 3, cmd 'sh -c exit 3'\]\."
    assert re.search(rf"^\[ERROR\] \[failing-2\]: {died}$", text, re.M)
    assert "failed: failing-2 (exit code 3)" in text


def test_output_log_goes_to_the_log_file_and_stderr_to_the_screen_too(
    start, launch_file, tmp_path: Path
) -> None:
    path = launch_file(
        """
        ExecuteProcess(cmd=['sh', '-c', 'echo secret; echo alarm >&2'], output='log'),
        ExecuteProcess(cmd=['sh', '-c', 'echo own'], output={'stdout': 'own_log'}),
        """
    )
    launch = start("launch", path, ROS_LOG_DIR=str(tmp_path / "log"))
    assert launch.finish() == 0
    [folder] = (tmp_path / "log").iterdir()
    log = (folder / "launch.log").read_text()
    assert "secret" not in launch.output
    assert "[sh-1] alarm" in launch.lines
    assert re.search(r"^\d+\.\d{7} \[INFO\] \[sh-1-stdout\]: \[sh-1\] secret$", log, re.M)
    assert "alarm" in log
    assert (folder / "sh-2-stdout.log").read_text() == "[sh-2] own\n"


def test_show_all_output_overrides_the_launch_file(start, launch_file) -> None:
    path = launch_file("ExecuteProcess(cmd=['echo', 'hidden'], output='log'),")
    launch = start("launch", "-a", path)
    assert launch.finish() == 0
    assert "[echo-1] hidden" in launch.lines


def test_a_respawned_process_comes_back_until_its_retries_are_used_up(start, launch_file) -> None:
    path = launch_file(
        """
        ExecuteProcess(cmd=['sh', '-c', 'echo alive; exit 7'], output='screen',
                       respawn=LaunchConfiguration('again', default='true'),
                       respawn_delay=0.05, respawn_max_retries=2),
        """
    )
    launch = start("launch", path)
    assert launch.finish() == 1
    assert launch.lines.count("[sh-1] alive") == 3


def test_a_process_waiting_to_be_respawned_does_not_hold_the_end_up(start, launch_file) -> None:
    path = launch_file("ExecuteProcess(cmd=['false'], respawn=True, respawn_delay=600.0),")
    launch = start("launch", path)
    launch.wait_for("process has died")
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0


def test_a_respawned_process_that_recovers_is_no_failure(start, launch_file, tmp_path) -> None:
    flag = tmp_path / "flag"
    script = f"test -e {flag} && sleep 600; touch {flag}; exit 1"
    path = launch_file(f"ExecuteProcess(cmd=['sh', '-c', {script!r}], respawn=True),")
    launch = start("launch", path)
    launch.wait_for("process started", 2)
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0


def test_a_crash_beside_a_running_process_shows_in_the_exit_code(start, launch_file) -> None:
    path = launch_file(f"{SLEEPER}, ExecuteProcess(cmd=['false']),")
    launch = start("launch", path)
    launch.wait_for("process has died")
    launch.signal(signal.SIGINT)
    assert launch.finish() == 1
    assert "failed: false-2 (exit code 1)" in launch.output


def test_a_command_that_does_not_exist_is_named_and_fails_the_launch(start, launch_file) -> None:
    launch = start("launch", launch_file("ExecuteProcess(cmd=['no_such_command_here', 'x']),"))
    assert launch.finish() == 1
    launch.wait_for("No such file or directory: 'no_such_command_here'")


def test_environment_folder_prefix_shell_and_terminal_reach_the_process(
    start, launch_file, tmp_path: Path
) -> None:
    path = launch_file(
        f"""
        SetEnvironmentVariable('EQUI_OUTER', 'outer'),
        ExecuteProcess(cmd=['echo $EQUI_OUTER $EQUI_MORE', '$PWD'], shell=True, output='screen',
                       cwd={str(tmp_path)!r}, additional_env={{'EQUI_MORE': 'more'}}, name='a'),
        ExecuteProcess(cmd=['echo', 'prefixed'], prefix='env -u NOTHING', output='screen'),
        ExecuteProcess(cmd=['sh', '-c', 'test -t 1 && echo terminal'], emulate_tty=True,
                       output='screen', name='b'),
        ExecuteProcess(cmd=['/usr/bin/env'], env={{'ONLY': 'this'}}, output='screen', name='c'),
        """
    )
    launch = start("launch", path)
    assert launch.finish() == 0
    assert f"[a-1] outer more {tmp_path}" in launch.lines
    assert "[env-2] prefixed" in launch.lines
    assert "[b-3] terminal" in launch.lines
    assert [line for line in launch.lines if line.startswith("[c-4]")] == ["[c-4] ONLY=this"]


def test_output_that_is_not_text_does_not_disturb_the_launch(start, launch_file) -> None:
    code = r"import os; os.write(1, b'\xff\xfe caf\xc3\xa9\n' + b'x' * 300000 + b'\n')"
    path = launch_file(f"ExecuteProcess(cmd=[sys.executable, '-c', {code!r}], output='screen'),")
    launch = start("launch", path)
    assert launch.finish() == 0
    launch.wait_for("\ufffd\ufffd caf\u00e9")
    launch.wait_for("x" * 300000)


# Node: what arrives on the command line of the executable


def test_a_node_gets_its_name_namespace_parameters_and_remappings(start, launch_file) -> None:
    path = launch_file(
        """
        DeclareLaunchArgument('gain', default_value='2'),
        GroupAction([
            PushRosNamespace('cell'),
            Node(package='pip_ros2_demo', executable='exit_with', name='n', namespace='arm',
                 output='screen', arguments=['0', ['a', LaunchConfiguration('gain')]],
                 ros_arguments=['--log-level', 'debug'],
                 parameters=[{'top': {'nested': [1, 2.5]}, 'gain': LaunchConfiguration('gain'),
                              'word': '5', 'mix': [LaunchConfiguration('gain'), '0'],
                              'words': [[LaunchConfiguration('gain'), 'x'], 'y']}],
                 remappings=[('in', ['out_', LaunchConfiguration('gain')])],
                 on_exit=OpaqueFunction(function=lambda context: print(
                     'PARAMS', open(sys.argv_of(context)).read()))),
        ]),
        """.replace("sys.argv_of(context)", "params_file(context)"),
        preamble="""
            from launch_ros.actions import PushRosNamespace

            def params_file(context):
                cmd = context.locals.event.cmd
                return cmd[cmd.index('--params-file') + 1]
        """,
    )
    launch = start("launch", path)
    assert launch.finish() == 0
    got = launch.wait_for("exit_with got")
    assert "['0', 'a2', '--ros-args', '--log-level', 'debug', '--ros-args', " in got
    assert "'-r', '__node:=n', '-r', '__ns:=/cell/arm', '--params-file', " in got
    assert got.endswith("'-r', 'in:=out_2']")
    parameters = launch.output.partition("PARAMS ")[2]
    assert parameters.startswith("/cell/arm/n:\n  ros__parameters:\n")
    assert "    gain: 2\n" in parameters
    assert "    mix: 20\n" in parameters
    assert "    top.nested:\n    - 1.0\n    - 2.5\n" in parameters
    assert "    word: '5'\n" in parameters
    assert "    words:\n    - 2x\n    - y" in parameters
    written = re.search(r"'--params-file', '([^']+)'", got)[1]
    assert not Path(written).exists(), "the temporary parameter file is deleted at the end"


def test_parameters_of_a_node_without_full_name_apply_to_any_node(start, launch_file) -> None:
    path = launch_file(
        """
        Node(package='pip_ros2_demo', executable='exit_with', name='n', arguments=['0'],
             parameters=[{'a': 1}], on_exit=OpaqueFunction(function=lambda context: print(
                 'PARAMS', open(context.locals.event.cmd[-1]).read()))),
        """
    )
    launch = start("launch", path)
    assert launch.finish() == 0
    launch.wait_for("PARAMS /**:")


def test_a_parameter_file_that_is_missing_is_warned_of(start, launch_file) -> None:
    node = (
        "Node(package='pip_ros2_demo', executable='exit_with', arguments=['0'], "
        "parameters=['/no.yaml']),"
    )
    launch = start("launch", launch_file(node))
    assert launch.finish() == 0
    launch.wait_for("Parameter file path is not a file: /no.yaml")


@pytest.mark.parametrize("keywords", ["name='1st'", "name='a b'", "namespace='a//b'"])
def test_an_invalid_node_name_or_namespace_fails_the_launch(start, launch_file, keywords) -> None:
    node = f"Node(package='pip_ros2_demo', executable='exit_with', {keywords}),"
    launch = start("launch", launch_file(node))
    assert launch.finish() == 1
    launch.wait_for("is invalid")


def test_two_nodes_of_the_same_name_are_warned_of(start, launch_file) -> None:
    node = (
        "Node(package='pip_ros2_demo', executable='exit_with', arguments=['0'], name='n', "
        "namespace='/a'),"
    )
    launch = start("launch", launch_file(node + node))
    assert launch.finish() == 0
    launch.wait_for("there are now at least 2 nodes with the name /a/n")
