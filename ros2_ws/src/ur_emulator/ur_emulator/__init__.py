# SPDX-License-Identifier: MIT
"""An emulated Universal Robots controller that unmodified ur_rtde talks to over TCP.

`controller` holds the state of the robot and the emulated control script, `protocols` the TCP
servers, `robot` the loop that joins them, `arms` what moves, `main` the command line. Programs use
`EmulatorProcess` to start an emulator and `EmulatorClient` to inject faults.
"""

from ur_emulator.client import EmulatorClient, RequestError
from ur_emulator.launching import EmulatorProcess, StartError, free_address

__all__ = ["EmulatorClient", "EmulatorProcess", "RequestError", "StartError", "free_address"]
