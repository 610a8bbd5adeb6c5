"""The controller's TCP servers: RTDE, script port, dashboard, gripper."""
