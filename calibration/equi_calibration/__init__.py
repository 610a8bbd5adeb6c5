# SPDX-License-Identifier: MIT
"""Camera calibration of the robot cell: collect a dataset, solve it, and say PASS or FAIL.

Folders and modules, from the bottom to the top; each imports only those above it in this list:

    errors
    board/        ChArUco board, its print, its detection, intrinsics
    cell_file     settings of a cell
    scene/        table and blocks in depth clouds, ICP
    collect/      calibration poses, cameras, arm, dataset, latency
    solve/        eye-to-hand calibration: hand-eye start, bundle adjustment, validation, solution
    check/        verdict, quick check, plots, report, the calibration file
    synthetic/    a simulated cell with ground truth; the only folder that imports a simulator
    paths, terminal, offline_commands, live_commands, cli

Solvers know neither ROS nor a simulator nor the robot's library: ROS and RTDE are in `collect`.
"""

from __future__ import annotations

__version__ = "0.1.0"
