"""The driver: steps, faults, homing, arm and gripper."""
