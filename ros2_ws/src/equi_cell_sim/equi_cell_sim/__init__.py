"""The simulated cell: everything that stands in for the robot, the gripper and the cameras.

Nodes of the deployment reach it only through the wires they would use on the real cell: TCP ports
of the UR controller and of the gripper, and ROS topics of the cameras.
"""
