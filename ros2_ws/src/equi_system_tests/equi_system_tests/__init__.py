"""Whole-system rehearsals and studies of the simulated cell."""
