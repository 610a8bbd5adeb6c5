# SPDX-License-Identifier: MIT
"""SLAC, a stochastic latent actor-critic, as a baseline on the robot tasks."""
