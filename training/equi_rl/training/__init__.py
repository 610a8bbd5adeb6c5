# SPDX-License-Identifier: MIT
"""Training runs on the robot tasks: configuration, trainer, collector, evaluation, run folder."""
