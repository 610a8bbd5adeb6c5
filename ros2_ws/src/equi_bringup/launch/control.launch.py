# SPDX-License-Identifier: MIT
"""The robot driver alone: it connects; in a real cell an operator activates it.

ros2 launch equi_bringup control.launch.py cell:=lab model:=block_picking
"""

from equi_bringup.arguments import AUTOSTART, COMMON, I_KNOW, MODE, MODEL, cell_argument
from equi_bringup.cell_launch import DRIVER, describe

ARGUMENTS = (cell_argument(), *COMMON, MODEL, MODE, I_KNOW, AUTOSTART)


def start(launch):
    """The driver with the settings of the cell and the limits of the contract."""
    own = {"robot_ip": launch.robot_ip, "contract": str(launch.model / "contract.json")}
    own |= {"mode": launch.value("mode"), "i_know": launch.value("i_know")}
    return [
        launch.node("equi_control", "rtde_driver_node", DRIVER, own),
        *launch.own_manager(DRIVER),
    ]


def generate_launch_description():
    """Arguments and the node."""
    return describe(__file__, ARGUMENTS, start)
