"""An emulator of the UR controller that unmodified ur_rtde talks to over TCP.

Layers, lowest first: wire formats (`rtde_wire`, `connections`), the controller's own state
(`registers`, `safety_system`, `motions`, `arms`), the program that ur_rtde uploads, emulated
natively (`control_program`), the servers (`rtde_server`, `dashboard`, `script_port`,
`robotiq_server`, `control_api`), and the loop that joins them (`controller`, `main`).
"""
