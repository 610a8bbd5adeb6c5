"""Rehearsals: the real driver against the emulated robot, measured where the robot is.

The one place where the simulated cell imports the driver: a rehearsal needs both, and lives on the
development side so that the robot side never depends on the simulation.
"""
