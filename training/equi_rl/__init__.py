# SPDX-License-Identifier: MIT
"""Simulated world, equivariant recurrent networks and agents for partially observable manipulation.

Each folder imports only folders to its left; `tests/contracts/test_layering.py` holds this:

    sim, cluster < envs, experts < data < nets < agents < training
        < audit, bench, export, sweep < carflag < results < cli

CarFlag, a family of small worlds with its own agent, is known to `results` and `cli` alone; its
gymnasium ids are registered by `equi_rl.envs` as entry points, not by import.
"""
