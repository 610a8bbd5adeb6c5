# SPDX-License-Identifier: MIT
"""Simulated world, equivariant recurrent networks and agents for partially observable manipulation.

Each folder imports only folders to its left; `tests/contracts/test_layering.py` holds this:

    sim, cluster < envs, experts < data < nets < agents < training
        < audit, bench, export, sweep < carflag < results < cli

CarFlag, a family of small worlds with its own agent, is known to `results` and `cli` alone; its
gymnasium ids are registered by `equi_rl.envs` as entry points, not by import.
"""

import os as _os

# Threads that wait sleep instead of spinning: beside other processes a spinning one takes the core
# that the other thread needs. Read when torch is loaded, so it is said before that.
_os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
