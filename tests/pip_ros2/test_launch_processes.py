# SPDX-License-Identifier: MIT
"""`ros2 launch` with real processes: output, signals, escalation, orphans, exit codes."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

SLEEPER = "ExecuteProcess(cmd=['sleep', '600'], output='screen')"
# Ignores SIGINT; says when it is ready.
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "{more}print('ready', flush=True); time.sleep(600)"
)
IGNORES_SIGINT = STUBBORN.format(more="")
LEAVES_WHEN_TOLD = STUBBORN.format(more="signal.signal(signal.SIGUSR1, lambda *_: exit(0)); ")
IGNORES_BOTH = STUBBORN.format(more="signal.signal(signal.SIGTERM, signal.SIG_IGN); ")
# Starts a grandchild that ignores SIGINT, and prints its pid.
PARENT = (
    "import subprocess, sys, time; "
    f"cmd = [sys.executable, '-c', {IGNORES_SIGINT!r}]; "
    "child = subprocess.Popen(cmd, stdout=subprocess.PIPE{more}); "
    "child.stdout.readline(); print('grandchild', child.pid, flush=True); {then}"
)


def pid_in(line: str) -> int:
    return int(re.findall(r"\d+", line)[-1])


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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_launch_stops_every_child_and_is_no_failure(
    start, launch_file, until_dead, number
) -> None:
    launch = start("launch", launch_file(f"{SLEEPER}, {SLEEPER}, {SLEEPER},"))
    pids = [pid_in(launch.wait_for("process started", count)) for count in (1, 2, 3)]
    launch.signal(number)
    assert launch.finish() == 0
    until_dead(*pids, within_s=0.0)
    for name in ("sleep-1", "sleep-2", "sleep-3"):
        assert launch.output.count(f"sending signal 'SIGINT' to process[{name}]") == 1
    assert "escalating" not in launch.output


def test_stopping_escalates_from_sigint_over_sigterm_to_sigkill(start, launch_file) -> None:
    path = launch_file(
        f"""
        ExecuteProcess(cmd=[sys.executable, '-c', {IGNORES_SIGINT!r}], name='one', output='screen',
                       sigterm_timeout='0.3', sigkill_timeout='60'),
        ExecuteProcess(cmd=[sys.executable, '-c', {IGNORES_BOTH!r}], name='two', output='screen',
                       sigterm_timeout='0.3', sigkill_timeout=['0.', '3']),
        """
    )
    launch = start("launch", path)
    launch.wait_for("ready", 2)
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0
    one = [line for line in launch.lines if "one-1]" in line]
    two = [line for line in launch.lines if "two-2]" in line]
    base = "process[{}] failed to terminate '{}' seconds after receiving '{}', escalating to '{}'"
    assert f"[ERROR] [one-1]: {base.format('one-1', '0.3', 'SIGINT', 'SIGTERM')}" in one
    assert any("exit code -15" in line for line in one)
    assert f"[ERROR] [two-2]: {base.format('two-2', '0.6', 'SIGTERM', 'SIGKILL')}" in two
    assert any("exit code -9" in line for line in two)
    assert not any("SIGKILL" in line for line in one)


def test_the_escalation_times_can_be_given_on_the_command_line(start, launch_file) -> None:
    process = f"ExecuteProcess(cmd=[sys.executable, '-c', {IGNORES_BOTH!r}], output='screen'),"
    launch = start("launch", launch_file(process), "sigterm_timeout:=0.2", "sigkill_timeout:=0.1")
    launch.wait_for("ready")
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0
    launch.wait_for("failed to terminate '0.2' seconds after receiving 'SIGINT'")
    launch.wait_for("escalating to 'SIGKILL'")


def test_a_second_ctrl_c_is_ignored_and_no_child_is_lost(start, launch_file, until_dead) -> None:
    path = launch_file(
        f"""
        ExecuteProcess(cmd=[sys.executable, '-c', {LEAVES_WHEN_TOLD!r}], output='screen',
                       sigterm_timeout='600'),
        """
    )
    launch = start("launch", path)
    pid = pid_in(launch.wait_for("process started"))
    launch.wait_for("ready")
    launch.signal(signal.SIGINT)
    launch.wait_for("sending signal 'SIGINT'")
    launch.signal(signal.SIGINT)
    launch.wait_for("again, ignoring")
    os.kill(pid, signal.SIGUSR1)
    assert launch.finish() == 0
    until_dead(pid, within_s=0.0)


def test_grandchildren_are_stopped_with_their_parent(start, launch_file, until_dead) -> None:
    parent = PARENT.format(more="", then="time.sleep(600)")
    path = launch_file(
        f"""
        ExecuteProcess(cmd=[sys.executable, '-c', {parent!r}], output='screen',
                       sigterm_timeout='0.3'),
        """
    )
    launch = start("launch", path)
    grandchild = pid_in(launch.wait_for("grandchild"))
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0
    until_dead(grandchild, within_s=0.0)
    assert "had left its process group" not in launch.output, "stopped with its group"


@pytest.mark.parametrize("more", ["", ", start_new_session=True"])
def test_a_grandchild_that_outlives_its_parent_is_stopped_at_the_end(
    start, launch_file, until_dead, more: str
) -> None:
    parent = PARENT.format(more=more, then="sys.exit(0)")
    path = launch_file(
        f"""
        ExecuteProcess(cmd=[sys.executable, '-c', {parent!r}], output='screen'),
        ExecuteProcess(cmd=['sleep', '600']),
        """
    )
    launch = start("launch", path)
    grandchild = pid_in(launch.wait_for("grandchild"))
    launch.wait_for("process has finished cleanly")
    launch.signal(signal.SIGINT)
    assert launch.finish() == 0
    until_dead(grandchild, within_s=0.0)


def test_children_do_not_survive_a_launch_that_is_killed(start, launch_file, until_dead) -> None:
    parent = PARENT.format(more="", then="time.sleep(600)")
    path = launch_file(
        f"ExecuteProcess(cmd=[sys.executable, '-c', {parent!r}], output='screen'), {SLEEPER},"
    )
    launch = start("launch", path)
    child = pid_in(launch.wait_for("process started", 1))
    sleeper = pid_in(launch.wait_for("process started", 2))
    grandchild = pid_in(launch.wait_for("grandchild"))
    launch.signal(signal.SIGKILL)
    launch.process.wait(timeout=60)
    until_dead(child, sleeper, grandchild)


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


# Bad input to the command


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


def test_a_missing_executable_stops_what_runs_and_lists_what_there_is(
    start, launch_file, until_dead
) -> None:
    later = "TimerAction(period=0.5, actions=[Node(package='pip_ros2_demo', executable='walker')])"
    launch = start("launch", launch_file(f"{SLEEPER}, {later},"))
    pid = pid_in(launch.wait_for("process started"))
    assert launch.finish() == 1
    until_dead(pid, within_s=0.0)
    launch.wait_for("executable 'walker' not found in the libexec directory")
    launch.wait_for("Executables of package 'pip_ros2_demo': exit_with, listener, machine, talker")


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
