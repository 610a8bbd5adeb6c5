"""Training half of the project: simulated world, networks, agents, export."""
