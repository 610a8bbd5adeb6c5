# SPDX-License-Identifier: MIT
"""The console and log files of a launch, with the look of ROS's launch.

Messages of the launch itself read `[INFO] [launch]: text`; output of processes is passed on as
it comes, each line after the process's label. All of it also goes to `launch.log` in a folder of
its own per launch, below ROS_LOG_DIR, else ROS_HOME/log, else ~/.ros/log.
"""

from __future__ import annotations

from .._outside_subset import refuse_missing_names
from .loggers import get_logger, get_output_loggers, launch_config

__all__ = ["get_logger", "get_output_loggers", "launch_config"]

__getattr__ = refuse_missing_names(
    __name__,
    __all__,
    ("LaunchConfig", "LaunchLogger", "get_log_directory", "get_log_file_path", "handlers", "reset"),
)
